from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbformat
import pytest
import yaml
from PIL import Image

from nbutils.data.datasets import DATASETS
from nbutils.pages.publish import PageJob, _inputs, book_toc, committed_studies, page_jobs, publish, toc_files
from nbutils.second.answers import TABLE
from nbutils.second.replication import SECOND
from nbutils.study.archive import REFERENCE
from nbutils.sweeps.engine import Summary, runner


def test_the_order_is_the_toc_s(root, monkeypatch):
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    monkeypatch.setattr("nbutils.pages.publish.committed_studies", lambda _: list(REFERENCE))
    listed = {Path(f).parent.name for f in toc_files(toc)}
    own = [name for name in DATASETS if name in listed and name not in REFERENCE]
    assert book_toc(root, own) == toc


def test_without_tables_the_reference_study_has_no_pages(root, monkeypatch):
    whole = toc_files(yaml.safe_load((root / "_toc.yml").read_text("utf-8")))
    monkeypatch.setattr("nbutils.pages.publish.committed_studies", lambda _: [])
    small = toc_files(book_toc(root, ["digits", "mnist-5k"]))
    gone = set(whole) - set(small)
    folders = {Path(f).parent.name for f in gone}
    assert folders - set(DATASETS) == {"summary"}
    assert set(REFERENCE) <= folders
    assert {Path(f).name for f in gone if "/summary/" in f} == {"specification_curve", "memorising", "evolution"}
    jobs = page_jobs(root, ["digits"], 2, 2)
    assert not {"evolution", "reconstruction", "memorising"} & {job.template.stem for job in jobs}


def test_pages_of_the_reference_study_read_tables(root, monkeypatch):
    monkeypatch.setattr("nbutils.pages.publish.committed_studies", lambda _: ["mnist", "cifar10"])
    jobs = {f"{j.output.parent.name}/{j.output.stem}": dict(j.parameters) for j in page_jobs(root, ["digits"], 2, 2)}
    assert jobs["mnist/h2_modularity"] == jobs["digits/h2_modularity"] | {"dataset": "mnist"}
    assert jobs["digits/h2_modularity"]["study"] == "digits mnist cifar10"
    assert jobs["summary/evolution"] == {"study": "mnist cifar10"}
    assert jobs["summary/memorising"] == {"study": "mnist cifar10"}
    assert jobs["summary/robustness"] == jobs["summary/synthesis"]
    assert jobs["summary/robustness"]["study"] == "digits mnist cifar10"
    assert not any(name.startswith("plantvillage/") for name in jobs)
    monkeypatch.setattr("nbutils.pages.publish.committed_studies", lambda _: ["plantvillage"])
    names = {job.template.stem for job in page_jobs(root, ["digits"], 2, 2)}
    assert {"memorising", "evolution"} <= names
    assert "specification_curve" not in names, "no grid of label noise, no curve"
    with pytest.raises(ValueError, match="mnist belongs to the reference study"):
        page_jobs(root, ["mnist"], 2, 2)


def test_pages_of_the_second_study_are_there_with_their_tables(root, tmp_path):
    """And only then: a data set whose tables are missing has no page, and without any there is no leaderboard."""
    shutil.copytree(root / "notebooks", tmp_path / "notebooks")
    names = ("summary/leaderboard", "second-kmnist/answers", "second-mnist/answers")
    chapters = [{"file": "book/intro"}, *({"file": f"book/pages/{name}"} for name in names)]
    contents = {"format": "jb-book", "root": "book/intro", "parts": [{"caption": "All", "chapters": chapters}]}
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(contents), "utf-8")
    assert toc_files(book_toc(tmp_path, [])) == ["book/intro"]
    folder = tmp_path / SECOND / "kmnist"
    folder.mkdir(parents=True)
    (folder / TABLE).touch()
    leaderboard, answers = page_jobs(tmp_path, [], 1, 1)
    assert leaderboard.output.name == "leaderboard.ipynb"
    assert answers.parameters == (("dataset", "kmnist"),)
    assert answers.title == "KMNIST"


def test_a_smaller_book_leaves_out_other_data_sets(root):
    small = book_toc(root, ["digits"])
    assert not any("/mnist-5k/" in f for f in toc_files(small))
    assert "book/pages/digits/h1_communities" in toc_files(small)
    assert {"book/pages/summary/synthesis", "book/pages/summary/robustness"} <= set(toc_files(small))
    for hypothesis in ("h1_communities", "h2_modularity", "h3_entropy"):
        pages = [file for file in toc_files(small) if file.endswith(f"/{hypothesis}")]
        assert len(pages) == 1 + len(committed_studies(root))
        assert pages[0] == f"book/pages/mnist/{hypothesis}", "which says what all share"
    with pytest.raises(ValueError, match="has no pages for data set 'folder:x'"):
        book_toc(root, ["folder:x"])
    with pytest.raises(ValueError, match="dataset must be one of"):
        book_toc(root, ["cifar"])


def test_pages_below_one_that_is_left_out_take_its_place(root, tmp_path):
    shutil.copytree(root / "notebooks", tmp_path / "notebooks")
    below = [{"file": "book/pages/digits/h1_communities"}, {"file": "book/pages/mnist-5k/h1_communities"}]
    chapters = [
        {"file": "book/pages/compare-h1/compared", "sections": below},
        {"file": "book/api", "sections": below[1:]},
    ]
    contents = {"format": "jb-book", "root": "book/intro", "parts": [{"caption": "All", "chapters": chapters}]}
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(contents), "utf-8")
    [part] = book_toc(tmp_path, ["digits"])["parts"]
    assert part["chapters"] == [below[0], {"file": "book/api"}]


def test_jobs_of_a_book(root, monkeypatch):
    monkeypatch.setattr("nbutils.pages.publish.committed_studies", lambda _: [])
    jobs = {f"{j.output.parent.name}/{j.output.stem}": j for j in page_jobs(root, ["digits", "mnist-5k"], 4, 3)}
    listed = [file for file in toc_files(book_toc(root, ["digits", "mnist-5k"])) if file.startswith("book/pages/")]
    assert [f"book/pages/{name}" for name in jobs] == listed
    report = jobs["sweep-width_and_density/sweep_report"]
    table = "book/results/width_and_density/results.parquet"
    assert dict(report.parameters) == {"results": table, "metric": "modularity above chance"}
    assert report.title == "width and density"
    assert dict(jobs["mnist-5k/h2_modularity"].parameters) == {
        "epochs": 3,
        "device": "cpu",
        "study": "digits mnist-5k",
        "seeds": 4,
        "dataset": "mnist-5k",
        "source": "mixed",
    }
    for page in ("tour/start_here", "watch/watch_training"):
        assert dict(jobs[page].parameters) == {"device": "cpu"}
    for page in ("published/reanalysis", "speed/speed", "processors/processors"):
        assert dict(jobs[page].parameters) == {}
    assert dict(jobs["summary/datasets"].parameters) == {}
    assert jobs["mnist-5k/h1_communities"].title == "MNIST, 5,000 images"
    assert dict(jobs["compare-h2/compared"].parameters) == {"hypothesis": "H2"}
    titles = [(j.template.stem, j.title) for j in jobs.values()]
    assert len(titles) == len(set(titles))


def test_pages_of_committed_tables_are_given_nothing_that_these_would_not_follow(root, monkeypatch):
    monkeypatch.chdir(root)
    jobs = page_jobs(root, ["digits", "mnist-5k"], 10, 10)
    assert {dict(job.parameters).get("source") for job in jobs} == {"tables", None}
    assert not any({"seeds", "epochs", "density"} & set(dict(job.parameters)) for job in jobs)


def test_a_new_page_needs_its_notebook_and_a_line(root, tmp_path):
    """What it is given follows from its cell of parameters and its folder."""
    shutil.copytree(root / "notebooks", tmp_path / "notebooks")
    toc = (root / "_toc.yml").read_text("utf-8")
    (tmp_path / "_toc.yml").write_text(toc.replace("file: book/api", "file: book/pages/mnist-5k/mine"), "utf-8")
    page = make(tmp_path, "pass").template
    lines = (
        'dataset: str = "digits"  # [data set]\nstudy: str = "digits"  # [data sets]\ndevice: str = "cpu"  # [device]'
    )
    page.with_name("mine.ipynb").write_text(page.read_text("utf-8").replace("x: int = 1", json.dumps(lines)[1:-1]))
    [job] = [job for job in page_jobs(tmp_path, ["mnist-5k"], 2, 2) if job.template.stem == "mine"]
    assert dict(job.parameters) == {"dataset": "mnist-5k", "study": "mnist-5k", "device": "cpu"}
    assert job.output == tmp_path / "book/pages/mnist-5k/mine.ipynb"


def test_a_page_is_outdated_when_a_file_that_it_reads_changes(tmp_path):
    job = make(tmp_path, "pass")
    text = job.template.read_text("utf-8").replace("x: int = 1", 'x: int = 1\\ntable: str = \\"table.csv\\"  # [path]')
    content = json.loads(text)
    content["metadata"]["nbutils"] = {"reads": ["figures"]}
    job.template.write_text(json.dumps(content), "utf-8")
    (tmp_path / "figures").mkdir()
    found = []
    for name in ("table.csv", "figures/a.csv", "figures/a.csv"):
        (tmp_path / "table.csv").touch()
        (tmp_path / name).write_text(str(len(found)))
        found.append(_inputs(job))
        assert _inputs(job) == found[-1]
    assert len(set(found)) == 3


def test_the_page_about_data_sets_does_not_depend_on_the_study(root, tmp_path, monkeypatch, fresh_data):
    """It shows all public ones, and is made again when any of them changes."""
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path / "none"))
    fresh_data()
    small, large = (page_jobs(root, names, 4, 3) for names in (["digits"], ["digits", "mnist-5k"]))
    [about], [same] = ([job for job in jobs if job.template.stem == "datasets"] for jobs in (small, large))
    assert about == same
    assert [line.split()[0] for line in _inputs(about)[:-1]] == sorted(DATASETS)


def test_a_data_page_is_outdated_when_the_data_appear_or_change(root, tmp_path, own_store, monkeypatch, fresh_data):
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path / "data"))
    page = next(job for job in page_jobs(root, ["digits"], 1, 1) if job.template.stem == "datasets")
    found = [_inputs(page)]
    for shade in (10, 20):
        for place in ("train/ill", "train/well", "test/ill", "test/well"):
            folder = tmp_path / "data/PlantVillage/PlantVillage64" / place
            folder.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (4, 4), (shade, 0, 0)).save(folder / f"{shade}.png")
        fresh_data()
        found.append(_inputs(page))
    assert len(set(found)) == 3
    assert _inputs(page) == found[-1]


def make(folder: Path, code: str) -> PageJob:
    (folder / "notebooks").mkdir(exist_ok=True)
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# A title\n\n[link](../book/intro.md)"),
            nbformat.v4.new_code_cell("x: int = 1", metadata={"tags": ["parameters"]}),
            nbformat.v4.new_code_cell(code),
        ]
    )
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    template = folder / "notebooks" / "page.ipynb"
    nbformat.write(notebook, template)
    return PageJob(template, folder / "book/pages/digits/page.ipynb", (("x", 5),), "Digits")


def put(*jobs: PageJob):
    with runner(jobs=1) as where:
        return publish(jobs, where)


def last_text(page: Path) -> str:
    return nbformat.read(page, as_version=4).cells[-1].outputs[0].text


def test_a_page_is_executed_finished_and_then_left_alone(tmp_path, own_store):
    job = make(tmp_path, "import nbutils as nb\nnb.record('m', 1)\nprint(x + 1)")
    assert put(job) == Summary(finished=1)
    page = nbformat.read(job.output, as_version=4)
    assert page.cells[0].source == "# A title — Digits\n\n[link](../../intro.md)"
    assert [o.output_type for o in page.cells[-1].outputs] == ["stream"], "records are for tables, not for pages"
    assert page.cells[-1].outputs[0].text == "6\n"
    assert all("remove-cell" in c.metadata.tags for c in page.cells[1:3])
    assert str(tmp_path) not in job.output.read_text()
    before = job.output.stat().st_mtime_ns
    assert put(job) == Summary(cached=1)
    assert job.output.stat().st_mtime_ns == before
    changed = make(tmp_path, "print(x + 2)")
    assert put(changed) == Summary(finished=1)
    assert last_text(job.output) == "7\n"
    job.output.unlink()
    assert put(changed) == Summary(cached=1), "a lost page comes back from the store"
    assert last_text(job.output) == "7\n"


def test_a_section_of_which_nothing_is_shown_is_left_out(tmp_path, own_store):
    job = make(tmp_path, "print('always')")
    notebook = nbformat.read(job.template, as_version=4)
    optional = nbformat.v4.new_markdown_cell("## Where x is large", metadata={"tags": ["if-shown"]})
    code, last = nbformat.v4.new_code_cell("if x > 5: print(x)"), nbformat.v4.new_markdown_cell("## Last")
    folded = nbformat.v4.new_code_cell("if x > 5: print('more')", metadata={"tags": ["hide-input"]})
    notebook.cells[2:2] = [optional, code, last, folded]
    nbformat.write(notebook, job.template)
    for value, sections in ((5, ["## Last"]), (6, ["## Where x is large", "## Last"])):
        put(PageJob(job.template, job.output, (("x", value),), "Digits"))
        page = nbformat.read(job.output, as_version=4)
        assert [c.source for c in page.cells if c.source.startswith("## ")] == sections
        assert sum(c.source.startswith("if x") for c in page.cells) == 2 * (value > 5), "code that shows nothing goes"
        assert last_text(job.output) == "always\n"


def test_a_page_begins_with_its_finding(tmp_path, own_store):
    job = make(tmp_path, "print('numbers')")
    notebook = nbformat.read(job.template, as_version=4)
    finding = nbformat.v4.new_code_cell("print('found', x)", metadata={"tags": ["hide-input", "finding"]})
    notebook.cells += [finding, nbformat.v4.new_code_cell("print('more')")]
    nbformat.write(notebook, job.template)
    put(job)
    page = nbformat.read(job.output, as_version=4)
    shown = [c.outputs[0].text if c.get("outputs") else c.source for c in page.cells]
    assert shown[:3] == ["# A title — Digits", "found 5\n", "[link](../../intro.md)"]
    assert page.cells[1].metadata.tags == ["remove-input"]
    assert page.cells[1].source, "the book leaves out cells without code"
    assert shown[-2:] == ["numbers\n", "more\n"], "and code that shows nothing any more is not there twice"
    nbformat.validate(page)


def test_what_all_pages_of_a_template_share_stands_on_the_first(tmp_path, own_store):
    first = make(tmp_path, "print('numbers')")
    notebook = nbformat.read(first.template, as_version=4)
    once = {"tags": ["once"]}
    notebook.cells[2:2] = [
        nbformat.v4.new_markdown_cell("**Fixed before any number.** The rule.", metadata=once),
        nbformat.v4.new_markdown_cell("## Numbers\n\nHow they are made.", metadata=once),
    ]
    notebook.cells += [
        nbformat.v4.new_code_cell("y = x + 1"),
        nbformat.v4.new_markdown_cell("## Sanity check\n\nOf all pages.", metadata=once),
        nbformat.v4.new_code_cell("print('checked', y)", metadata=once),
    ]
    nbformat.write(notebook, first.template)
    output = tmp_path / "book/pages/mnist/page.ipynb"
    later = PageJob(first.template, output, (("x", 6),), "MNIST", first)
    assert put(first, later) == Summary(finished=2)
    whole, short = (nbformat.read(job.output, as_version=4).cells for job in (first, later))
    assert [c.source for c in whole if "Sanity" in c.source] == ["## Sanity check\n\nOf all pages."]
    assert [c.outputs[0].text for c in whole if c.get("outputs")] == ["numbers\n", "checked 6\n"]
    assert [c.source for c in short if c.cell_type == "markdown"] == [
        "# A title — MNIST\n\nWhat is asked, and how: [Digits](../digits/page.ipynb).",
        "## Numbers",
    ]
    shown = [c for c in short if c.cell_type == "code" and "remove-cell" not in c.metadata.tags]
    assert [(c.outputs[0].text, c.metadata.tags) for c in shown] == [("numbers\n", ["hide-input"])]


def test_pages_know_the_first_of_their_template(root):
    jobs = page_jobs(root, ["digits"], 1, 1)
    pages = [job for job in jobs if job.template.stem == "h3_entropy"]
    assert [job.first for job in pages] == [None, *[pages[0]] * (len(pages) - 1)]
    assert all(job.first is None for job in jobs if job.template.stem in ("synthesis", "robustness"))


def test_parameters_are_part_of_what_makes_a_page_current(tmp_path, own_store):
    job = make(tmp_path, "print(x)")
    put(job)
    put(PageJob(job.template, job.output, (("x", 6),), "Digits"))
    assert last_text(job.output) == "6\n"


def test_a_failing_page_is_reported_and_the_old_one_kept(tmp_path, own_store, capsys):
    good = make(tmp_path, "print(x)")
    put(good)
    text = good.output.read_text()
    failed = good.output.with_suffix(".failed.ipynb")
    found = put(make(tmp_path, "raise ValueError('broken thing')"))
    assert found.failed == {"digits/page": "ValueError: broken thing"}
    assert not found.complete
    assert "failed: digits/page: ValueError: broken thing" in capsys.readouterr().out
    assert good.output.read_text() == text
    cells = nbformat.read(failed, as_version=4).cells
    assert any("broken thing" in str(c.get("outputs")) for c in cells)
    put(make(tmp_path, "print(x)"))
    assert sorted(p.name for p in good.output.parent.iterdir()) == ["page.ipynb"]


def test_half_written_pages_are_written_again(tmp_path, own_store):
    job = make(tmp_path, "print(x)")
    put(job)
    job.output.write_text(job.output.read_text()[:200])
    put(job)
    assert last_text(job.output) == "5\n"


def test_a_page_of_one_hypothesis_is_called_after_it(tmp_path, own_store):
    job = make(tmp_path, "print('numbers')")
    notebook = nbformat.read(job.template, as_version=4)
    notebook.cells[0].source = "# A hypothesis over all data sets\n\ntext"
    nbformat.write(notebook, job.template)
    put(PageJob(job.template, job.output, job.parameters, "H2"))
    assert nbformat.read(job.output, as_version=4).cells[0].source == "# H2 over all data sets\n\ntext"
