"""Fixtures of commands: where they run, and how wide the terminal is."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def narrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder to work in, and 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
