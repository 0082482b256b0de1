"""Where the data folder comes from, and what is said of files that are not TOML."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebrank.environment.config import DataDir, SettingsError, data_dir, read_toml
from ebrank.errors import ParameterError


def test_the_argument_beats_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EBRANK_DATA", raising=False)
    assert data_dir() is None
    monkeypatch.setenv("EBRANK_DATA", "")  # as if it was not set
    assert data_dir() is None
    monkeypatch.setenv("EBRANK_DATA", "~/sets")
    assert data_dir() == DataDir(Path.home() / "sets", "EBRANK_DATA")
    assert data_dir("/from/argument") == DataDir(Path("/from/argument"), "--data-dir")
    monkeypatch.setenv("EBRANK_DATA", "~no-such-user/sets")
    with pytest.raises(ParameterError, match="from EBRANK_DATA"):
        data_dir()


@pytest.mark.parametrize(
    ("content", "message"), [(b"a = /x", "not valid TOML"), (b"\xff\xfe", "cannot be read")]
)
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=f"^{path}: {message}"):
        read_toml(path)
