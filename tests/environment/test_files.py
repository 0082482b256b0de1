"""Paths as people write them, where caches are, and files that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ebrank.environment.files import write_whole
from ebrank.environment.paths import dataset_cache, expanded, kernel_cache
from ebrank.errors import ParameterError


def test_a_home_folder_is_filled_in() -> None:
    assert expanded("~/sets") == Path.home() / "sets"
    assert expanded(Path("sets")) == Path("sets")
    with pytest.raises(ParameterError, match=r"^~no-such-user/x: home folder not found"):
        expanded("~no-such-user/x")


@pytest.mark.parametrize("wrong", [None, "", 3, b"sets"])
def test_invalid_paths_are_rejected(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(ParameterError, match="is not a path"):
        expanded(wrong)


def test_the_variable_of_a_wrong_cache_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EBRANK_CACHE", "~no-such-user/x")
    with pytest.raises(ParameterError, match=r"x \(from EBRANK_CACHE\): "):
        kernel_cache()
    monkeypatch.setenv("EBRANK_DATASET_CACHE", "~no-such-user/y")
    with pytest.raises(ParameterError, match=r"y \(from EBRANK_DATASET_CACHE\): "):
        dataset_cache()


def test_a_file_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_whole(tmp_path / "file", b"old")

    def fail(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
