"""The house rules for notebooks, checked by machine, and every template executed."""

from __future__ import annotations

import ast
import html
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import papermill
import pytest

from nbutils.data.datasheets import read_datasheet
from nbutils.data.sources import SOURCES
from nbutils.sweeps.parameters import template_model

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NAMES = sorted(p.stem for p in FOLDER.glob("*.ipynb"))


def read(name: str):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def code_cells(name: str) -> list:
    return [c for c in read(name).cells if c.cell_type == "code"]


def lines(cell) -> list[str]:
    return [x for x in cell.source.splitlines() if x.strip() and not x.strip().startswith("#")]


@pytest.mark.parametrize("name", NAMES)
def test_the_cell_of_parameters_declares_them(name):
    """As papermill reads it too: a type, a default, and what it means."""
    found = papermill.inspect_notebook(str(FOLDER / f"{name}.ipynb"))
    fields = template_model(FOLDER / f"{name}.ipynb").model_fields
    assert set(found) == set(fields)
    for key, item in found.items():
        assert ast.literal_eval(item["default"]) == fields[key].default, key
        assert item["help"], f"{key} needs a help comment"
        assert item["inferred_type_name"] == fields[key].annotation.__name__, key


@pytest.mark.parametrize("name", NAMES)
def test_templates_are_clean(name):
    cells = read(name).cells
    assert all(not c.get("outputs") and not c.get("execution_count") for c in cells)
    assert len({c.id for c in cells}) == len(cells)
    assert cells[0].source.startswith("# ")
    assert sum(c.source.count("\n# ") + c.source.startswith("# ") for c in cells if c.cell_type == "markdown") == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_shape_of_a_page(name):
    text = "\n\n".join(c.source for c in read(name).cells)
    for part in ("At a glance", "This page answers:", "any number", "nb.open_page", "assert ", "Sources."):
        assert part in text, f"{name} lacks {part!r}, see *Notebooks* in CONTRIBUTING.md"
    assert "## Sanity check" in text, f"{name} needs a section whose heading begins with *Sanity check*"
    promised = re.findall(r"^- (.+\?)$", read(name).cells[0].source, re.MULTILINE)
    assert len(promised) == 3, f"the first cell of {name} must ask three questions, in lines `- ...?`"
    closing = next(c.source for c in reversed(read(name).cells) if c.cell_type == "markdown")
    _, answered, answers = text.rpartition("## What this page answered")  # code writes answers with numbers in them
    told = len(re.findall(r"^- ", answers if answered else closing, re.MULTILINE))
    assert told >= 3, f"{name} must close with *What this page answered* and three answers, in lines `- ...`"


@pytest.mark.parametrize("name", NAMES)
def test_more_prose_than_code(name, house):
    argued = house.argument(read(name).cells)
    visible = [c for c in argued if not {"parameters", "hide-input"} & set(c.metadata.get("tags", []))]
    lengths = sorted(len(lines(c)) for c in visible)
    middle = statistics.median(lengths)
    assert middle <= 6, f"visible cells of {name} have {lengths} lines; the middle one may have six, it has {middle:g}"
    assert lengths[-1] <= 12, f"a visible cell of {name} is longer than twelve lines"
    everything = [len(lines(c)) for c in argued if "parameters" not in c.metadata.get("tags", [])]
    assert max(everything) <= 20, f"a hidden cell of {name} is longer than twenty lines"
    words = house.words_per_line(read(name).cells)
    told = f"{name} needs eight words of prose for each line of code, hidden ones counted; it has {words:.1f}"
    assert words >= 8, told
    assert house.hidden_share(read(name).cells) <= 0.4, f"more than 40 % of the code of {name} is hidden"
    tree = ast.parse("\n".join(c.source for c in argued))
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)], f"{name} defines a class"
    functions = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    assert len(functions) <= 2, f"{name} may define two functions, it has {functions}"


@pytest.mark.parametrize("name", NAMES)
def test_no_figure_is_made_and_not_shown(name):
    """A page shows the last expression of a cell, and none inside a branch or a loop."""
    blocks = [n for c in code_cells(name) for n in ast.walk(ast.parse(c.source)) if isinstance(n, ast.If | ast.For)]
    lost = [ast.unparse(n) for block in blocks for n in block.body + block.orelse if isinstance(n, ast.Expr)]
    assert not [told for told in lost if re.match(r"(nb|page)\.(show|say|fold|callout)", told)]


@pytest.mark.parametrize("name", NAMES)
def test_an_exercise_has_a_solution_that_is_checked(name):
    """Folded away, right below the question, and executed with the page."""
    cells = read(name).cells
    asked = [i for i, c in enumerate(cells) if c.cell_type == "markdown" and "**Exercise" in c.source]
    solved = [i for i, c in enumerate(cells) if "solution" in c.metadata.get("tags", [])]
    assert solved == [i + 1 for i in asked], f"each exercise of {name} stands above one cell tagged `solution`"
    for c in (cells[i] for i in solved):
        assert "hide-cell" in c.metadata.tags, f"a solution of {name} is folded"
        assert "assert " in c.source, f"a solution of {name} asserts its answer"


@pytest.mark.parametrize("name", NAMES)
def test_a_template_is_in_the_table_of_contents(name, root):
    contents = (root / "_toc.yml").read_text("utf-8")
    assert re.search(rf"book/pages/[\w-]+/{name}$", contents, re.MULTILINE), f"_toc.yml has no page of {name}"


@pytest.mark.parametrize("name", NAMES)
def test_links_of_a_template_lead_somewhere(name, root):
    """To a file that is there, or to a page that the book makes."""
    contents = (root / "_toc.yml").read_text("utf-8").split()
    for cell in read(name).cells:
        for target in re.findall(r"\]\(([^)#]+)\)", cell.source):
            page = target.removeprefix("../").removesuffix(".ipynb")
            if not target.startswith("http") and page not in contents:
                assert (FOLDER / target).exists(), target


def options_for(name: str, folder: Path, tables_here: Callable[[], None]) -> dict[str, object]:
    """Parameters with which a template runs in a folder, small: one data set of those that it takes."""
    if name == "sweep_report":
        return {"results": str(FOLDER.parent / "book/results/width_and_density/results.parquet")}
    if name in ("synthesis", "robustness"):
        return {"epochs": 2, "study": "digits mnist-5k", "seeds": 2}
    if name in ("evolution", "reconstruction", "memorising", "specification_curve"):
        tables_here()
        return {"dataset": "mnist"} if name == "reconstruction" else {"study": "mnist plantvillage fashion-mnist"}
    if name == "speed":
        return {"bars": str(FOLDER.parent / "benchmarks/bars.yml")}
    if name == "reanalysis":
        return {"results": str(FOLDER.parent / "book/results/published/mnist_entropy.csv")}
    if name == "processors":
        for each in ("digits", "processors"):
            shutil.copytree(FOLDER.parent / "book/results" / each, folder / "book/results" / each)
        return {"study": "digits"}
    if name == "datasets":
        return {"datasets": "digits mnist-5k", "examples": 1000}
    fields = template_model(FOLDER / f"{name}.ipynb").model_fields
    smoke = {"epochs": 2, "seeds": 2} | ({"dataset": "mnist-5k"} if "source" in fields else {})
    return {key: value for key, value in smoke.items() if key in fields}


@pytest.mark.release
@pytest.mark.slow(5)
@pytest.mark.parametrize("name", NAMES)
def test_it_runs(name, tmp_path, tables_here, execute_page, check_outputs):
    """By itself; `make test` runs each in the small book, see tests/book/test_book.py."""
    outcome = execute_page(name, **options_for(name, tmp_path, tables_here))
    assert outcome.status == "done", outcome.reason
    check_outputs(name, nbformat.reads(outcome.notebook, as_version=4).cells)


@pytest.mark.release
@pytest.mark.slow(15)
@pytest.mark.parametrize("name", ["h2_modularity", "evolution"])
def test_plain_papermill_runs_it(name, tmp_path, tables_here, check_outputs):
    options = options_for(name, tmp_path, tables_here)
    command = [sys.executable, "-m", "papermill", str(FOLDER / f"{name}.ipynb"), str(tmp_path / "out.ipynb")]
    given = [word for key, value in options.items() for word in ("-p", key, str(value))]
    extra = ["-k", "python3", "--no-progress-bar", "--cwd", str(tmp_path)]
    done = subprocess.run([*command, *given, *extra], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    check_outputs(name, nbformat.read(tmp_path / "out.ipynb", as_version=4).cells)


def test_a_page_about_missing_data_stands_without_them(tmp_path, monkeypatch, execute_page):
    """And asks no network: nothing is downloaded, and nobody answers at the proxy."""
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "store"))
    for proxy in ("http_proxy", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")
    shutil.copytree(FOLDER.parent / "book/results/datasets", tmp_path / "book/results/datasets")
    outcome = execute_page("datasets", datasets=" ".join(SOURCES))
    assert outcome.status == "done", outcome.reason
    assert not (tmp_path / "none").exists()
    cells = nbformat.reads(outcome.notebook, as_version=4).cells
    outputs = [o for c in cells if c.cell_type == "code" for o in c.outputs]
    text = html.unescape("".join(o.get("data", {}).get("text/html", "") for o in outputs))
    for source in SOURCES.values():
        for words in (source.advice, source.about, source.licence, source.citation):
            assert words in text
    assert "Where says more than how bright: " in text
    assert not re.search("not shown|images are not here", text, re.IGNORECASE)
    wide = re.sub('<div class="[^"]*nb-narrow.*?</svg>', "", text, flags=re.DOTALL)  # phones have figures of their own
    rows = [2 if source.passed_on else 1 for source in SOURCES.values()]  # two samples of each class, or its mean
    classes = [len(read_datasheet(name).classes) for name in SOURCES]
    assert wide.count("<image") == sum(n * k for n, k in zip(rows, classes, strict=True))
    assert str(tmp_path) not in text


def test_a_page_of_committed_tables_refuses_what_these_do_not_follow(execute_page):
    outcome = execute_page("h2_modularity", dataset="mnist", source="tables", density=0.1)
    assert outcome.status == "failed"
    words = "h2_modularity: density: the committed tables of mnist hold density = 0.05, received 0.1; source = 'live'"
    assert words in outcome.reason


@pytest.mark.release
@pytest.mark.slow(35)
def test_defaults_run_on_their_own(execute_page):
    outcome = execute_page("h2_modularity")
    assert outcome.status == "done", outcome.reason


@pytest.mark.slow(5)
@pytest.mark.parametrize(
    "name", [*(pytest.param(n, marks=pytest.mark.release) for n in ("h1_communities", "h2_modularity")), "h3_entropy"]
)
def test_a_seed_is_taken_everywhere(name, execute_page):
    outcome = execute_page(name, dataset="digits", seed=3, seeds=2, epochs=2)
    assert outcome.status == "done", outcome.reason
    assert "seed = 3" in outcome.notebook


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sedes": 2}, "h2_modularity has no parameter 'sedes' (did you mean 'seeds'?)"),
        ({"seeds": "many"}, "seeds: input should be a valid integer, received 'many'"),
        ({"dataset": "mnsit"}, "dataset must be one of digits, mnist-5k, mnist, fashion-mnist"),
    ],
)
def test_wrong_parameters_stop_in_the_first_cells(options, words, execute_page):
    outcome = execute_page("h2_modularity", **options)
    assert outcome.status == "failed"
    assert words in outcome.reason
    cells = nbformat.reads(outcome.notebook, as_version=4).cells
    ran = [c for c in cells if c.cell_type == "code" and c.execution_count]
    assert len(ran) <= 4
