from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from nbutils.data.datasets import load_dataset
from nbutils.study.archive import REFERENCE, SMALL, archive_digest, archive_folder, reference_study
from nbutils.study.study import Study
from nbutils.sweeps.grid import load_sweep
from nbutils.sweeps.parameters import (
    KINDS,
    check_parameters,
    data_versions,
    injected_names,
    kind_of,
    model_of_cells,
    template_file,
    template_model,
)


def test_defaults_are_valid(root):
    for template in (root / "notebooks").glob("*.ipynb"):
        model = template_model(template)
        check_parameters(template.stem, {name: field.default for name, field in model.model_fields.items()}, given=[])


def test_a_misspelt_name_gets_the_nearest_spelling():
    with pytest.raises(ValueError, match=r"h1_communities has no parameter 'dateset' \(did you mean 'dataset'\?\)"):
        check_parameters("h1_communities", {"dateset": "digits"})


@pytest.mark.parametrize(
    ("template", "values", "words"),
    [
        ("h2_modularity", {"seeds": "ten"}, "seeds: input should be a valid integer, received 'ten'"),
        ("h2_modularity", {"seeds": 0}, "seeds: input should be greater than or equal to 1, received 0"),
        ("h2_modularity", {"epochs": -1}, "epochs: .*received -1"),
        ("h2_modularity", {"density": 0.0}, "density: .*greater than 0, received 0.0"),
        ("h2_modularity", {"density": 1.5}, "density: .*less than or equal to 1, received 1.5"),
        ("h2_modularity", {"dataset": "mnsit"}, "dataset must be one of digits, mnist-5k, mnist"),
        ("h2_modularity", {"study": "digits cifar"}, "received 'cifar'"),
        ("start_here", {"model": "cnn:3"}, "model must be 'mlp:'"),
        ("synthesis", {"study": ""}, "study: must name at least one data set, received ''"),
        ("memorising", {"study": " "}, "study: must name at least one data set, received ' '"),
        ("processors", {"study": "\n"}, "study: must name at least one data set, received"),
        ("processors", {"study": "digits digits"}, "study: must name each study once, received 'digits digits'"),
        ("evolution", {"dataset": "mnist"}, "evolution has no parameter 'dataset'; it takes study"),
        ("reconstruction", {"dataset": " mnist"}, "dataset .* must be one of .*, received ' mnist'"),
        ("nothing", {}, "template must be one of answers, architectures, cause, claims, .*received 'nothing'"),
        ("../notebooks/synthesis", {}, "template must be one of answers, .*received '../notebooks/synthesis'"),
        ("h1_communities", {"source": "tabels"}, "source must be 'live', 'tables' or 'mixed', received 'tabels'"),
    ],
)
def test_wrong_values_are_named(template, values, words):
    with pytest.raises(ValueError, match=words) as caught:
        check_parameters(template, values)
    assert "\n" not in str(caught.value)


def test_only_given_names_must_be_known():
    found = check_parameters("h3_entropy", {"seeds": 2, "np": object()}, given=["seeds"])
    assert found.seeds == 2


def test_studies_of_a_page():
    page = check_parameters("h1_communities", {"dataset": "mnist-5k", "study": "digits mnist-5k", "seeds": 4})
    assert list(page.studies()) == ["mnist-5k", "digits"]
    assert {s.seeds for s in page.studies().values()} == {4}
    assert check_parameters("start_here", {}).studies() == {}


def declared(text: str):
    """Model of a cell of parameters."""
    return model_of_cells("mine", [text])


@pytest.mark.parametrize(
    ("line", "good", "bad", "words"),
    [
        ("x: int = 1  # how many [1 to 9]", [1, 9], [0, 10], "x: input should be (greater|less) than or equal to [19]"),
        ("x: float = 1  # [above 0, at most 1]", [0.1, 1.0], [0.0, 1.5], "x: input should be .*than"),
        ("x: float = 1  # a [b] [at least -1e-3, below 0.5]", [-0.001, 0.4], [-0.1, 0.5], "x: input should be .*than"),
        ('x: str = "a"  # [a | b c]', ["a", "b c"], ["b", ""], "x must be 'a' or 'b c', received"),
        ('x: str = "a"  # [data set]', ["digits"], ["digist"], "dataset must be one of digits"),
        ('x: str = "a"  # [labels]', ["mixed:0.5"], ["mixed"], "labels must be 'true'"),
        ('x: str = "a"  # in metres [per second]', ["anything"], [3], "x: input should be a valid string, received 3"),
        ("x: int = 1", [10**9], [0.5], "x: input should be a valid integer, received 0.5"),
    ],
)
def test_a_cell_says_what_is_allowed(line, good, bad, words):
    for value in good:
        assert check_parameters("mine", {"x": value}, model=declared(line)).x == value
    for value in bad:
        with pytest.raises(ValueError, match=f"mine: .*{words}") as caught:
            check_parameters("mine", {"x": value}, model=declared(line))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x: int = 1  # [1 to 9, odd]", r"mine: the range \[1 to 9, odd\] of 'x' must be like \[1 to 9\]"),
        ("x: float = 1  # [above 0, at most one]", "mine: the range .* of 'x' must be like"),
        ('x: str = "a"  # [1 to 9]', r"mine: 'x' is no number, so the range \[1 to 9\] does not go with it"),
        ("_x: int = 1", "mine: parameter '_x' must not begin with an underscore"),
    ],
)
def test_a_range_that_is_none_is_refused(line, words):
    with pytest.raises(ValueError, match=words):
        declared(line)


def test_a_running_notebook_is_known_by_its_cells():
    """The first cell of nothing but annotated defaults, or what it was changed into; whatever the folder is."""
    cells = ["import os", "x: int = 1  # [1 to 9]\ny: str = 'a'", "z = 3", "other: int = 1", "not python (", "%time x"]
    assert list(model_of_cells("mine", cells).model_fields) == ["x", "y"]
    later = model_of_cells("mine", [*cells, "x: int = 1  # [1 to 99]"])
    assert later(x=50).x == 50
    assert model_of_cells("mine", ["x = 1", ""]) is None
    assert injected_names([*cells, "# Parameters\nx = 2\nzz = 1\n"]) == {"x", "zz"}


def test_every_parameter_of_ours_says_what_is_allowed(root):
    """By a range, choices or a word; only a metric may be anything."""
    for template in (root / "notebooks").glob("*.ipynb"):
        fields = template_model(template).model_fields
        assert [name for name, field in fields.items() if not field.metadata and name != "metric"] == [], template


TABLES = {"dataset": "mnist", "source": "tables"}


@pytest.mark.parametrize(
    ("template", "values", "words"),
    [
        ("h2_modularity", {**TABLES, "density": 0.1}, "density: the committed tables of mnist hold density = 0.05"),
        ("h2_modularity", {**TABLES, "seeds": 3}, "seeds: the committed tables of mnist hold seeds = 10, received 3;"),
        ("h1_communities", {**TABLES, "epochs": 10}, "epochs: the committed tables of mnist hold epochs = 20"),
        ("h3_entropy", {**TABLES, "seed": 1}, "seed: the committed tables of mnist hold seed = 0, received 1"),
        ("synthesis", {"source": "tables", "seeds": 4}, "seeds: the committed tables of digits hold seeds = 10"),
        ("h2_modularity", {**TABLES, "source": "mixed", "seeds": 3}, "seeds: the committed tables of mnist"),
        (
            "h2_modularity",
            {"dataset": "digits", "study": "mnist", "source": "mixed", "density": 0.1},
            "density: the committed tables of mnist hold density = 0.05, received 0.1; source = 'live' trains",
        ),
        ("robustness", {"study": "digits mnist-10k", "source": "tables"}, "source: there are .* received 'mnist-10k'"),
    ],
)
def test_what_committed_tables_cannot_follow_is_refused(template, values, words):
    """They hold what was measured once: a sweep over density there would give one verdict for all."""
    with pytest.raises(ValueError, match=f"{template}: {words}") as caught:
        check_parameters(template, values)
    assert "\n" not in str(caught.value)


def test_what_committed_tables_hold_may_be_given():
    held = {"seeds": 10, "epochs": 20, "density": 0.05, "seed": 0, "device": "cpu"}
    assert check_parameters("h2_modularity", {**TABLES, **held}).studies() == {"mnist": None}
    smoke = {**TABLES, "seeds": 3, "epochs": 10}  # defaults, which nobody gave
    assert check_parameters("h2_modularity", smoke, given=["dataset", "source"]).studies() == {"mnist": None}
    with pytest.raises(ValueError, match="density: the committed tables"):  # a cell edited by hand
        check_parameters("h2_modularity", {**smoke, "density": 0.1}, given=["dataset", "source"])
    mixed = check_parameters("h2_modularity", {**smoke, "study": "digits", "source": "mixed"}).studies()
    assert mixed["mnist"] is None
    assert mixed["digits"] == Study(dataset="digits", seeds=3, epochs=10)


def test_a_sweep_over_density_of_committed_tables_does_not_start(root, tmp_path):
    file = tmp_path / "density.yml"
    fixed = "{dataset: mnist, source: tables}"
    notebook = root / "notebooks/h2_modularity.ipynb"
    file.write_text(f"notebook: {notebook}\nfixed: {fixed}\ngrid: {{density: [0.02, 0.05, 0.1]}}\n")
    with pytest.raises(ValueError, match=r"2 mistakes in density\.yml") as caught:
        load_sweep(file)
    assert "hold density = 0.05, received 0.1" in str(caught.value)
    assert "(in 1 of 3 points)" in str(caught.value)


def test_the_tables_hold_what_is_said_of_them(root, monkeypatch):
    """The settings by which values are refused are those in the committed tables of runs."""
    monkeypatch.chdir(root)
    import pandas as pd

    for name in (*SMALL, *REFERENCE):
        runs, study = pd.read_parquet(archive_folder(name) / "runs.parquet"), reference_study(name)
        own = runs[runs["parts"].str.contains("conditions")]
        assert set(own["seed"]) == set(range(study.first_seed, study.first_seed + study.seeds))
        assert set(own["epochs"]) == {study.epochs}
        assert set(own["device"]) == {study.device}


def test_what_a_page_depends_on_follows_from_its_parameters(root, tmp_path, monkeypatch, fresh_data):
    monkeypatch.chdir(root)
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path))  # of all data sets, the page about them needs to read few
    digits, tables = load_dataset("digits").version, archive_digest(archive_folder("mnist"))

    def versions(name, **values):
        return data_versions(template_model(template_file(name)), values)

    assert versions("start_here") == versions("h1_communities") == (f"digits {digits}",)
    assert f"digits {digits}" in versions("datasets")
    assert versions("evolution") == versions("memorising") == versions("h3_entropy", **TABLES) == (f"mnist {tables}",)
    assert versions("h1_communities", study="mnist", source="mixed") == (f"digits {digits}", f"mnist {tables}")
    assert versions("sweep_report") == ()


def test_a_page_of_one_s_own_needs_nothing_but_its_cell(tmp_path, monkeypatch):
    """Even with parameters that are called like methods of its model."""
    lines = 'dataset: str = "mnist"  # [reference study]\nstudies: int = 2  # [1 to 3]\ncopy: str = "a"'
    cell = nbformat.v4.new_code_cell(lines, metadata={"tags": ["parameters"]})
    notebook = nbformat.v4.new_notebook(cells=[cell])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, tmp_path / "mine.ipynb")
    monkeypatch.chdir(tmp_path)
    model = template_model(Path("mine.ipynb"))
    assert kind_of(model, "dataset") is KINDS["reference study"]
    assert check_parameters("mine", {"studies": 3}).studies == 3
    with pytest.raises(ValueError, match="mine: studies: input should be less than or equal to 3, received 4"):
        check_parameters("mine", {"studies": 4})
    with pytest.raises(ValueError, match=r"mine has no parameter 'study' \(did you mean 'studies'\?\)"):
        check_parameters("mine", {"study": 1})
