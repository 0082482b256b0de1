"""Every test of `ebrank data` starts from nothing."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data folder, no configuration, a narrow terminal."""
    (tmp_path / "config.toml").write_text("")
    monkeypatch.setenv("EBRANK_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.delenv("EBRANK_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
