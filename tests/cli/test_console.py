from __future__ import annotations

import io
import sys
import time

import pytest

from ebrank.cli import console

LONG = "mine has 136 features, like MSLR-WEB. To change this, set --baseline-feature, --max-label."


def test_notes_and_warnings_are_lines_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    console.note(LONG)
    console.warn(LONG)
    assert capsys.readouterr() == ("", f"note: {LONG}\nwarning: {LONG}\n")


def test_on_a_terminal_they_are_broken_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    console.note(LONG)
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(lines) == f"note: {LONG}"


def test_a_log_gets_a_line_per_stage_and_no_stray_count(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "_LOG_SECONDS", 0.0)
    with console.progress("simulating") as progress:
        progress(79, 240)
    assert capsys.readouterr().err == ""
    with console.progress("starting") as progress:
        for done, stage in ((0, "tuning"), (60, "tuning"), (120, "running")):
            progress(done, 240, stage)
    assert capsys.readouterr().err == "tuning (0% done)\nrunning (50% done)\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_bar_is_drawn_on_stderr_and_stdout_is_left_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with console.progress("reading") as progress:
        progress(0, 2, "checking")  # and nothing else for a long time
        give_up = time.monotonic() + 10.0
        while "checking" not in terminal.getvalue() and time.monotonic() < give_up:
            time.sleep(0.01)
    assert sys.stderr is terminal
    assert "checking" in terminal.getvalue()
    assert capsys.readouterr().out == ""
