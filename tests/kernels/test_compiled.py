"""Machine code is kept across processes, and never outlives or leaves the code it was made from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.extending import register_jitable

from ebrank.evidence import BehaviorStats, Examination
from ebrank.kernels import provenance
from ebrank.kernels.compiled import FirstClass, announced, kernel, leaf
from ebrank.model.formula import Formula
from ebrank.model.prior import ItemPrior
from ebrank.model.scoring import scores
from tests.importing import Folder, folder

__all__ = ["folder"]

pytestmark = pytest.mark.slow


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("EBRANK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def machine_code(cache: Path) -> set[Path]:
    """Return the files of machine code."""
    return set(cache.rglob("*.nbc"))


# --- ebrank's own kernels ------------------------------------------------------------------------

HELPER = """
from ebrank.kernels.registry import register
K = 2.0
def double(x):
    return K * x
register(__name__)
"""
KERNELS = """
import math
from ebrank.helper import double
from ebrank.kernels.compiled import FirstClass, kernel

@kernel
def quadruple(x):
    return 2 * double(x)

@kernel
def half(x):
    s = 0.0  # this takes a while to compile
{lines}
    return x / 2 + 0 * s

def scaled(rate):
    def score(x):
        return rate * x
    return FirstClass(score, "f8(f8)")
"""
LINES = "\n".join(f"    s += math.sin(s) if s < {i} else s / {i}" for i in range(1, 40))
RUN = """
from ebrank.mine import quadruple
print(quadruple(3.0), sum(quadruple.stats.cache_hits.values()))
"""
RUN_TOGETHER = """
import sys, time
from pathlib import Path
from ebrank.mine import half, quadruple
quadruple(1)
Path(f"ready{sys.argv[1]}").touch()
while len(list(Path().glob("ready*"))) < 3:
    time.sleep(0.001)
print(half(eval(sys.argv[2])), sum(half.stats.cache_hits.values()))
"""
RUN_CLOSURES = """
import sys
from ebrank.mine import scaled
for rate in map(float, sys.argv[1:]):
    compiled = scaled(rate).compiled
    print(compiled.ctypes(1.0), compiled.cache_hits)
"""


class Copy:
    """A copy of ebrank with a module `mine` and a helper; each script runs in its own process."""

    def __init__(self, path: Path, cache: Path) -> None:
        self.path = path
        self.cache = cache
        for part in ("kernels", "environment", "typing.py", "errors.py", "__init__.py"):
            source, target = provenance.ROOT / part, path / "ebrank" / part
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        self.write("helper", HELPER)
        self.write("mine", KERNELS.format(lines=LINES))

    def write(self, name: str, text: str) -> None:
        (self.path / "ebrank" / f"{name}.py").write_text(text)

    def start(self, script: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        paths = {"PYTHONPATH": str(self.path), "EBRANK_CACHE": str(self.cache)}
        return subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **paths, **environment},
            cwd=self.path,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, script: str, *arguments: str, **environment: str) -> list[float]:
        return printed(self.start(script, *arguments, **environment))


def printed(process: subprocess.Popen[str]) -> list[float]:
    output, _ = process.communicate()
    assert process.returncode == 0
    return [float(word) for word in output.split()]


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    (tmp_path / "copy" / "ebrank").mkdir(parents=True)
    return Copy(tmp_path / "copy", tmp_path / "cache")


def test_machine_code_is_reused_until_what_it_is_made_of_changes(copy: Copy) -> None:
    unused, recent = copy.cache / "kernels" / "unused", copy.cache / "kernels" / "recent"
    for path, days in ((unused, 40), (recent, 20)):
        path.mkdir(parents=True)
        os.utime(path, (time.time() - days * 86400,) * 2)
    assert copy.run(RUN) == [12, 0]
    assert (unused.exists(), recent.exists()) == (False, True)
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert copy.run(RUN, **generic) == [12, 0]
    copy.write("unrelated", "")
    assert copy.run(RUN) == [12, 1]
    for suffix in ("nbi", "nbc"):
        for damaged in copy.cache.rglob(f"*.{suffix}"):
            damaged.write_bytes(damaged.read_bytes()[:20])
        assert copy.run(RUN) == [12, 0]
    copy.write("helper", HELPER.replace("K = 2.0", "K = 5.0"))  # not the kernel's own file
    assert copy.run(RUN) == [30, 0]


FULL = """
from numba.core.caching import IndexDataCacheFile

def full(*_):
    raise OSError(28, "No space left on device")

IndexDataCacheFile.save = full
"""


def test_kernels_work_where_nothing_can_be_written(copy: Copy) -> None:
    assert copy.run(FULL + RUN + RUN_CLOSURES, "2") == [12, 0, 2, 0]
    shutil.rmtree(copy.cache)
    copy.cache.touch()  # a file where the folder should be
    assert copy.run(RUN + RUN_CLOSURES, "2") == [12, 0, 2, 0]


def test_processes_may_compile_at_once_and_none_compiles_what_another_does(copy: Copy) -> None:
    calls = enumerate(("3", "3.0", "3"))
    together = [copy.start(RUN_TOGETHER, str(number), call) for number, call in calls]
    results = [printed(process) for process in together]
    assert [result for result, _ in results] == [1.5] * 3
    assert sorted(hits for _, hits in results) == [0, 0, 1]


def test_closures_have_their_own_machine_code(copy: Copy) -> None:
    assert copy.run(RUN_CLOSURES, "2", "3") == [2, 0, 3, 0]
    assert copy.run(RUN_CLOSURES, "4", "3", "2") == [4, 0, 3, 1, 2, 1]


FORKS = """
import os
import ebrank.kernels.compiled
from numba.core.bytecode import FunctionIdentity

child = os.fork()
if child:
    os.waitpid(child, 0)  # one after the other: both write to the same pipe
print(next(FunctionIdentity._unique_ids), flush=True)
"""


def test_a_forked_process_numbers_its_functions_anew(copy: Copy) -> None:
    one, other = copy.run(FORKS)
    assert abs(one - other) > 1e6


# --- functions from elsewhere --------------------------------------------------------------------

PRIOR = ItemPrior(np.array([2.0]), np.array([3.0]))
BEHAVIOR = BehaviorStats.of(shown=[[5, 7, 11]], clicks=[[2, 3, 1]])


def agree(*formulas: Formula) -> list[float]:
    """Return the formulas' scores of an item, having compared plain and compiled ones."""
    sums = {name: value[0] for name, value in BEHAVIOR.sums(Examination())._asdict().items()}
    compiled = [
        float(scores(formula.bind(), PRIOR, BEHAVIOR, Examination())[0]) for formula in formulas
    ]
    assert compiled == [float(formula(a=2.0, b=3.0, **sums)) for formula in formulas]
    return compiled


FORMULAS = """
from ebrank.model.formula import Formula
from helper import K
import helper

UP, TWICE, THRICE = Formula(lambda a: a), Formula(lambda a: 2 * a), Formula(lambda a: 3 * a)

def make(rate):
    def scaled(a):
        return rate * a
    return scaled

SMALL, LARGE = Formula(make(2.0)), Formula(make(3.0))
BY_NAME, BY_MODULE = Formula(lambda a: K * a), Formula(lambda a: helper.K * a)
ALL = UP, TWICE, THRICE, SMALL, LARGE, BY_NAME, BY_MODULE
"""


def test_functions_of_a_user_are_never_confused_nor_outdated(folder: Folder, cache: Path) -> None:
    folder.write({"helper": "K = 2.0", "script": FORMULAS})
    assert agree(*folder.load("script").ALL) == [2.0, 4.0, 6.0, 4.0, 6.0, 4.0, 4.0]
    cached = machine_code(cache)
    assert agree(*folder.load("script").ALL) == [2.0, 4.0, 6.0, 4.0, 6.0, 4.0, 4.0]
    assert machine_code(cache) == cached
    folder.write({"helper": "K = 5.0"})
    assert agree(*folder.load("script").ALL) == [2.0, 4.0, 6.0, 4.0, 6.0, 10.0, 10.0]
    assert machine_code(cache) > cached
    cached = machine_code(cache)
    names: dict[str, Any] = {}
    exec("def typed_in(a):\n    return 7 * a", names)
    assert agree(Formula(names["typed_in"])) == [14.0]
    kernel(names["typed_in"])(1)
    assert machine_code(cache) == cached  # code in no file is not cached


def test_compiling_is_announced_once_and_only_if_it_takes_a_while(folder: Folder) -> None:
    told: list[str] = []
    with announced(lambda: told.append("compiling")):
        part = register_jitable(lambda x: x + 1)
        leaf(lambda x: part(x))(1)
    assert told == []
    doubled: Any = kernel(lambda x: 2 * x)
    with announced(lambda: told.append("compiling")):
        assert (doubled(1), doubled(1.5)) == (2, 3.0)
        assert FirstClass(lambda x: 2 * x, "f8(f8)").compiled.ctypes(2.0) == 4.0
        doubled(1)
    assert told == ["compiling"]
