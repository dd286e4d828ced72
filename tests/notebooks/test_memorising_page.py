"""The page on memorising, executed over a tiny archive that this test writes."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

from nbutils.data.datasets import load_dataset
from nbutils.measures import MeasureSpec
from nbutils.study.archive import RESULTS, write_archive
from nbutils.study.study import Study, Task, about_data, collect, compute_missing

SMALL = Study(seeds=2, epochs=5, model="mlp:12-6")


def archive(folder: Path, name: str, conditions: tuple[str, ...], grid: str | None) -> None:
    """Tables of a study on digits under the name of a reference study."""
    study = SMALL.model_copy(update={"conditions": conditions, "grid": grid})
    memorising = study.run_spec(labels="random", epochs=8, stop_at=0.95)
    tasks = [*study.tasks(), Task(memorising, MeasureSpec(null_draws=0), "memorising")]
    tasks = [Task(t.run, t.measure, t.parts, ("evolution",) if "conditions" in t.parts else ()) for t in tasks]
    compute_missing(tasks, jobs=1)
    write_archive(folder / RESULTS / name, collect(name, tasks, about_data(load_dataset("digits")), 0))


def test_the_page_works_with_and_without_short_runs(tmp_path, execute_page):
    archive(tmp_path, "mnist", ("true", "random"), None)
    archive(tmp_path, "plantvillage", ("true",), "")
    for study in ("mnist plantvillage", "plantvillage"):
        outcome = execute_page("memorising", study=study)
        assert outcome.status == "done", outcome.reason
        cells = nbformat.reads(outcome.notebook, as_version=4).cells
        outputs = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
        assert not [o for o in outputs if o.output_type in ("error", "stream")], "pages show results, not streams"
        shown = [o.get("data", {}).get("text/html", "") for o in outputs]
        assert sum("nb-callout" in text for text in shown) == 1
        assert sum("<svg" in text for text in shown) == (2 if study.startswith("mnist") else 1)
        (box,) = (text for text in shown if "nb-callout" in text)
        (table,) = (text for text in shown if "the sum, and per active neuron" in text)
        rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("</tr>")[1:-1]]
        for title, kind, _, whole, _, active in rows:
            told = f"{title}, {kind}: {whole} ({active} per active neuron)"
            assert told in box, "the box says what the table shows"
        expected = {"PlantVillage", "MNIST"} if study.startswith("mnist") else {"PlantVillage"}
        assert {row[0] for row in rows} == expected
