from __future__ import annotations

import io

import pytest

from nbutils.support.progress import Reporter, duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def report(terminal: bool, total: int, cached: int, problems: dict[int, str]) -> str:
    out = Terminal() if terminal else io.StringIO()
    with Reporter(2, total, cached, "runs", out) as reporter:
        for i in range(total - cached):
            reporter.one(f"point {i}", problems.get(i, ""))
    return out.getvalue()


def test_elsewhere_there_is_a_line_per_tenth_and_one_per_failure():
    text = report(False, 200, 0, {7: "ValueError: [bold] broken"})
    lines = text.splitlines()
    assert len(lines) == 11
    assert "  failed: point 7: ValueError: [bold] broken" in lines
    assert lines[-1].startswith("  200/200 runs: 199 finished, 0 running, 1 failed, 0 cached, took ")
    assert "\x1b" not in text
    assert "18 finished, 2 running, 0 failed" not in lines[0]


def test_running_is_never_more_than_what_is_left():
    lines = report(False, 10, 0, {}).splitlines()
    assert "9/10 runs: 9 finished, 1 running" in lines[-2]
    assert "about" in lines[-2]
    assert "left" in lines[-2]


def test_nothing_to_do_says_nothing():
    assert report(False, 5, 5, {}) == ""
    assert report(True, 5, 5, {}) == ""


def test_a_terminal_gets_a_bar_that_goes_away():
    text = report(True, 3, 1, {1: "KeyError: x"})
    assert "  failed: point 1: KeyError: x\n" in text
    screens = text.split("\r")
    assert any("2/3 runs: 1 finished, 1 running, 0 failed, 1 cached, about" in screen for screen in screens)
    assert screens[-1] == ""
    assert screens[-2].strip() == "", "what it stood on is wiped"


def test_work_that_counts_itself_says_how_far_it_is(capsys):
    with Reporter(2) as reporter:
        for finished in range(5):
            reporter(finished, 4)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("  1/4 runs: 1 finished, 2 running, 0 failed, 0 cached, about")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (3600, "1 h 0 min")]
)
def test_durations(seconds, words):
    assert duration(seconds) == words
