"""The house rules for notebooks, checked by machine, and every template executed by plain papermill."""

from __future__ import annotations

import ast
import html
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

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
    for part in ("At a glance", "any number", "nb.open_page", "assert ", "Sources."):
        assert part in text, part
    assert "## Sanity check" in text or "## A known answer" in text
    promised = re.findall(r"^- (.+\?)$", read(name).cells[0].source, re.MULTILINE)
    assert len(promised) == 3
    closing = next(c.source for c in reversed(read(name).cells) if c.cell_type == "markdown")
    _, answered, answers = text.rpartition("## What this page answered")  # code writes answers with numbers in them
    assert len(re.findall(r"^- ", answers if answered else closing, re.MULTILINE)) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_more_prose_than_code(name):
    visible = [c for c in code_cells(name) if not {"parameters", "hide-input"} & set(c.metadata.get("tags", []))]
    lengths = [len(lines(c)) for c in visible]
    assert statistics.median(lengths) <= 6
    assert max(lengths) <= 12
    everything = [len(lines(c)) for c in code_cells(name)]
    assert sum(n > 20 for n in everything) == 0
    words = sum(len(c.source.split()) for c in read(name).cells if c.cell_type == "markdown")
    assert words / sum(lengths) >= 8
    tree = ast.parse("\n".join(c.source for c in code_cells(name)))
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    assert len([n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]) <= 2


@pytest.mark.parametrize("name", NAMES)
def test_links_of_a_template_lead_somewhere(name, root):
    """To a file that is there, or to a page that the book makes."""
    contents = (root / "_toc.yml").read_text("utf-8").split()
    for cell in read(name).cells:
        for target in re.findall(r"\]\(([^)#]+)\)", cell.source):
            page = target.removeprefix("../").removesuffix(".ipynb")
            if not target.startswith("http") and page not in contents:
                assert (FOLDER / target).exists(), target


@pytest.mark.parametrize("name", NAMES)
def test_plain_papermill_runs_it_for_every_data_set(name, tmp_path, request):
    options = ["-p", "epochs", "2"]
    if name == "sweep_report":
        options = ["-p", "results", str(FOLDER.parent / "book/results/width_and_density/results.parquet")]
    elif name in ("synthesis", "robustness"):
        options += ["-p", "study", "digits mnist-5k", "-p", "seeds", "2"]
    elif name in ("evolution", "reconstruction", "memorising", "specification_curve"):
        request.getfixturevalue("tables_here")()
        one = name in ("evolution", "reconstruction")
        options = ["-p", "dataset", "mnist"] if one else ["-p", "study", "mnist plantvillage fashion-mnist"]
    elif name == "speed":
        options = ["-p", "results", str(FOLDER.parent / "benchmarks/latest.json")]
    elif name == "reanalysis":
        options = ["-p", "results", str(FOLDER.parent / "book/results/published/mnist_entropy.csv")]
    elif name == "processors":
        for folder in ("digits", "processors"):
            shutil.copytree(FOLDER.parent / "book/results" / folder, tmp_path / "book/results" / folder)
        options = ["-p", "study", "digits"]
    elif name == "dataset":
        options = ["-p", "dataset", "mnist-5k", "-p", "examples", "1000"]
    elif name not in ("start_here", "watch_training"):
        options += ["-p", "dataset", "mnist-5k", "-p", "seeds", "2"]
    done = papermill_cli(name, tmp_path, *options)
    assert done.returncode == 0, done.stderr[-2000:]
    cells = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells
    outputs = [o for c in cells if c.cell_type == "code" for o in c.outputs]
    assert not [o for o in outputs if o.output_type in ("error", "stream")], "pages show results, not streams"
    assert any("nb-callout" in o.get("data", {}).get("text/html", "") for o in outputs) or name in (
        "synthesis",
        "robustness",
        "sweep_report",
        "speed",
    )


@pytest.mark.parametrize("name", list(SOURCES))
def test_a_page_about_missing_data_stands_without_them(name, tmp_path, monkeypatch):
    """And asks no network: nothing is downloaded, and nobody answers at the proxy."""
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "store"))
    for proxy in ("http_proxy", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")
    done = papermill_cli("dataset", tmp_path, "-p", "dataset", name)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not (tmp_path / "none").exists()
    cells = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells
    outputs = [o for c in cells if c.cell_type == "code" for o in c.outputs]
    text = html.unescape("".join(o.get("data", {}).get("text/html", "") for o in outputs))
    source = SOURCES[name]
    for words in (
        source.advice,
        source.about,
        source.licence,
        source.citation,
        "Where says more than how bright: supp",
    ):
        assert words in text
    assert not re.search("not shown|images are not here", text, re.IGNORECASE), (
        "what is not here has no place of its own"
    )
    classes = 15 if name == "plantvillage" else 10
    assert text.count("<image") == classes * (3 if source.passed_on else 1), "two samples and the mean of each class"
    assert str(tmp_path) not in text


def test_a_page_of_committed_tables_refuses_what_these_do_not_follow(tmp_path):
    options = ["-p", "dataset", "mnist", "-p", "source", "tables", "-p", "density", "0.1"]
    done = papermill_cli("h2_modularity", tmp_path, *options)
    assert done.returncode != 0
    words = "h2_modularity: density: the committed tables of mnist hold density = 0.05, received 0.1; source = 'live'"
    assert words in done.stderr


def test_defaults_run_on_their_own(tmp_path):
    assert papermill_cli("h2_modularity", tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-p", "sedes", "2"], "h2_modularity has no parameter 'sedes' (did you mean 'seeds'?)"),
        (["-p", "seeds", "many"], "seeds: input should be a valid integer, received 'many'"),
        (["-p", "dataset", "mnsit"], "dataset must be one of digits, mnist-5k, mnist, fashion-mnist"),
    ],
)
def test_wrong_parameters_stop_in_the_first_cells(options, words, tmp_path):
    done = papermill_cli("h2_modularity", tmp_path, *options)
    assert done.returncode != 0
    assert words in done.stderr
    cells = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells
    ran = [c for c in cells if c.cell_type == "code" and c.execution_count]
    assert len(ran) <= 4


def papermill_cli(name: str, folder: Path, *options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "papermill", str(FOLDER / f"{name}.ipynb"), str(folder / "out.ipynb")]
    extra = ["-k", "python3", "--no-progress-bar", "--cwd", str(folder)]
    return subprocess.run([*command, *options, *extra], capture_output=True, text=True, timeout=600)
