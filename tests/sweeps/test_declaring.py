"""Sweep files: what they mean, and that every mistake is found before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from nbutils.sweeps.grid import load_sweep
from nbutils.sweeps.parameters import template_model, with_full_names


def mistakes(path: Path) -> list[str]:
    with pytest.raises(ValueError, match="mistake") as caught:
        load_sweep(path)
    return str(caught.value).split("\n- ")[1:]


def test_points_in_the_order_of_the_file_seeds_last(write_notebook, write_sweep):
    write_notebook()
    file = write_sweep(
        fixed={"name": "z"},
        grid={"x": [2, 1], "y": {"from": 0.1, "to": 0.3, "step": 0.1}},
        exclude=[{"x": 1, "y": [0.1, 0.2]}],
        seeds=2,
    )
    sweep = load_sweep(file)
    assert sweep.name == "sweep"
    assert sweep.axes == ["x", "y", "seed"]
    assert len(sweep.points) == (2 * 3 - 2) * 2
    assert sweep.points[1].parameters == {"name": "z", "x": 2, "y": 0.1, "seed": 1}
    assert sweep.points[1].folder == Path("x=2/y=0.1/seed=1")
    assert sweep.points[-1].name == "x=1 y=0.3 seed=1"
    assert len({job.address for job in sweep.jobs()}) == len(sweep.points)


def test_zipped_axes_and_seed_lists(write_notebook, write_sweep):
    write_notebook()
    sweep = load_sweep(write_sweep(zip=[{"x": [1, 2], "name": ["a", "b"]}], seeds=[5, 9]))
    assert [(p.parameters["x"], p.parameters["name"], p.parameters["seed"]) for p in sweep.points] == [
        (1, "a", 5),
        (1, "a", 9),
        (2, "b", 5),
        (2, "b", 9),
    ]


def test_only_takes_the_points_that_meet_every_condition(write_notebook, write_sweep):
    write_notebook()
    sweep = load_sweep(write_sweep(fixed={"name": "z"}, grid={"x": [1, 2], "y": [0.5, 1.5]}))
    assert [p.name for p in sweep.only(["x=2", "name=z"]).points] == ["x=2 y=0.5", "x=2 y=1.5"]
    with pytest.raises(ValueError, match=r"key of name, x, y; received 'z=1'"):
        sweep.only(["z=1"])
    with pytest.raises(ValueError, match="leaves none of the 4 points"):
        sweep.only(["x=7"])


def test_all_mistakes_at_once(write_notebook, write_sweep):
    write_notebook()
    found = mistakes(write_sweep(fixed={"yy": 1.0, "name": 3}, grid={"x": [1, "two", 2.5]}, seeds=[0, -1]))
    text = "\n".join(found)
    assert "yy: no such parameter (did you mean 'y'?); the notebook takes x, y, name, seed (in all 6 points)" in text
    assert "name: input should be a valid string, received 3 (in all 6 points)" in text
    assert "x: input should be a valid integer, received 'two' (in 2 of 6 points)" in text
    assert "x: input should be a valid integer, received 2.5 (in 2 of 6 points)" in text
    assert len(found) == 4


def test_our_templates_are_checked_with_their_own_models(write_sweep, root):
    file = write_sweep(
        notebook=str(root / "notebooks/h2_modularity.ipynb"),
        fixed={"dataset": "mnsit"},
        grid={"density": [0.05, 1.5], "epoch": [1]},
    )
    text = "\n".join(mistakes(file))
    assert "received 'mnsit' (did you mean 'mnist'?) (in all 2 points)" in text
    assert "density: input should be less than or equal to 1, received 1.5 (in 1 of 2 points)" in text
    assert "epoch: no such parameter (did you mean 'epochs'?)" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"fixed": {"x": 1}, "grid": {"x": [1, 2]}}, "x: is given 2 times"),
        ({"grid": {"x": []}}, "x: has no values"),
        ({"grid": {"x": [1, 2, 1]}}, "x: 1 is given twice"),
        ({"grid": {"x": 3}}, "must be a list or a range such as {from: 1, to: 9, step: 2}, received 3"),
        ({"grid": {"x": {"from": 1, "to": 2}}}, "a range needs either 'step' or 'count'"),
        ({"zip": [{"x": [1, 2], "y": [0.5]}]}, "zip: zipped axes must be equally long, received {'x': 2, 'y': 1}"),
        ({"grid": {"x": [1]}, "exclude": [{"x": 2}]}, "exclude {'x': 2}: matches no point"),
        ({"grid": {"x": [1]}, "exclude": [{"x": 1}]}, "no point is left"),
        ({"grdi": {"x": [1]}}, "unknown key 'grdi' (did you mean 'grid'?)"),
        ({"seeds": 0}, "seeds: must be at least 1, received 0"),
        ({"seeds": True}, "must be a list or a range"),
        ({"timeout": -1}, "timeout: input should be greater than 0, received -1"),
        ({"grid": {"name": ["a", "A"]}}, "2 points would share this folder"),
    ],
)
def test_mistakes_of_a_sweep_file(write_notebook, write_sweep, content, words):
    write_notebook()
    assert any(words in m for m in mistakes(write_sweep(**content)))


def test_yaml_traps(write_notebook, tmp_path):
    write_notebook()
    file = tmp_path / "s.yml"
    file.write_text("notebook: small.ipynb\ngrid: {y: [1e-3, 2E-2, 1.5]}\n")
    assert [p.parameters["y"] for p in load_sweep(file).points] == [0.001, 0.02, 1.5]
    file.write_text("notebook: small.ipynb\ngrid:\n  x: [1]\ngrid:\n  x: [2]\n")
    with pytest.raises(ValueError, match="'grid' is given 2 times"):
        load_sweep(file)
    file.write_text("notebook: [unclosed")
    with pytest.raises(ValueError, match=r"s\.yml is not valid YAML"):
        load_sweep(file)
    file.write_text("- 1")
    with pytest.raises(ValueError, match="must be a mapping"):
        load_sweep(file)
    file.write_text("notebook: !!python/object/apply:os.system [exit]")
    with pytest.raises(ValueError, match=r"!!python/object/apply:os\.system is not allowed"):
        load_sweep(file)


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "x" * 101, "nul\x00"])
def test_a_name_cannot_leave_the_folder(write_notebook, write_sweep, name):
    write_notebook()
    if name == "":
        assert load_sweep(write_sweep("fine", name=name)).name == "fine"
        return
    with pytest.raises(ValueError, match="name must be letters"):
        load_sweep(write_sweep(name=name))


def test_values_cannot_leave_the_folder_or_merge(write_notebook, write_sweep):
    write_notebook()
    values = ["../../etc", "a/b", "a b", "a%20b", "..", "ü", "x" * 300, "x" * 299]
    folders = [p.folder for p in load_sweep(write_sweep(grid={"name": values})).points]
    assert all(len(f.parts) == 1 and f.name.startswith("name=") and len(f.name) <= 120 for f in folders)
    assert len(set(folders)) == len(values)


def test_missing_files_are_named(write_sweep, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no sweep file .*nothing\.yml"):
        load_sweep(tmp_path / "nothing.yml")
    with pytest.raises(FileNotFoundError, match=r"must be the path of an \.ipynb file, received 'small\.ipynb'"):
        load_sweep(write_sweep())


def test_any_notebook_has_a_model(write_notebook):
    text = "a: int = 1\nb = 2\nc = True\nd = 'x'\ne = None\nf: float = 1\ng = [1]\nh: list[int] = [1]\ni = 1 + 1"
    model = template_model(write_notebook(parameters=text, name="other"))
    model(a=3, b=0.5, c=False, d="y", e=object(), f=2, g=[], h=[2], i="anything")
    for wrong in ({"a": 0.5}, {"b": "x"}, {"b": True}, {"c": 1}, {"d": 1}, {"f": "x"}, {"g": "x"}, {"h": 1}, {"j": 1}):
        with pytest.raises(ValueError, match=r"[12] validation errors?"):
            model(**wrong)


def test_a_notebook_without_parameters_says_so(write_notebook, write_sweep, tmp_path):
    write_notebook(parameters="")
    with pytest.raises(ValueError, match="tag a cell of Python that assigns their defaults with 'parameters'"):
        load_sweep(write_sweep(grid={"x": [1]}))
    (tmp_path / "small.ipynb").write_text("{")
    with pytest.raises(ValueError, match=r"small\.ipynb cannot be read as a notebook"):
        load_sweep(write_sweep(grid={"x": [1]}))


def test_what_outdates_a_run(write_notebook, write_sweep, monkeypatch):
    write_notebook("x")
    file = write_sweep(grid={"x": [1]})
    [first] = load_sweep(file).jobs()
    assert load_sweep(file).jobs()[0].address == first.address
    assert load_sweep(write_sweep("renamed", grid={"x": [1]}, timeout=9)).jobs()[0].address == first.address
    assert load_sweep(write_sweep("larger", grid={"x": [1, 2]})).jobs()[0].address == first.address
    assert load_sweep(write_sweep("more", grid={"x": [1]}, fixed={"y": 0.5})).jobs()[0].address != first.address
    write_notebook("x + 1")
    assert load_sweep(file).jobs()[0].address != first.address
    write_notebook("x")
    monkeypatch.setattr("nbutils.sweeps.execute.notebook_code", lambda: "other code")
    from nbutils.sweeps.execute import NotebookJob

    assert NotebookJob("n", first.template, first.parameters, code="other").address != first.address


def test_folders_of_pictures_are_looked_for_where_the_caller_works(
    write_notebook, write_sweep, root, tmp_path, monkeypatch
):
    write_notebook(parameters='dataset: str = "digits"\nothers = ["digits"]\ntext = "folders"')
    file = write_sweep(
        grid={"dataset": ["folder:my letters@8", "digits"]}, fixed={"others": ["folder:x"], "text": "a folder:x"}
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    sweep = load_sweep(file)
    here = (tmp_path / "elsewhere").resolve()
    first, second = sweep.points
    assert first.parameters == {
        "others": [f"folder:{here}/x"],
        "text": "a folder:x",
        "dataset": f"folder:{here}/my letters/@8",
    }
    assert first.name == "dataset=folder:my letters@8", "people see what they wrote"
    assert second.parameters["dataset"] == "digits"
    assert [p.name for p in sweep.only(["dataset=folder:my letters@8"]).points] == [first.name]
    own = template_model(root / "notebooks" / "h1_communities.ipynb")
    found = with_full_names(own, {"dataset": "folder:a", "study": "digits 'folder:b c'", "device": "auto"})
    assert found == {"dataset": f"folder:{here}/a", "study": f"digits 'folder:{here}/b c'", "device": "auto"}
    wrong = {"dataset": "folder:a", "seeds": "many"}
    assert with_full_names(own, wrong) == wrong
