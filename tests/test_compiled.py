"""Kernels are cached across processes, and never outlive the sources they were made from."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from ebrank.compiled import source_stamp

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


def test_machine_code_is_reused_until_a_called_function_changes(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    write_modules(tmp_path, HELPER)
    assert run(tmp_path, EBRANK_CACHE=cache) == (12, 0)
    assert run(tmp_path, EBRANK_CACHE=cache) == (12, 1)
    write_modules(tmp_path, HELPER.replace("2 * x", "5 * x"))  # not the kernel's own file
    assert run(tmp_path, EBRANK_CACHE=cache) == (30, 0)


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
