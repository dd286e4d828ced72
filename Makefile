# Neuron Communities: `make book` trains, measures, executes and builds; `make help` lists the rest.
DATASETS ?= digits mnist-5k
SEEDS    ?= 10
EPOCHS   ?= 10
JOBS     ?=
SWEEP    ?= notebooks/sweeps/first.yml
DATASET  ?= mnist
DATA     ?= fashion-mnist
QUICK    ?=
PYTHON   ?= python3
PIP_ARGS ?=
LAB_ARGS ?=

# Relative paths and `python -m` throughout, so that a folder with a space in its name works.
PY    := .venv/bin/python
STUDY := --datasets $(DATASETS) --seeds $(SEEDS) --epochs $(EPOCHS) $(if $(JOBS),--jobs $(JOBS))
HTML  := book/_build/html/index.html

# Two workers with a core each: threads that wait for a core that another worker has only burn it. Hundreds of processes
# start, each of which would compile the package again if no bytecode were kept.
ALONE  := NBUTILS_JOBS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PYTEST := $(ALONE) $(PY) -m pytest -n 2 --dist worksteal
define CHECKS
$(PY) -m ruff check .
$(PY) -m ruff format --check .
$(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
$(PY) -m nbstripout --verify --keep-id notebooks/*.ipynb
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR: # a book that failed the strict build must not look up to date
.PHONY: help environment book test test-all lab sweep study replicate bench runs glance sums house pictures site clean

help: ## list commands and options
	@echo "Commands:"
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | awk -F'|' '{printf "%-15s %s\n", $$1, $$2}'
	@echo "Options (with their present values):"
	@echo "  DATASETS=\"$(DATASETS)\" (names with spaces in single quotes)  SEEDS=$(SEEDS)  EPOCHS=$(EPOCHS)  JOBS=$(if $(JOBS),$(JOBS),one per core)"
	@echo "  SWEEP=$(SWEEP)  DATASET=$(DATASET)  DATA=$(DATA)  QUICK=$(QUICK)"
	@echo "  PYTHON=$(PYTHON) (3.11 or newer, makes .venv)  PIP_ARGS=\"$(PIP_ARGS)\" (passed to pip)"

environment: .venv/ready ## install everything into .venv, and nothing else

book: .venv/ready ## train and measure what is missing, execute the notebooks, build the book
	@$(PY) -m nbutils pages --plan $(STUDY)
	@$(PY) -m nbutils run $(STUDY)
	@$(PY) -m nbutils pages $(STUDY)
	@$(MAKE) --no-print-directory $(HTML)
	@echo "The book is ready. Open $(HTML) in a browser."

test: .venv/ready ## style, layers, unit, notebook and book tests: all that CI runs
	$(CHECKS)
	$(PYTEST)

test-all: .venv/ready ## the same and what takes longer: before a release
	$(CHECKS)
	NBUTILS_HOSTILE=200 $(PYTEST) --release

lab: .venv/ready ## open the notebooks in JupyterLab
	$(PY) -m jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks/start_here.ipynb $(LAB_ARGS)

sweep: .venv/ready ## run the sweep of SWEEP (a .yml file) and make its report
	@$(PY) -m nbutils sweep "$(SWEEP)" $(if $(JOBS),--jobs $(JOBS))
	@$(PY) -m nbutils report "$(SWEEP)"

study: .venv/ready ## compute the reference study of DATASET again, and write its tables; stop and go on at will
	@$(PY) -m nbutils study $(DATASET) $(if $(JOBS),--jobs $(JOBS))

replicate: .venv/ready ## put the questions of the second study to DATA, also folder:PATH; QUICK=1 only shows that it works
	@$(PY) -m nbutils replicate "$(DATA)" $(if $(QUICK),--quick) $(if $(JOBS),--jobs $(JOBS))

bench: .venv/ready ## measure speed, both sides of every comparison; kept in benchmarks/results for each processor
	@$(PY) -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r benchmarks/requirements.txt
	@$(PY) -m benchmarks

runs: .venv/ready ## list the runs in the store
	@$(PY) -m nbutils runs

glance: .venv/ready ## write the results into README.md, with their figure
	@$(PY) -m nbutils glance $(STUDY)

sums: .venv/ready ## write the SHA-256 sums of the committed tables, after some were meant to change
	@$(PY) -c 'from nbutils.study.archive import RESULTS, write_sums; write_sums(RESULTS)'

house: .venv/ready ## draw the rooms of the package, and write the ten-point look into CONTRIBUTING.md
	@$(PY) book/_ext/house.py

pictures: .venv/ready ## measure again what the pictures of networks show (book/_ext/pictures.json)
	@$(PY) book/_ext/hero.py

site: .venv/ready ## build the book and copy it into the folder INTO, a static site for any web space
	@test -n "$(INTO)" || { echo "INTO must be the folder that the site goes to, as in make site INTO=../site" >&2; exit 2; }
	@$(MAKE) --no-print-directory book
	@mkdir -p "$(INTO)"
	@cp -R $(dir $(HTML)). "$(INTO)"
	@touch "$(INTO)/.nojekyll" # some hosts leave out folders that begin with an underscore
	@echo "The site is in $(INTO)."

clean: ## remove the built book and executed pages (runs stay in the store)
	rm -rf book/_build book/pages _build

.venv/ready: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	@test -x $(PY) || $(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements.txt
	@-$(PY) -c 'import numpy as np, nbutils as nb; nb.detect_communities(nb.activation_pattern_graph(np.eye(64, dtype=bool).repeat(2, 1)))' # compiled here, so that no first use has to wait
	@touch .venv/ready

# Rebuilt when prose, configuration, a page or a docstring is newer than the book. `pages` writes only what changed.
$(HTML): $(shell find book _build/toc.yml -not -path 'book/_build*' -not -name '.*' -type f 2>/dev/null) _config.yml _toc.yml CONTRIBUTING.md $(wildcard nbutils/*.py nbutils/*/*.py)
	$(PY) -c 'from jupyter_book.cli.main import main; main()' build . --toc _build/toc.yml --path-output book --all -W -n --keep-going -q
	@touch $(HTML)
