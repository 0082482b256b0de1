"""Paths as people write them, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ebrank.environment.paths import dataset_cache, expanded, kernel_cache
from ebrank.errors import ParameterError


def test_a_home_folder_is_filled_in() -> None:
    assert expanded("~/sets") == Path.home() / "sets"
    assert expanded(Path("sets")) == Path("sets")


def test_an_unknown_home_folder_is_refused() -> None:
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
