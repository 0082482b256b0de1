"""Kernels are cached across processes, and never outlive the sources they were made from."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ebrank.compiled import kernel, source_stamp

HELPER = "def double(x):\n    return 2 * x\n"
USER = """
import numba
from numba.extending import register_jitable
from {helper} import double
from ebrank.compiled import kernel

register_jitable(double)

@kernel
def quadruple(x):
    return 2 * double(x)

if __name__ == "__main__":
    print(quadruple(3), sum(quadruple.stats.cache_hits.values()))
"""


def run(folder: Path, **environment: str) -> tuple[int, int]:
    """Run the kernel in a process of its own; return its result and the cache hits."""
    done = subprocess.run(
        [sys.executable, str(folder / "user.py")],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    result, hits = done.stdout.split()
    return int(result), int(hits)


def write_modules(folder: Path, helper: str) -> None:
    (folder / "helper.py").write_text(helper)
    (folder / "user.py").write_text(USER.format(helper="helper"))


@pytest.mark.slow
def test_machine_code_is_reused_until_a_called_function_changes(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    write_modules(tmp_path, HELPER)
    assert run(tmp_path, EBRANK_CACHE=cache) == (12, 0)
    assert run(tmp_path, EBRANK_CACHE=cache) == (12, 1)
    write_modules(tmp_path, HELPER.replace("2 * x", "5 * x"))  # not the kernel's own file
    assert run(tmp_path, EBRANK_CACHE=cache) == (30, 0)


@pytest.mark.slow
def test_a_renamed_type_is_compiled_anew(tmp_path: Path) -> None:
    text = """
from typing import NamedTuple
from ebrank.compiled import kernel

class Pair(NamedTuple):
    left: int
    right: int

@kernel
def total(pair):
    return pair.left + pair.right

if __name__ == "__main__":
    import user
    print(user.total(user.Pair(1, 2)), sum(user.total.stats.cache_hits.values()))
"""
    cache = str(tmp_path / "cache")
    for name in ("Pair", "Couple"):
        (tmp_path / "user.py").write_text(text.replace("Pair", name))
        assert run(tmp_path, EBRANK_CACHE=cache) == (3, 0)
        assert run(tmp_path, EBRANK_CACHE=cache) == (3, 1)


@pytest.mark.slow
def test_kernels_work_where_nothing_can_be_cached(tmp_path: Path) -> None:
    write_modules(tmp_path, HELPER)
    blocked = tmp_path / "a-file"
    blocked.touch()
    assert run(tmp_path, EBRANK_CACHE=str(blocked)) == (12, 0)


def _module(tmp_path: Path, name: str, source: str) -> ModuleType:
    path = tmp_path / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_stamp_follows_constants_and_closures(tmp_path: Path) -> None:
    source = "RATE = {rate}\ndef f(x):\n    return RATE * x\n"
    one = source_stamp(_module(tmp_path, "one", source.format(rate=1)).f)
    same = source_stamp(_module(tmp_path, "same", source.format(rate=1)).f)
    other = source_stamp(_module(tmp_path, "other", source.format(rate=2)).f)
    assert one == same != other

    closing = "def make(g):\n    def f(x):\n        return g(x)\n    return f\n"
    module = _module(tmp_path, "closing", closing + "def a(x):\n    return x\n")
    assert source_stamp(module.make(module.a)) != source_stamp(module.make(module.make))


PARTS = """
import numpy as np
from typing import NamedTuple

GOLDEN = np.uint64(5)
TABLE = np.array([1, 2, 3])
FIRST, SECOND = 1, 2

class Pair(NamedTuple):
    left: int
    right: int
"""
WHOLE = """
from . import parts
from .parts import Pair

def f(pair: Pair):
    return pair.left + parts.FIRST * parts.TABLE[1]
"""


def _stamp_of(folder: Path, name: str, parts: str, monkeypatch: pytest.MonkeyPatch) -> str:
    package = folder / name
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "parts.py").write_text(parts)
    (package / "whole.py").write_text(WHOLE)
    monkeypatch.syspath_prepend(folder)
    return source_stamp(importlib.import_module(f"{name}.whole").f)


def test_stamp_follows_what_no_function_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = _stamp_of(tmp_path, "plain_package", PARTS, monkeypatch)
    assert plain == _stamp_of(tmp_path, "same_package", PARTS, monkeypatch)
    changes = {
        "scalar": ("uint64(5)", "uint64(7)"),
        "table": ("[1, 2, 3]", "[1, 9, 3]"),
        "constant": ("FIRST, SECOND = 1, 2", "FIRST, SECOND = 2, 1"),
        "fields": ("    left: int\n    right: int", "    right: int\n    left: int"),
    }
    for name, (old, new) in changes.items():
        assert old in PARTS
        changed = _stamp_of(tmp_path, f"{name}_package", PARTS.replace(old, new), monkeypatch)
        assert changed != plain, name


def test_a_kernel_without_a_file_is_compiled_all_the_same() -> None:
    names: dict[str, Any] = {}
    exec("def triple(x):\n    return 3 * x", names)
    assert kernel(names["triple"])(2) == 6
