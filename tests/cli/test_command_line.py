from __future__ import annotations

import subprocess
import sys

import pytest

from nbutils.__main__ import main
from nbutils.support.progress import Reporter


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "nbutils", *arguments], capture_output=True, text=True)


def test_help_names_every_command(command):
    text = command("--help").stdout
    for name in ("run", "pages", "glance", "runs", "sweep", "results", "report"):
        assert name in text
        assert command(name, "--help").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--datasets", "mnsit"], "dataset must be one of digits, mnist-5k, mnist"),
        (["run", "--seeds", "0"], "seeds: input should be greater than or equal to 1, received 0"),
        (["run", "--epochs", "-3"], "epochs: input should be greater than or equal to 1, received -3"),
        (["pages", "--datasets", "cifar10"], "cifar10 belongs to the reference study"),
        (["pages", "--root", "/dev/null/x"], "--root must be the project's folder, received '/dev/null/x'"),
    ],
)
def test_bad_input_is_one_sentence_before_anything_starts(arguments, words, own_store, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert not own_store.exists()


def test_unknown_options_are_refused(own_store, command):
    for arguments in (["run", "--sedes", "3"], ["train"], [], ["run", "--jobs", "0"]):
        done = command(*arguments)
        assert done.returncode == 2
        assert "usage:" in done.stderr
        assert "Traceback" not in done.stderr
    assert not own_store.exists()


def test_run_then_list_then_run_again(own_store, command):
    first = command("run", "--datasets", "digits", "--seeds", "1", "--epochs", "1", "--jobs", "2")
    assert first.returncode == 0, first.stderr
    assert "0 were there, 8 computed, 0 failed" in first.stdout
    assert "8/8 runs" in first.stdout
    listing = command("runs")
    assert "8 runs," in listing.stdout
    assert "mixed:0.5" in listing.stdout
    second = command("run", "--datasets", "digits", "--seeds", "1", "--epochs", "1")
    assert "8 were there, 0 computed, 0 failed" in second.stdout
    assert "0 runs," in command("runs", "--dataset", "mnist-5k").stdout
    assert "Removed 0 results" in command("runs", "--prune").stdout


def test_output_may_be_cut_off(root):
    """As by `| head`: no message, no traceback."""
    table = root / "book/results/width_and_density/results.parquet"
    command = [sys.executable, "-m", "nbutils", "results", str(table), "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "density" in process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_a_warning_is_one_line(own_store):
    damaged = own_store / "runs/01/0123456789abcdef"
    damaged.mkdir(parents=True)
    (damaged / "record.json").write_text("{")
    said = run("runs").stderr
    assert said.startswith("warning: stored result 0123456789abcdef is damaged")
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", ["NBUTILS_DATA", "NBUTILS_STORE"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("a\x1b[2J", "must be a folder free of control characters, received 'a\\x1b[2J'"),
        ("file", "must be a folder, received 'file', which is something else"),
        ("dangling", "must be a folder, received 'dangling', which is something else"),
    ],
)
def test_folders_in_the_environment_are_folders(name, given, words, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, given)
    assert main(["runs"]) == 2
    assert capsys.readouterr() == ("", f"error: {name} {words}\n")


def test_nothing_printed_acts_on_the_terminal(tmp_path, monkeypatch, capsys):
    """What a table holds, and what was typed, is spelt out; long lines are cut off."""
    columns = "run,sweep,notebook,x,metric,value,low,high,text,unit,status,reason,seconds,commit,time,versions"
    rows = "a,s,n,1,sum\x1b[2J,1.5,,,,,done,,1,c,t,{}\nb,s,n,2,sum\x1b[2J,2.5,,,\u202etxt,,done,,1,c,t,{}\n"
    (tmp_path / "table.csv").write_text(f"{columns}\n{rows}", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["results", "table.csv", "--all"]) == 0
    assert main(["results", "table.csv", "--metric", "nope"]) == 2
    assert main(["results", "table.csv", "--pivot", "x" * 100_000, "x"]) == 2
    assert main(["results", "table.csv", "--output", "a\x1b[2J"]) == 2
    with Reporter(1, 1) as reporter:
        reporter.one("x=\x1b[2J", "y" * 100_000)
    shown = "".join(capsys.readouterr())
    assert "sum\\x1b[2J" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert len(shown) < 4000


@pytest.mark.parametrize("number", ["many", "٣", "1_0", " 3", "3 ", "+3", "3.0", "３", "²", "0x3", "9" * 5000, ""])
@pytest.mark.parametrize("option", ["--seeds", "--epochs", "--jobs"])
def test_whole_numbers_are_ascii_digits(option, number, own_store, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", option, number])
    assert ended.value.code == 2
    assert f"argument {option}: must be a whole number" in capsys.readouterr().err
    assert not own_store.exists()


def test_what_is_kept_of_images_is_kept_in_the_project_alone(command, tmp_path):
    done = command("data", "keep", "digits", folder=tmp_path)
    assert done.returncode == 2
    assert "run it in the project's folder" in done.stderr
    assert not list(tmp_path.iterdir())
