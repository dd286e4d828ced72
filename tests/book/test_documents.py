"""What the documents promise exists: names, commands, options, licences."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import yaml
from torch import nn

import nbutils as nb
from nbutils.cli import _parser
from nbutils.second.candidates import CANDIDATES
from nbutils.sweeps.grid import load_sweep, read_sweep_file

ROOT = Path(__file__).resolve().parents[2]
CLI = ROOT / "nbutils/cli.py"
COMMANDS = ("run", "pages", "runs", "glance", "data", "study", "replicate", "sweep", "results", "report", "portable")
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "book").rglob("*.md"))]
DOCUMENTS = [d for d in DOCUMENTS if "_build" not in d.parts]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_in_documents_uses_names_that_exist(path):
    for block in blocks(path.read_text("utf-8"), "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "nb":
                assert hasattr(nb, node.attr), node.attr


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2)),
        nn.Sequential(OrderedDict(first=nn.Linear(6, 8), relu=nn.ReLU(), head=nn.Linear(8, 2))),
        nn.Sequential(nn.Unflatten(1, (1, 2, 3)), nn.Sequential(nn.Conv2d(1, 8, 2), nn.ReLU()), nn.Flatten()),
    ],
    ids=["numbers for names", "named layers", "convolution inside"],
)
def test_the_examples_of_the_readme_run_on_any_model(model, rng, capsys):
    images, labels = rng.random((40, 6), np.float32), np.arange(40) % 2
    names = {"model": model, "images": images, "labels": labels, "epochs": 2}
    names |= {"probe_images": images, "probe_labels": labels}
    names["train_one_epoch"] = lambda trained: trained.train()
    for block in blocks((ROOT / "README.md").read_text("utf-8"), "python"):
        exec(block, names)
    assert np.isfinite(float(capsys.readouterr().out))
    assert names["fired"].shape == (40, sum(part.shape[1] for part in names["activations"].values()))
    assert len(names["found"].table)
    assert names["watch"].table["epoch"].tolist() == [0, 1]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_in_documents_are_understood(path):
    text = path.read_text("utf-8")
    for line in re.findall(r"python -m nbutils ([^\n`)]*)", text):
        words = line.split("#")[0].split(" [")[0].split()  # without what a parameter may be
        mentioned = words in ([name] for name in ("sweep", "results", "report"))  # by name only, in a sentence
        if words and not mentioned and words[0] in COMMANDS:
            _parser().parse_args(words)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)) <= targets


def test_what_commands_write_by_default_is_no_part_of_the_project():
    """A notebook in `replication/` made the style check of `make test` fail."""
    helps = re.findall(r'"--(?:into|output)".*help="(?:folder|file)[^"]*\(default: ([^)/]+)', CLI.read_text("utf-8"))
    assert {"replication", "measured", "experiments", "lesions.parquet", "runs"} <= set(helps)
    ignored = subprocess.run(["git", "check-ignore", *[f"{name}/x" for name in helps]], cwd=ROOT, capture_output=True)
    assert ignored.stdout.decode().split() == [f"{name}/x" for name in helps if name != "book"]


def test_sweeps_in_the_documents_are_sweeps(tmp_path):
    text = (ROOT / "book/sweeps.md").read_text("utf-8")
    first, second = blocks(text, "yaml")
    assert yaml.safe_load(first) == yaml.safe_load((ROOT / "notebooks/sweeps/first.yml").read_text("utf-8"))
    file = tmp_path / "second.yml"
    file.write_text(second.replace("../", f"{ROOT / 'notebooks'}/"))
    assert load_sweep(file).points[-1].name == "density=0.1 dataset=digits epochs=20"
    assert len(load_sweep(file).points) == 4
    for name in read_sweep_file(file).model_fields_set | {"name", "about", "fixed", "seeds", "timeout"}:
        assert f"| `{name}` |" in text, name


def test_every_option_of_a_sweep_is_explained(command):
    text = (ROOT / "book/sweeps.md").read_text("utf-8")
    options = command("sweep", "--help").stdout
    for option in set(re.findall(r"--[a-z-]+", options)) - {"--help"}:
        assert option in text, option


def test_functions_named_in_the_methods_exist():
    for path in sorted((ROOT / "book/methods").glob("*.md")):
        for name in re.findall(r"\| `([a-z_]+)` \|", path.read_text("utf-8")):
            assert hasattr(nb, name), name


def test_numbers_in_the_methods_are_the_defaults():
    words = {2: "two", 5: "five", 10: "ten", 20: "twenty"}
    spec = nb.MeasureSpec()
    graph = (ROOT / "book/methods/graph.md").read_text("utf-8")
    assert f"mean over {words[spec.null_draws]} draws" in graph
    assert f"heaviest **{spec.density:.0%}** of all pairs".replace("%", " %") in graph
    assert f"from\n{words[spec.seeds]} random seeds" in (ROOT / "book/methods/communities.md").read_text("utf-8")
    assert "**2,000 training images" in (ROOT / "book/methods/capture.md").read_text("utf-8")


def test_the_picture_and_the_look_are_those_of_the_code(house):
    """The picture names every file; both are written by `make house`."""
    drawn = house.PICTURE.read_text("utf-8")
    assert all(path.stem in drawn for paths in house.files().values() for path in paths)
    assert drawn == house.picture(), "run make house"
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert text.partition(house.START)[2].partition(house.END)[0] == house.look_text(), "run make house"
    missed = [f"{what}: {found}, should be {wanted}" for what, found, wanted, good in house.look() if not good]
    assert not missed


def test_the_picture_counts_imports(house, tmp_path, monkeypatch):
    """Two files of `data` and one of the core: three arrows, and a file that is not drawn is noticed."""
    package = tmp_path / "nbutils"
    for name, text in {
        "a.py": "",
        "data/b.py": "from nbutils.a import x",
        "data/c.py": "from nbutils import a",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    for name, path in {"ROOT": tmp_path, "PACKAGE": package}.items():
        monkeypatch.setattr(house, name, path)
    assert house.imports() == {("data", "core"): 2}
    assert {room: len(paths) for room, paths in house.files().items() if paths} == {"core": 1, "data": 2}


def test_local_links_of_top_level_documents():
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        prose = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)#]+)\)", prose):
            if not target.startswith("http"):
                assert (ROOT / target).exists(), target


def test_bibliography_is_sorted_and_used():
    keys = re.findall(r"^@\w+\{(\w+),", (ROOT / "book/references.bib").read_text("utf-8"), re.MULTILINE)
    assert keys == sorted(keys)
    cited = set()
    for path in DOCUMENTS:
        for group in re.findall(r"\{cite(?::t)?\}`([^`]+)`", path.read_text("utf-8")):
            cited |= set(group.split(","))
    assert cited <= set(keys)
    assert set(keys) <= cited, f"never cited: {set(keys) - cited}"


def test_configuration_is_short_and_strict():
    text = (ROOT / "_config.yml").read_text("utf-8")
    assert len(text.splitlines()) <= 60
    config = yaml.safe_load(text)
    assert config["execute"]["execute_notebooks"] == "off"
    assert "-W -n --keep-going" in (ROOT / "Makefile").read_text("utf-8")
    assert (ROOT / "requirements.txt").read_text("utf-8").rstrip().endswith("-e .")


def test_citation_and_licence():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["license"] == "BSD-3-Clause"
    assert citation["version"] == nb.__version__
    assert "BSD 3-Clause" in (ROOT / "LICENSE").read_text("utf-8")


def test_the_readme_results_are_those_of_the_tables():
    from nbutils.pages.landing import FIGURE, GLANCE_END, GLANCE_START, glance_text
    from nbutils.study.archive import REFERENCE, RESULTS, SMALL, has_archive, read_archive
    from nbutils.study.hypotheses import collect_evidence

    names = [name for name in (*SMALL, *REFERENCE) if has_archive(ROOT / RESULTS / name)]
    results = [read_archive(ROOT / RESULTS / name, name) for name in names]
    text = (ROOT / "README.md").read_text("utf-8")
    section = text[text.index(GLANCE_START) : text.index(GLANCE_END) + len(GLANCE_END)]
    assert section == glance_text(results, collect_evidence(results)), "run make glance"
    assert (ROOT / FIGURE).exists()


def test_the_answer_is_that_of_the_tables():
    from nbutils.pages.answering import open_all
    from nbutils.pages.landing import END, PLACES, START, answer_text
    from nbutils.pages.left_over import open_left

    found = open_all()
    told = answer_text(found, open_left(found)[1])
    for place in PLACES:
        text = (ROOT / place).read_text("utf-8")
        assert text[text.index(START) : text.index(END) + len(END)] == told, "run make glance"


def test_no_outputs_or_data_are_tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    data = [f for f in listed if f.endswith((".npz", ".gz", ".pt", ".pkl", ".parquet"))]
    assert not [f for f in data if not f.startswith("book/results/")], "only tables of results"
    assert not [f for f in listed if f.startswith(("book/pages", "book/_build"))]


def test_every_measure_of_the_leaderboard_is_explained_with_a_source_that_exists():
    page = (ROOT / "book/methods/measures.md").read_text("utf-8")
    rows = [line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    explained = {name.strip() for row in rows for name in row[0].split(";")}
    wanted = {called for one in CANDIDATES for called in one.columns.values()}
    assert wanted <= explained, wanted - explained
    assert explained - wanted == {"measure", "---"}
    assert all(len(row) == 2 and row[1].strip(" |") for row in rows)
    keys = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "book/references.bib").read_text("utf-8"), re.MULTILINE))
    assert {key for found in re.findall(r"\{cite\}`([^`]+)`", page) for key in found.split(",")} <= keys
