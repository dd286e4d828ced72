"""What was computed with other versions of the libraries is never served; what only its text separates always is."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import pandas as pd
import pytest

import nbutils.support.provenance
from nbutils.measures import MeasureSpec
from nbutils.pages.publish import PageJob, _notebook_job, publish
from nbutils.runs.run import made_elsewhere, run_address, run_once
from nbutils.runs.spec import RunSpec
from nbutils.study.extras import extra, has_extra
from nbutils.study.measure_run import is_measured, measure_run
from nbutils.support.provenance import again_because, differences, environment
from nbutils.support.store import Store
from nbutils.sweeps.engine import Summary, runner
from nbutils.sweeps.execute import NotebookJob, Outcome, execute, keep, kept
from nbutils.sweeps.inventory import inventory, prune

SMALL = RunSpec(epochs=2, model="mlp:12-6", probe=300)
VERSIONS = nbutils.support.provenance._versions


@pytest.fixture
def with_torch(monkeypatch):
    """Makes this process believe that another torch is installed."""

    def believe(version: str) -> None:
        monkeypatch.setattr("nbutils.support.provenance._versions", lambda: {**VERSIONS(), "torch": version})

    return believe


def test_the_environment_is_what_can_change_a_number(monkeypatch):
    monkeypatch.delenv("NBUTILS_PORTABLE", raising=False)
    found = environment()
    assert set(found) == {"python", *nbutils.support.provenance.PACKAGES}
    assert found["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert found["pandas"] == pd.__version__
    assert differences(found) == {}
    monkeypatch.setenv("NBUTILS_PORTABLE", "1")
    assert environment() == found | {"portable": True}
    assert differences(found) == {"portable mode": ("off", "on")}
    monkeypatch.setenv("NBUTILS_PORTABLE", "0")
    assert environment() == found


def test_finding_versions_imports_nothing():
    code = """
import sys
from nbutils.support.provenance import environment
environment()
assert not {"numpy", "torch", "scipy", "pandas", "numba"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_runs_measures_and_extras_of_other_versions_are_not_served(own_store, with_torch):
    with_torch("2.12.0")
    first = run_once(SMALL)
    measure_run(first, MeasureSpec(null_draws=0))
    extra(first, "evolution")
    here = {**environment()}
    with_torch("2.13.0")
    assert not is_measured(SMALL, MeasureSpec(null_draws=0))
    assert not has_extra(SMALL, "evolution")
    assert made_elsewhere([SMALL, SMALL, SMALL.model_copy(update={"seed": 5})]) == [here]
    assert again_because(made_elsewhere([SMALL])) == [
        "1 result was made with torch 2.12.0; here is torch 2.13.0, so it is computed again."
    ]
    second = run_once(SMALL)
    assert second.address != first.address == run_address(SMALL, here)
    assert made_elsewhere([SMALL]) == []
    measure_run(first, MeasureSpec(null_draws=0))  # a run that came from elsewhere, measured here
    assert len(Store("measures").addresses()) == 2
    table = inventory().set_index("run")
    assert table["status"].to_dict() == {first.address: "other versions", second.address: "done"}
    assert table["versions"].to_dict() == {first.address: "torch 2.12.0", second.address: ""}
    with_torch("2.12.0")
    assert run_once(SMALL).record == first.record, "back there, it is found again"
    assert prune()[0] == 2, "the run of 2.13.0, and what was measured with 2.13.0"
    assert inventory()["run"].tolist() == [first.address]
    assert has_extra(SMALL, "evolution")


def test_reasons_are_counted_for_each_environment():
    here = environment()
    others = [{**here, "torch": "1.0"}, {**here, "torch": "1.0"}, {**here, "python": "3.9", "numpy": "1.0"}]
    assert again_because(others) == [
        f"2 results were made with torch 1.0; here is torch {here['torch']}, so they are computed again.",
        f"1 result was made with Python 3.9, numpy 1.0; here is Python {here['python']}, numpy {here['numpy']}, "
        "so it is computed again.",
    ]
    assert again_because([]) == []


def make(folder: Path, code: str = "print(x + 1)", title: str = "# A title", **first: object) -> PageJob:
    v4 = nbformat.v4
    (folder / "notebooks").mkdir(exist_ok=True)
    cells = [
        v4.new_markdown_cell(title, id="title"),
        v4.new_code_cell("x: int = 1", metadata={"tags": ["parameters"]}, id="parameters"),
        v4.new_code_cell(code, id="code", **first),
    ]
    notebook = v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "notebooks/page.ipynb")
    return PageJob(folder / "notebooks/page.ipynb", folder / "book/pages/digits/page.ipynb", (("x", 5),), "Digits")


def put(*jobs: PageJob) -> Summary:
    with runner(jobs=1) as where:
        return publish(jobs, where)


def rewrite(job: PageJob, change) -> None:
    """Change a template as its author would."""
    template = nbformat.read(job.template, as_version=4)
    change(template)
    nbformat.write(template, job.template)


def test_an_edit_of_text_starts_no_kernel_and_is_on_the_page(tmp_path, own_store, monkeypatch):
    job = make(tmp_path)
    assert put(job) == Summary(finished=1)
    before = nbformat.read(job.output, as_version=4)
    monkeypatch.setattr("nbutils.sweeps.engine.execute", lambda *_args, **_more: pytest.fail("executed again"))

    def edit(template):
        template.cells[0].source = "# Another title\n\n[link](../book/intro.md)"
        template.cells.insert(2, nbformat.v4.new_markdown_cell("Between.", id="between"))
        template.cells.append(nbformat.v4.new_raw_cell("At the end.", id="raw"))
        template.cells[3].metadata["tags"] = ["remove-input"]

    rewrite(job, edit)
    assert put(job) == Summary(cached=1)
    page = nbformat.read(job.output, as_version=4)
    nbformat.validate(page)
    kinds = [(cell.cell_type, cell.id) for cell in page.cells]
    injected = before.cells[2]
    assert kinds == [
        ("markdown", "title"),
        ("code", "parameters"),
        ("code", injected.id),
        ("markdown", "between"),
        ("code", "code"),
        ("raw", "raw"),
    ]
    assert page.cells[0].source == "# Another title — Digits\n\n[link](../../intro.md)"
    assert page.cells[2] == injected
    assert page.cells[3].source == "Between."
    assert page.cells[4].outputs == before.cells[-1].outputs != []
    assert page.cells[4].execution_count == before.cells[-1].execution_count
    assert page.cells[4].metadata.tags == ["remove-input"]

    stamp = job.output.stat().st_mtime_ns
    assert put(job) == Summary(cached=1)
    assert job.output.stat().st_mtime_ns == stamp
    make(tmp_path)  # the edit undone
    put(job)
    assert nbformat.read(job.output, as_version=4) == before


@pytest.mark.parametrize(
    "edit",
    [
        lambda t: t.cells[2].update(source="print(x + 2)"),
        lambda t: t.cells.append(nbformat.v4.new_code_cell("x")),
        lambda t: t.cells.pop(2),
        lambda t: t.cells.reverse(),
        lambda t: t.cells[2].metadata.update(tags=["raises-exception"]),
        lambda t: t.cells[2].update(cell_type="markdown"),
        lambda t: t.metadata.kernelspec.update(name="another"),
    ],
    ids=["source", "more", "fewer", "order", "effective tag", "type", "kernel"],
)
def test_an_edit_of_what_is_executed_counts(tmp_path, edit):
    def address() -> str:
        return NotebookJob("page", job.template.read_text("utf-8"), job.parameters, code="", environment={}).address

    job = make(tmp_path)
    first = address()
    assert address() == first
    rewrite(job, edit)
    assert address() != first


def test_text_of_templates_without_cell_identifiers(tmp_path, own_store, monkeypatch):
    job = make(tmp_path)

    def old(template):
        template.nbformat_minor = 4
        for cell in template.cells:
            cell.pop("id")

    rewrite(job, old)
    assert put(job) == Summary(finished=1)
    monkeypatch.setattr("nbutils.sweeps.engine.execute", lambda *_args, **_more: pytest.fail("executed again"))
    rewrite(job, lambda template: template.cells[0].update(source="New."))
    for _ in range(2):
        assert put(job) == Summary(cached=1)
        page = nbformat.read(job.output, as_version=4)
        nbformat.validate(page)
        assert [cell.source for cell in page.cells] == ["New.", "x: int = 1", "# Parameters\nx = 5\n", "print(x + 1)"]
        assert page.cells[-1].outputs[0].text == "6\n"


def test_two_pages_of_one_code_execute_once_and_keep_their_own_text(tmp_path, own_store):
    one = make(tmp_path)
    (tmp_path / "other").mkdir()
    other = make(tmp_path / "other", title="# Something else")
    text = [job.template.read_text("utf-8") for job in (one, other)]
    folder = str(tmp_path)
    addresses = {NotebookJob("p", t, one.parameters, folder).address for t in text}
    assert len(addresses) == 1
    put(one, other)
    titles = [nbformat.read(job.output, as_version=4).cells[0].source for job in (one, other)]
    assert titles == ["# A title — Digits", "# Something else — Digits"]


def test_a_failed_notebook_is_shown_as_it_was_executed(tmp_path, own_store):
    job = make(tmp_path, "raise ValueError('broken')")
    assert not put(job).complete
    rewrite(job, lambda template: template.cells[0].update(source="New text."))
    assert not put(job).complete
    failed = nbformat.read(job.output.with_suffix(".failed.ipynb"), as_version=4)
    assert "New text." in [cell.source for cell in failed.cells], "failed ones are tried again"


def test_pages_of_other_versions_are_executed_again_and_say_why(tmp_path, own_store, capsys):
    job = make(tmp_path)
    elsewhere = replace(_notebook_job(job), environment={**environment(), "scipy": "1.0"})
    keep(replace(Outcome.failure(elsewhere, ""), status="done", notebook=elsewhere.template))
    assert put(job) == Summary(finished=1)
    said = capsys.readouterr().out
    assert f"1 result was made with scipy 1.0; here is scipy {environment()['scipy']}, so it is computed again." in said
    assert len(Store("notebooks").addresses()) == 2
    assert put(job) == Summary(cached=1)
    assert "computed again" not in capsys.readouterr().out


def test_a_worker_with_other_versions_refuses(tmp_path, own_store):
    there = {**environment(), "torch": "2.12.0", "python": "3.9"}
    job = NotebookJob("page", make(tmp_path).template.read_text("utf-8"), (("x", 5),), environment=there)
    found = execute(job)
    here = environment()
    assert found.status == "failed"
    assert found.reason == (
        f"libraries differ between machines (Python {here['python']} here, 3.9 where the sweep was started; "
        f"torch {here['torch']} here, 2.12.0 where the sweep was started); install the same versions everywhere"
    )
    assert kept(job.address) is None


@pytest.mark.parametrize("field", ["status", "seconds", "measurements", "provenance", "code", "parameters"])
def test_damage_to_any_field_of_a_record_is_noticed(tmp_path, own_store, field):
    put(make(tmp_path, "import nbutils as nb\nnb.record('m', 1)"))
    store = Store("notebooks")
    (where,) = store.addresses()
    file = store.path(where) / "record.json"
    record = json.loads(file.read_text("utf-8"))
    good = kept(where)
    record[field] = {"seconds": 0.25, "measurements": []}.get(field, "done" if field != "status" else "failed")
    file.write_text(json.dumps(record, indent=1), "utf-8")
    assert good is not None
    with pytest.warns(RuntimeWarning, match=r"is damaged \(record.json is not the one that was written\)"):
        assert kept(where) is None
    assert not file.exists()
