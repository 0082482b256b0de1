"""The public surface: few names, pinned, and cheap to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ebrank

NAMES = {
    "AsyncClient",
    "BehaviorStats",
    "Client",
    "DataError",
    "Dataset",
    "EBRankError",
    "EBRanker",
    "Examination",
    "ModelFileError",
    "ParameterError",
    "Policy",
    "Ranking",
    "__version__",
    "load",
}


def test_the_public_names_are_these() -> None:
    assert set(ebrank.__all__) == NAMES == set(dir(ebrank))
    for name in NAMES:
        assert getattr(ebrank, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = ebrank.nothing_here


def test_import_loads_nothing_heavy() -> None:
    heavy = ["numpy", "scipy", "numba", "rich", "click", "httpx", "msgspec"]
    code = f"import sys, ebrank; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
