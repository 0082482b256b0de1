"""Where the data folder comes from, and what a wrong configuration file is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebrank.environment.config import SettingsError, config_path, data_dir
from ebrank.errors import ParameterError


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration file of the test's own, empty at first."""
    path = tmp_path / "config.toml"
    path.write_text("")
    monkeypatch.setenv("EBRANK_CONFIG", str(path))
    monkeypatch.delenv("EBRANK_DATA", raising=False)
    return path


def chosen(explicit: str | None = None) -> tuple[Path, str] | None:
    found = data_dir(explicit)
    return None if found is None else (found.path, found.origin)


def test_argument_beats_environment_beats_file(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chosen() is None
    monkeypatch.setenv("EBRANK_DATA", "")  # as if it was not set
    assert chosen() is None
    config.write_text('data_dir = "/from/file"')
    assert chosen() == (Path("/from/file"), str(config))
    monkeypatch.setenv("EBRANK_DATA", "/from/environment")
    assert chosen() == (Path("/from/environment"), "EBRANK_DATA")
    assert chosen("/from/argument") == (Path("/from/argument"), "--data-dir")


def test_home_and_relative_paths(config: Path) -> None:
    config.write_text('data_dir = "sets"')
    assert chosen() == (config.parent / "sets", str(config))
    config.write_text('data_dir = "~/sets"')
    assert chosen() == (Path.home() / "sets", str(config))


def test_a_home_folder_that_is_not_there_is_told_with_its_origin(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text('data_dir = "~no-such-user/sets"')
    with pytest.raises(ParameterError, match=f"~no-such-user/sets .from {config}.: "):
        data_dir()
    monkeypatch.setenv("EBRANK_DATA", "~no-such-user/sets")
    with pytest.raises(ParameterError, match="from EBRANK_DATA"):
        data_dir()
    monkeypatch.setenv("EBRANK_CONFIG", "~no-such-user/config.toml")
    with pytest.raises(ParameterError, match="from EBRANK_CONFIG"):
        config_path()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'datadir = "/x"', "unknown key 'datadir'. Known keys: data_dir"),
        (b"data_dir = 3", "data_dir must be a text"),
        (b'data_dir = ""', "data_dir must be a text"),
        (b"data_dir = /x", "not valid TOML"),
        (b"\xff\xfe", "cannot be read"),
        (None, "EBRANK_CONFIG names a file that does not exist"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(
    config: Path, content: bytes | None, message: str
) -> None:
    config.unlink() if content is None else config.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        data_dir()
    assert str(caught.value).startswith(f"{config}: ")
    assert message in str(caught.value)


def test_the_usual_file_may_be_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EBRANK_DATA", raising=False)
    monkeypatch.delenv("EBRANK_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("platformdirs.user_config_dir", lambda name: str(tmp_path / name))
    assert config_path() == tmp_path / "ebrank" / "config.toml"
    assert chosen() is None
