from __future__ import annotations

import sys

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
