"""One table of bad input: command lines, sweep files, notebooks and their parameters.

Each row says what is given, and which words the one sentence must hold. Everything is refused with exit code 2, before
the first kernel starts, without a traceback, in a few lines.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from nbutils.__main__ import main
from nbutils.sweeps.parameters import check_parameters
from nbutils.sweeps.tables import AFTER, BEFORE

PARAMETERS = 'x: int = 1\ny: float = 0.5\nname: str = "a"\nseed: int = 0\nv = None'
MOST_LINES = 9  # the usage of a command and its error


def notebook(parameters: str = PARAMETERS, **metadata: object) -> dict:
    cell = nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}, id="parameters")
    found = nbformat.v4.new_notebook(cells=[cell])
    found.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    found.metadata.update(metadata)
    return found


def results() -> pd.DataFrame:
    """Two metrics with numbers, one with words, over a number, a truth value, a text and a list."""
    rows = []
    for i, density in enumerate((0.02, 0.05)):
        for flag in (True, False):
            shared = {"run": f"{len(rows):016d}", "sweep": "s", "notebook": "small"}
            shared |= {"density": density, "flag": flag, "word": "01", "widths": json.dumps([i, 2]), "status": "done"}
            for metric, value, text in (("sum", density + flag, ""), ("verdict", None, "supported")):
                rows.append({**shared, "metric": metric, "value": value, "text": text, "seconds": 1.0})
    return pd.DataFrame(rows, columns=[*BEFORE, "density", "flag", "word", "widths", *AFTER])


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with good and bad files of every kind."""
    folder = tmp_path_factory.mktemp("workshop")
    nbformat.write(notebook(), folder / "small.ipynb")
    (folder / "good.yml").write_text("notebook: small.ipynb\ngrid: {x: [1, 2], y: [0.02, 0.5]}\n")
    results().to_parquet(folder / "results.parquet", index=False)
    results().to_csv(folder / "results.csv", index=False)
    results().drop(columns="text").to_csv(folder / "cut.csv", index=False)
    results().assign(value="much").to_csv(folder / "wordy.csv", index=False)
    results().assign(value="much").to_parquet(folder / "wordy.parquet", index=False)
    (folder / "foreign.csv").write_text("a,b\n1,2\n")
    (folder / "ragged.csv").write_text('a,b\n1,2,3\n"\n')
    (folder / "none.parquet").write_bytes(b"PAR1 not really")
    (folder / "binary.csv").write_bytes(bytes(range(256)))
    (folder / "empty.csv").write_bytes(b"")
    (folder / "empty.parquet").write_bytes(b"")
    pd.DataFrame({"a": [1]}).to_parquet(folder / "foreign.parquet")
    (folder / "file").write_text("x")
    (folder / "folder.yml").mkdir()
    (folder / "folder.csv").mkdir()
    (folder / "broken").mkdir()
    (folder / "broken/_toc.yml").write_text("format: [unclosed")
    (folder / "listed").mkdir()
    (folder / "listed/_toc.yml").write_text("- a\n- b\n")
    (folder / "bare").mkdir()
    (folder / "bare/_toc.yml").write_text("format: jb-book\nroot: intro\n")
    (folder / "bare/README.md").write_text("nothing\n")
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.fixture
def here(workshop: Path, own_store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in that folder; nothing may have been started."""
    monkeypatch.chdir(workshop)
    yield workshop
    started = [own_store.exists(), (workshop / "runs").exists()]
    shutil.rmtree(workshop / "runs", ignore_errors=True)
    assert not any(started), "something was computed"


def refused(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(arguments)
    except SystemExit as stop:  # as argparse ends
        code = stop.code
    said = capsys.readouterr()
    assert code == 2, said.out + said.err
    assert words in said.err
    assert "Traceback" not in said.err
    assert len(said.err.splitlines()) <= MOST_LINES
    assert max(map(len, said.err.splitlines())) < 1000


LONG = "x" * 5000
NUMBER = "must be a whole number, at least 1"
COMMANDS = [
    # No command, unknown ones, unknown options.
    ("", "the following arguments are required: command"),
    ("train", "invalid choice: 'train'"),
    ("run --sedes 3", "no option --sedes (did you mean '--seeds'?)"),
    ("measure --model m:f --data d.npz --imgs=5", "no option --imgs (did you mean '--images'?)"),
    ("run --with-coffee 3", "unrecognized arguments: --with-coffee"),
    ("runs '\x1b[2J'", r"unrecognized arguments: \x1b[2J"),
    ("run --device " + "x" * 5000, "xxx…"),
    ("results results.csv --where 'density=\x1b[2J'", r"--where density=\x1b[2J leaves no row"),
    ("results", "the following arguments are required: file"),
    ("sweep", "the following arguments are required: file"),
    ("report", "the following arguments are required: file"),
    # Numbers of every command.
    ("run --seeds many", "argument --seeds: must be a whole number, received 'many'"),
    ("run --seeds 1.5", "must be a whole number, received '1.5'"),
    ("run --seeds nan", "must be a whole number, received 'nan'"),
    ("run --seeds ''", "must be a whole number, received ''"),
    ("run --seeds 0", "seeds: input should be greater than or equal to 1, received 0"),
    ("run --seeds -1", "seeds: input should be greater than or equal to 1, received -1"),
    ("run --seeds 1000000000000", "seeds: input should be less than or equal to 1000, received 1000000000000"),
    ("run --epochs 0", "epochs: input should be greater than or equal to 1, received 0"),
    ("run --epochs 99999999", "epochs: input should be less than or equal to 10000"),
    ("pages --root {root} --epochs 0", "epochs: input should be greater than or equal to 1, received 0"),
    ("glance --root {root} --seeds 0", "seeds: input should be greater than or equal to 1, received 0"),
    ("run --jobs 0", NUMBER),
    ("run --jobs -2", NUMBER),
    ("run --jobs 1.5", NUMBER),
    ("run --jobs ''", NUMBER),
    ("run --jobs ²", NUMBER),
    ("run --jobs 99999999999", "at most 10,000"),
    (f"run --jobs {'9' * 5000}", "at most 10,000"),
    ("pages --jobs nan", NUMBER),
    ("glance --jobs many", NUMBER),
    ("study --jobs 0", NUMBER),
    ("sweep good.yml --jobs 0", NUMBER),
    ("sweep good.yml --max-failures 0", NUMBER),
    ("sweep good.yml --max-failures few", NUMBER),
    ("sweep good.yml --timeout 0", NUMBER),
    ("sweep good.yml --timeout -5", NUMBER),
    ("sweep good.yml --timeout nan", NUMBER),
    ("sweep good.yml --timeout soon", NUMBER),
    ("sweep good.yml --timeout 1e9", NUMBER),
    (f"sweep good.yml --timeout {'9' * 400}", "at most 10,000,000"),
    # Data sets and devices.
    ("run --datasets mnsit", "dataset must be one of digits, mnist-5k, mnist"),
    ("run --datasets ''", "dataset must be one of"),
    ("run --datasets", "expected at least one argument"),
    ("run --datasets folder:/dev/null/x", "/dev/null/x"),
    ("run --device gpu", "invalid choice: 'gpu'"),
    ("pages --device ''", "invalid choice: ''"),
    ("study minst", "invalid choice: 'minst'"),
    ("data check", "invalid choice: 'check'"),
    ("data verify nope", "dataset must be one of digits"),
    ("runs --dataset nope", "dataset must be one of digits, mnist-5k"),
    ("runs --dataset nope", "the store has runs on nothing"),
    ("runs --dataset ''", "dataset must be one of"),
    ("runs --prune --dataset digits", "--prune removes from the whole store"),
    # Folders.
    ("pages --root /dev/null/x", "--root must be the project's folder, received '/dev/null/x'"),
    ("pages --root file", "--root must be the project's folder, received 'file'"),
    ("pages --root broken", "_toc.yml is not valid YAML"),
    ("pages --root broken --plan", "_toc.yml is not valid YAML"),
    ("pages --root listed", "_toc.yml has no pages for data set 'digits'"),
    ("glance --root /dev/null/x", "--root must be the project's folder"),
    ("glance --root bare", "README.md needs the two lines"),
    ("glance --root broken", "README.md"),
    ("study --root /dev/null/x --plan", "--root must be the project's folder"),
    ("study --root file --finished", "--root must be the project's folder"),
    ("study --plan --finished", "not allowed with argument"),
    # Sweep files and options.
    ("sweep nothing.yml", "no sweep file nothing.yml"),
    ("sweep ''", "no sweep file ."),
    ("sweep folder.yml", "no sweep file folder.yml"),
    ("sweep loop", "no sweep file loop"),
    (f"sweep {LONG}", "no sweep file"),
    ("sweep small.ipynb", "small.ipynb"),
    ("sweep results.parquet", "results.parquet"),
    ("sweep good.yml --only", "expected at least one argument"),
    ("sweep good.yml --only x", "--only must be key=value with a key of x, y; received 'x'"),
    ("sweep good.yml --only ''", "--only must be key=value"),
    ("sweep good.yml --only z=1", "--only must be key=value with a key of x, y; received 'z=1'"),
    ("sweep good.yml --only x=7", "leaves none of the 4 points: x is 1, 2, received '7'"),
    ("sweep good.yml --only y=0.03", "y is 0.02, 0.5, received '0.03'"),
    ("sweep good.yml --only x=1 y=nan", "y is 0.02, 0.5, received 'nan'"),
    (f"sweep good.yml --only x={LONG}", "x is 1, 2"),
    ("sweep good.yml --output file", "file"),
    ("sweep good.yml --output file/below", "not a directory"),
    (f"sweep good.yml --output {LONG}", "file name too long"),
    ("sweep good.yml --scheduler nowhere", "scheduler"),
    ("sweep good.yml --scheduler ''", "scheduler"),
    ("sweep good.yml --scheduler foo://bar", "scheduler"),
    ("sweep good.yml --scheduler tcp://127.0.0.1:99999999", "scheduler"),
    # Tables.
    ("results nothing.csv", "no results at nothing.csv; run the sweep first"),
    ("results good.yml", "run the sweep first"),
    ("results ''", "no results at ."),
    ("results folder.csv", "no results at folder.csv"),
    (f"results {LONG}", "no results at"),
    ("results foreign.csv", "is not a table of results: it has no column run, sweep"),
    ("results foreign.parquet", "is not a table of results: it has no column run, sweep"),
    ("results cut.csv", "is not a table of results: it has no column text"),
    ("results wordy.csv", "column 'value' holds 'much', which is no number"),
    ("results wordy.parquet", "column 'value' holds no numbers"),
    ("results ragged.csv", "cannot be read as a table"),
    ("results none.parquet", "cannot be read as a table"),
    ("results empty.parquet", "cannot be read as a table"),
    ("results empty.csv", "cannot be read as a table"),
    ("results binary.csv", "binary.csv"),
    ("results file", "file"),
    ("results small.ipynb", "small.ipynb"),
    ("results results.csv --metric NOPE", "--metric must be one of sum, verdict, received 'NOPE'"),
    ("results results.csv --metric sums", "(did you mean 'sum'?)"),
    ("results results.csv --metric ''", "--metric must be one of sum, verdict"),
    ("results results.csv --pivot density flag", "--metric must be one of sum, verdict, received None"),
    ("results results.csv --pivot density flag --metric NOPE", "--metric must be one of sum, verdict"),
    (
        "results results.csv --pivot density flag --metric verdict",
        "--metric verdict holds text, such as 'supported', which has no mean; metrics with numbers are sum",
    ),
    ("results results.csv --pivot density nope --metric sum", "no column 'nope'"),
    ("results results.csv --pivot density density --metric sum", "--pivot needs two different columns"),
    ("results results.csv --pivot density value --metric sum", "--pivot needs two different columns"),
    ("results results.csv --pivot metric flag --metric sum", "--pivot needs two different columns"),
    ("results results.csv --pivot density", "expected 2 arguments"),
    ("results results.csv --where", "expected at least one argument"),
    ("results results.csv --where density", "--where must be column=value, received 'density'"),
    ("results results.csv --where densty=0.02", "no column 'densty' (did you mean 'density'?)"),
    ("results results.csv --where density=0.03", "leaves no row: density is 0.02, 0.05"),
    ("results results.csv --where density=much", "leaves no row: density is 0.02, 0.05"),
    ("results results.csv --where density=", "leaves no row: density is 0.02, 0.05"),
    ("results results.csv --where flag=yes", "leaves no row: flag is True, False"),
    ("results results.csv --where flag=true density=1", "leaves no row: density is 0.02, 0.05"),
    ("results results.parquet --where word=1", "leaves no row: word is 01"),
    ("results results.csv --sort nope", "no column 'nope'"),
    ("results results.csv --sort ''", "no column ''"),
    ("results results.csv --reverse", "--reverse is the order of --sort"),
    # Reports: of the same tables, found before a kernel starts.
    ("report nothing.yml", "no sweep file nothing.yml"),
    ("report foreign.csv", "is not a table of results"),
    ("report none.parquet", "cannot be read as a table"),
    ("report results.csv --metric NOPE", "--metric must be one of sum, verdict"),
]


@pytest.mark.parametrize(("line", "words"), COMMANDS, ids=[line[:60] for line, _ in COMMANDS])
def test_command_lines(line, words, here, root, capsys, monkeypatch):
    monkeypatch.setattr("nbutils.support.workers.PATIENCE", (1, 1))  # for a scheduler that is not there
    refused([word.replace("{root}", str(root)) for word in shlex.split(line)], words, capsys)


FILE = "notebook: small.ipynb\n"
LAUGHS = FILE + "fixed:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
LAUGHS += "".join(f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
MERGES = FILE + "fixed:\n  a0: &a0 {x0: 1, y0: 2}\n"
MERGES += "".join(f"  a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}], b{i}: 1}}\n" for i in range(1, 12))
NESTED = FILE + "fixed:\n  a0: &a0 [x]\n" + "".join(f"  a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 500))
SWEEPS = [
    # How many points, by arithmetic.
    (FILE + "seeds: 1000000", "must be at most 100,000, the number of points that a sweep may have, received 1000000"),
    (FILE + "seeds: 100000000000", "must be at most 100,000"),
    (FILE + "seeds: " + "9" * 5000, "a number of 5000 characters is too long"),
    (
        FILE + "grid: {x: {from: 1, to: 1000, step: 1}, y: {from: 1, to: 1000, count: 1000}}\nseeds: 900",
        "asks for 900,000,000 points; a sweep may have 100,000",
    ),
    (
        FILE + "zip: [{x: {from: 1, to: 90000, step: 1}}]\nseeds: {from: 1, to: 90000, count: 90000}",
        "asks for 8,100,000,000 points",
    ),
    (FILE + "seeds: {from: 0, to: 1.0e+18, step: 1}", "a range may have at most 100000 values"),
    (FILE + "grid: {y: {from: 0, to: 1, step: 1.0e-300}}", "a range may have at most 100000 values"),
    (FILE + "grid: {y: {from: 0, to: 1, count: 1000000}}", "less than or equal to 100000"),
    # Ranges of what is no number.
    (FILE + "grid: {y: {from: 0, to: .inf, count: 3}}", "'to' of a range must be a number from -1e18 to 1e18"),
    (FILE + "grid: {y: {from: .nan, to: 1, count: 3}}", "'from' of a range must be a number"),
    (FILE + "grid: {y: {from: 0, to: 1, step: .nan}}", "greater than 0, received nan"),
    (FILE + "grid: {y: {from: 0, to: 1, step: .inf}}", "'step' of a range must be a number"),
    (FILE + "grid: {y: {from: a, to: 1, count: 3}}", "from: input should be a valid number, received 'a'"),
    (FILE + "grid: {y: {from: 0, to: 1, count: 3, extra: 1}}", "extra"),
    (FILE + "grid: {y: 0.5}", "must be a list or a range"),
    (FILE + "grid: {y: }", "must be a list or a range"),
    (FILE + "seeds: many", "must be a list or a range"),
    (FILE + "seeds: true", "must be a list or a range"),
    (FILE + "seeds: -5", "seeds: must be at least 1, received -5"),
    (FILE + "seeds: []", "seed: has no values"),
    (FILE + "zip: [{}]", "zip: a group names no parameter"),
    (FILE + "grid: {x: [1, 2]}\nexclude: [{x: true}]", "exclude {'x': True}: matches no point"),
    (FILE + "grid: {y: [1, 1.0]}", "y: 1.0 is given twice"),
    # What YAML would take for something else.
    (FILE + "grid: {name: [2024-01-01]}", "2024-01-01 would be read as a date; quote it: '2024-01-01'"),
    (FILE + "fixed: {name: 2024-01-01 10:00:00}", "would be read as a date"),
    (FILE + "fixed: {name: !!timestamp '2024-01-01'}", "!!timestamp is not allowed"),
    (FILE + "fixed: {v: !!bool 'maybe'}", "maybe means true or false to some readers of YAML only"),
    (FILE + "fixed: {v: yes}", "yes means true or false to some readers of YAML only"),
    (FILE + "fixed: {v: Off}", "Off means true or false to some readers of YAML only"),
    (FILE + "fixed: {v: 010}", "'010' is not the same to all readers of YAML"),
    (FILE + "fixed: {v: 08}", "'08' is not the same to all readers of YAML"),
    (FILE + "fixed: {v: 1:30}", "'1:30' is not the same to all readers of YAML"),
    (FILE + "fixed: {v: 1_000}", "'1_000' is not the same to all readers of YAML"),
    (FILE + "fixed: {v: !!binary aGk=}", "line 2: !!binary is not allowed; a sweep file holds text, numbers"),
    (FILE + "fixed: {v: !!set {a, b}}", "!!set is not allowed"),
    (FILE + "fixed: {v: !!omap [a: 1]}", "!!omap is not allowed"),
    (FILE + "fixed: {v: !!python/tuple [1]}", "!!python/tuple is not allowed"),
    (FILE + "fixed: {v: !!python/object/apply:os.system [ls]}", "!!python/object/apply:os.system is not allowed"),
    (FILE + "fixed: {v: !mine 1}", "!mine is not allowed"),
    (FILE + "fixed: {x: !!int abc}", "not valid YAML"),
    (FILE + "fixed: {v: !!str [1]}", "not valid YAML: line 2"),
    # Keys.
    (FILE + "fixed: {? [1, 2] : 3}", "line 2: a list or a mapping cannot be a key"),
    (FILE + "? {a: 1}\n: 3", "a list or a mapping cannot be a key"),
    (FILE + "fixed: {1: 2}", "'1' as a key is not text"),
    (FILE + "fixed: {no: 2}", "'no' as a key is not text"),
    (FILE + "fixed: {~: 2}", "'~' as a key is not text"),
    (FILE + "fixed: {x: 1, x: 2}", "'x' is given 2 times"),
    (FILE + "fixed: {v: {a: 1, a: 2}}", "'a' is given 2 times"),
    # Anchors, aliases, depth.
    (LAUGHS, "says more than 200,000 values when its aliases are written out"),
    (MERGES, "nested more than 12 levels deep"),
    (NESTED, "nested more than 12 levels deep"),
    (FILE + "fixed: {v: &a [*a]}", "this value refers to itself"),
    (FILE + "fixed: {v: &a {k: *a}}", "this value refers to itself"),
    (FILE + "fixed: {v: *nope}", "found undefined alias 'nope'"),
    (FILE + "fixed: {v: &a 1, x: &a 2}", "found duplicate anchor 'a'"),
    (FILE + "fixed: {<<: 3}", "expected a mapping or list of mappings for merging"),
    (FILE + "fixed: {v: " + "[" * 100 + "]" * 100 + "}", "nested more than 12 levels deep"),
    (FILE + "fixed: {v: " + "[" * 3000 + "]" * 3000 + "}", "nested more than 12 levels deep"),
    # The file itself.
    ("", "s.yml is empty"),
    ("# nothing but this\n", "s.yml is empty"),
    ("- 1\n", "must be a mapping with 'notebook' and 'grid', received list"),
    ("just words\n", "must be a mapping with 'notebook' and 'grid', received str"),
    (FILE + "grid:\n\tx: [1]", "line 3: while scanning for the next token, found character '\\t'"),
    (FILE + "--- \n" + FILE, "expected a single document"),
    ("notebook: [unclosed", "s.yml is not valid YAML: line 1"),
    (b"notebook: sm\xe4ll.ipynb", "s.yml is not UTF-8 text"),
    (FILE.encode("utf-16"), "s.yml is not UTF-8 text"),
    (FILE + "name: a\0b", "special characters are not allowed"),
    (FILE + "about: " + "x" * 1_000_001, "bytes; a sweep file may have 1,000,000"),
    (FILE + 'fixed: {name: "\\ud800"}', "half of a character pair"),
    # Fields.
    (FILE + "timeout: 0", "timeout: input should be greater than 0, received 0"),
    (FILE + "timeout: -1", "timeout: input should be greater than 0, received -1"),
    (FILE + "timeout: .nan", "timeout: input should be less than or equal to 10000000, received nan"),
    (FILE + "timeout: .inf", "timeout: input should be less than or equal to 10000000, received inf"),
    (FILE + "timeout: soon", "timeout: input should be a valid number, received 'soon'"),
    (FILE + "timeout: true", "timeout: input should be a valid number, received True"),
    (FILE + "grdi: {x: [1]}", "unknown key 'grdi' (did you mean 'grid'?)"),
    (FILE + "grid: [1]", "grid: input should be a valid dictionary, received [1]"),
    (FILE + "fixed: 3", "fixed: input should be a valid dictionary"),
    (FILE + "zip: {x: [1]}", "zip: input should be a valid list"),
    (FILE + "exclude: {x: 1}", "exclude: input should be a valid list"),
    (FILE + "name: [a]", "name: input should be a valid string"),
    (FILE + "name: ../up", "name must be letters"),
    ("grid: {x: [1]}", "notebook: field required"),
    ("notebook: 3", "notebook: input should be a valid string, received 3"),
    ("notebook: ''", "must be the path of an .ipynb file, received ''"),
    ("notebook: .", "must be the path of an .ipynb file"),
    ("notebook: /etc/passwd", "must be the path of an .ipynb file"),
    ('notebook: "a\\0b.ipynb"', "must be the path of an .ipynb file"),
    ("notebook: " + "x" * 5000 + ".ipynb", "must be the path of an .ipynb file"),
    # Values against the notebook's parameters.
    (FILE + "fixed: {x: " + "z" * 10_000 + "}", "x: input should be a valid integer, received 'zzz"),
    (FILE + "grid: {x: [[1, 2], [3]]}", "x: input should be a valid integer, received [1, 2] (in 1 of 2 points)"),
    (FILE + "fixed: {nane: b}", "nane: no such parameter (did you mean 'name'?)"),
]


@pytest.mark.parametrize(("content", "words"), SWEEPS, ids=[str(content[:70]) for content, _ in SWEEPS])
def test_sweep_files(content, words, here, capsys):
    (here / "s.yml").write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(["sweep", "s.yml"], words, capsys)


def test_a_thousand_mistakes_are_counted_and_twenty_are_told(here, capsys):
    (here / "s.yml").write_text(FILE + f"grid: {{x: [{', '.join(f'a{i}' for i in range(1000))}]}}")
    assert main(["sweep", "s.yml"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "error: 1000 mistakes in s.yml:"
    assert lines[-1] == "- and 980 more"
    assert len(lines) == 22


NOTEBOOKS = [
    ("", "cannot be read as a notebook"),
    ("{", "cannot be read as a notebook"),
    ("[" * 100_000, "cannot be read as a notebook"),
    (b"\xff\xfe\x00", "cannot be read as a notebook"),
    ("[]", "is no notebook: it has no 'nbformat'"),
    ('{"a": 1}', "is no notebook: it has no 'nbformat'"),
    ({**notebook(), "nbformat": 3}, "is a notebook of format 3; open it in Jupyter and save it"),
    ({**notebook(), "nbformat": "four"}, "is a notebook of format 'four'"),
    ({**notebook(), "cells": None}, "'cells' must be a list of cells"),
    ({**notebook(), "cells": ["x"]}, "'cells' must be a list of cells"),
    ({**notebook(), "cells": [{}]}, "is no whole notebook: "),
    ({**notebook(), "cells": [notebook()["cells"][0] | {"source": 3}]}, "is no whole notebook: 3 is not valid"),
    ({**notebook(), "cells": notebook()["cells"][:1] * 2}, "has 2 cells tagged 'parameters'; it may have one"),
    ({**notebook(), "cells": []}, "has no parameters that can be read; tag a cell"),
    ({**notebook(), "metadata": None}, "names no kernel"),
    ({**notebook(), "metadata": {}}, "names no kernel; open it in Jupyter, choose a kernel and save it"),
    (notebook(kernelspec="python3"), "names no kernel"),
    (notebook(kernelspec={"name": ""}), "names no kernel"),
    (notebook(kernelspec={"name": 3}), "names no kernel"),
    (notebook(kernelspec={"name": "cobol", "language": "python"}), "wants the kernel 'cobol'; installed here: "),
    (notebook(kernelspec={"name": "../x", "language": "python"}), "wants the kernel '../x'"),
    (notebook(kernelspec={"name": "python3"}), "cannot be read as a notebook: No language"),
    (notebook(""), "has no parameters"),
    (notebook("_x = 1"), "parameter '_x' must not begin with an underscore"),
]


@pytest.mark.parametrize(("content", "words"), NOTEBOOKS, ids=[str(i) for i in range(len(NOTEBOOKS))])
def test_notebooks(content, words, here, capsys):
    raw = json.dumps(content) if isinstance(content, dict) else content
    (here / "odd.ipynb").write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    (here / "odd.yml").write_text("notebook: odd.ipynb\n")
    refused(["sweep", "odd.yml"], words, capsys)


NAN, INF = float("nan"), float("inf")
GIVEN = [
    ("nothing", {}, "template must be one of answers, architectures, cause, claims, compared, datasets"),
    ("start_here", {"dateset": "digits"}, "did you mean 'dataset'?"),
    ("start_here", {"dataset": 3}, "dataset: input should be a valid string, received 3"),
    ("start_here", {"dataset": "x" * 300}, "dataset must be one of"),
    ("start_here", {"model": "mlp:0"}, "model must be 'mlp:'"),
    ("start_here", {"epochs": True}, "epochs: input should be a valid integer, received True"),
    ("start_here", {"epochs": 1.0}, "epochs: input should be a valid integer, received 1.0"),
    ("start_here", {"epochs": "ten"}, "epochs: input should be a valid integer"),
    ("start_here", {"seed": -1}, "seed: input should be greater than or equal to 0"),
    ("start_here", {"seed": 2**31}, "seed: input should be less than"),
    ("start_here", {"density": NAN}, "density: input should be less than or equal to 1, received nan"),
    ("start_here", {"density": INF}, "density: input should be less than or equal to 1, received inf"),
    ("start_here", {"density": 0}, "density: input should be greater than 0, received 0"),
    ("start_here", {"density": None}, "density: input should be a valid number, received None"),
    ("start_here", {"device": "gpu"}, "device must be 'auto', 'cpu' or 'cuda', received 'gpu'"),
    ("watch_training", {"labels": "mixed:2"}, "mixed:2"),
    ("watch_training", {"labels": "mixed:nan"}, "mixed:nan"),
    ("trained_your_way", {"plain_model": "mlp:64-x"}, "mlp:64-x"),
    ("trained_your_way", {"optimiser": "sgd"}, "optimiser must be 'sgd:<momentum>', received 'sgd'"),
    ("trained_your_way", {"schedule": "powr:2:1"}, "received 'powr:2:1'"),
    ("trained_your_way", {"penalty": "modularity"}, "penalty must be"),
    ("trained_your_way", {"start_from": "mnsit"}, "start_from: dataset must be one of"),
    ("trained_your_way", {"dropout": 1.0}, "dropout: input should be less than 1, received 1.0"),
    ("watch_training", {"snapshots": 0}, "snapshots: input should be greater than or equal to 1"),
    ("h1_communities", {"source": "tabels"}, "source must be 'live', 'tables' or 'mixed', received 'tabels'"),
    ("h1_communities", {"study": ["digits"]}, "study: input should be a valid string"),
    ("h2_modularity", {"jobs": -1}, "jobs: input should be greater than or equal to 0"),
    ("synthesis", {"study": ""}, "study: "),
    ("evolution", {"study": "digits"}, "dataset of a reference study must be one of"),
    ("sweep_report", {"results": ""}, "results: "),
    ("reanalysis", {"constant": NAN}, "constant: input should be"),
    ("reanalysis", {"draws": 10**9}, "draws: input should be less than or equal to 100000"),
    ("datasets", {"examples": "x" * 100_000}, "examples: input should be a valid integer"),
]


@pytest.mark.parametrize(("template", "values", "words"), GIVEN, ids=[f"{t} {v!s:.40}" for t, v, _ in GIVEN])
def test_notebook_parameters(template, values, words):
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        check_parameters(template, values)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_numbers_are_compared_as_numbers(workshop, monkeypatch, capsys):
    monkeypatch.chdir(workshop)
    for file in ("results.csv", "results.parquet"):
        for condition, rows in (
            ("density=0.020", 4),
            ("density=2e-2", 4),
            ("density=.05", 4),
            ("flag=true", 4),
            ("flag=False", 4),
            ("word=01", 8),
            ("widths=[1, 2]", 4),
            ("text=", 4),
        ):
            if file.endswith("csv") and condition == "word=01":
                continue  # a CSV that others wrote does not say that this is text
            assert main(["results", file, "--where", condition]) == 0
            assert f"{rows} rows;" in capsys.readouterr().out, (file, condition)
    assert main(["results", "results.csv", "--metric", "sum"]) == 0
    assert "4 rows;" in capsys.readouterr().out
    assert main(["sweep", "good.yml", "--dry-run", "--only", "y=2e-2", "x=1.0"]) == 0
    assert "1 point of small.ipynb" in capsys.readouterr().out
