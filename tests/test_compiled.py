"""Machine code is kept across processes, and never outlives or leaves the code it was made from."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebrank import paths
from ebrank.compiled import FirstClass, is_kernel, kernel, leaf
from ebrank.evidence import BehaviorStats, Examination
from ebrank.formula import Formula
from ebrank.priors import ItemPrior
from ebrank.scoring import scores
from tests.importing import Folder, folder

__all__ = ["folder"]

pytestmark = pytest.mark.slow

HELPER = "K = 2.0\ndef double(x):\n    return K * x\n"
SCRIPT = """
from ebrank.compiled import kernel, shared
from helper import double

shared(double)

@kernel
def quadruple(x):
    return 2 * double(x)

def result():
    return [quadruple(3.0), sum(quadruple.stats.cache_hits.values())]

if __name__ == "__main__":
    print(*result())
"""
TRIPLE = "def triple(x):\n    return 3 * x\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("EBRANK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(folder: Folder, name: str, *arguments: str, **environment: str) -> list[float]:
    """Run a script in a process of its own; return the numbers that it prints."""
    return printed(start(folder, name, *arguments, **environment))


def start(folder: Folder, name: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, folder.path / f"{name}.py", *arguments],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def printed(process: subprocess.Popen[str]) -> list[float]:
    output, _ = process.communicate()
    assert process.returncode == 0
    return [float(word) for word in output.split()]


def machine_code(cache: Path) -> set[Path]:
    """Return the files of machine code."""
    return set(cache.rglob("*.nbc"))


# --- kernels -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("old", "new", "result"), [("K * x", "K * x + 1", 14.0), ("K = 2.0", "K = 5.0", 30.0)]
)
def test_machine_code_is_reused_until_what_it_calls_changes(
    folder: Folder, old: str, new: str, result: float
) -> None:
    folder.write({"helper": HELPER, "script": SCRIPT})
    assert folder.load("script").result() == [12, 0]
    assert folder.load("script").result() == [12, 1]
    folder.write({"helper": HELPER.replace(old, new)})  # not the kernel's own file
    assert folder.load("script").result() == [result, 0]


@pytest.mark.usefixtures("cache")
def test_types_count_with_their_names_and_fields(folder: Folder) -> None:
    text = """
from typing import NamedTuple
from ebrank.compiled import kernel

class Pair(NamedTuple):
    left: int
    right: int

@kernel
def difference(pair):
    return pair.left - pair.right

def result():
    return [difference(Pair(left=3, right=1)), sum(difference.stats.cache_hits.values())]
"""
    swapped = text.replace("left: int\n    right: int", "right: int\n    left: int")
    assert swapped != text
    for edited in (text, text.replace("Pair", "Couple"), swapped):
        folder.write({"script": edited})
        assert folder.load("script").result() == [2, 0]
        assert folder.load("script").result() == [2, 1]


def test_another_processor_has_machine_code_of_its_own(folder: Folder, cache: Path) -> None:
    folder.write({"helper": HELPER, "script": SCRIPT})
    assert folder.load("script").result() == [12, 0]
    assert run(folder, "script", NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == [12, 0]
    assert run(folder, "script", NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == [12, 1]
    assert folder.load("script").result() == [12, 1]
    assert len({path.parents[1] for path in machine_code(cache)}) == 2


def test_kernels_work_where_nothing_can_be_written(folder: Folder, cache: Path) -> None:
    folder.write({"helper": HELPER, "script": SCRIPT})
    cache.touch()  # a file where the folder should be
    script: Any = folder.load("script")
    assert script.result() == [12, 0]
    assert script.quadruple.stats.cache_path is None
    assert FirstClass(script.double, "f8(f8)").compiled.ctypes(2.0) == 4.0


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_machine_code_is_made_again(folder: Folder, cache: Path, suffix: str) -> None:
    folder.write({"helper": HELPER, "script": SCRIPT})
    folder.load("script").result()
    (damaged,) = cache.rglob(f"*.{suffix}")
    damaged.write_bytes(damaged.read_bytes()[:20])
    assert folder.load("script").result() == [12, 0]
    assert folder.load("script").result() == [12, 1]


@pytest.mark.usefixtures("cache")
def test_a_full_disk_does_no_harm(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ebrank.compiled.FunctionCache.save_overload", full)
    folder.write({"mine": TRIPLE})
    triple = folder.load("mine").triple
    assert kernel(triple)(2) == 6
    assert FirstClass(triple, "f8(f8)").compiled.ctypes(2.0) == 6.0


def test_each_signature_has_an_index_of_its_own(folder: Folder, cache: Path) -> None:
    """Numba lists all in one, which two processes that compile at once may mix up."""
    folder.write({"mine": TRIPLE})
    triple = kernel(folder.load("mine").triple)
    assert (triple(2), triple(2.5)) == (6, 7.5)
    assert len(list(cache.rglob("*.nbi"))) == len(machine_code(cache)) == 2


@pytest.mark.usefixtures("cache")
def test_processes_may_compile_at_once_and_none_compiles_what_another_does(folder: Folder) -> None:
    text = """
import math, sys, time
from pathlib import Path
from ebrank.compiled import kernel

@kernel
def half(x):
    s = 0.0  # this takes a while to compile
{lines}
    return x / 2 + 0 * s

@kernel
def nothing(x):
    return x

if __name__ == "__main__":
    import script
    script.nothing(0)
    Path(f"{path}/ready{{sys.argv[1]}}").touch()
    while len(list(Path("{path}").glob("ready*"))) < 3:
        time.sleep(0.001)
    print(abs(script.half(eval(sys.argv[2]))), sum(script.half.stats.cache_hits.values()))
"""
    lines = "\n".join(f"    s += math.sin(s) if s < {i} else s / {i}" for i in range(1, 40))
    folder.write({"script": text.format(lines=lines, path=folder.path)})
    calls = enumerate(("3", "3.0", "3"))
    together = [start(folder, "script", str(number), call) for number, call in calls]
    results = [printed(process) for process in together]
    assert [result for result, _ in results] == [1.5] * 3
    assert sorted(hits for _, hits in results) == [0, 0, 1]
    half: Any = folder.load("script").half
    assert (half(3), half(3.0)) == (1.5, 1.5)
    assert sum(half.stats.cache_hits.values()) == 2


def test_a_kernel_without_a_file_is_compiled_all_the_same(cache: Path) -> None:
    names: dict[str, Any] = {}
    exec("def triple(x):\n    return 3 * x", names)
    assert kernel(names["triple"])(2) == 6
    assert machine_code(cache) == set()


def test_what_changed_since_it_was_compiled_is_not_kept(folder: Folder, cache: Path) -> None:
    """Numba goes on using what a called function was compiled to."""
    text = "from ebrank.compiled import leaf\nimport helper\n@leaf\ndef scaled(x):\n"
    text += "    return helper.K * x\ndef once(x):\n    return scaled(x)\n"
    text += "def twice(x):\n    return 2 * scaled(x)\n"
    folder.write({"helper": HELPER, "mine": text})
    mine: Any = folder.load("mine")
    assert kernel(mine.once)(1.0) == 2.0
    kept = machine_code(cache)
    assert len(kept) == 1
    sys.modules["helper"].K = 3.0  # type: ignore[attr-defined]
    kernel(mine.twice)(1.0)
    assert machine_code(cache) == kept


def test_what_nobody_uses_is_removed(folder: Folder, cache: Path) -> None:
    unused, recent = cache / "kernels" / "unused", cache / "kernels" / "recent"
    for path, days in ((unused, 40), (recent, 20)):
        path.mkdir(parents=True)
        (path / "code.py").touch()
        os.utime(path, (time.time() - days * 86400,) * 2)
    folder.write({"mine": TRIPLE})
    kernel(folder.load("mine").triple)(2)
    assert not unused.exists()
    assert recent.exists()


def test_which_dispatchers_are_kernels() -> None:
    assert is_kernel(kernel(lambda x: x))
    assert not is_kernel(leaf(lambda x: x))


# --- formulas ------------------------------------------------------------------------------------

PRIOR = ItemPrior(np.array([2.0]), np.array([3.0]))
BEHAVIOR = BehaviorStats.of(shown=[[5, 7, 11]], clicks=[[2, 3, 1]])


def score(formula: Formula) -> float:
    """Return what the machine code makes of an item."""
    return float(scores(formula.bind(), PRIOR, BEHAVIOR, Examination())[0])


def plain(formula: Formula) -> float:
    """Return what the formula makes of the same item in plain Python."""
    sums = {name: value[0] for name, value in BEHAVIOR.sums(Examination())._asdict().items()}
    return float(formula(a=2.0, b=3.0, **sums))


def agree(*formulas: Formula) -> list[float]:
    """Return the formulas' scores of an item, having compared plain and compiled ones."""
    found = [score(formula) for formula in formulas]
    assert found == [plain(formula) for formula in formulas]
    return found


FORMULAS = """
from ebrank.formula import Formula
from helper import K
import helper

UP, DOWN = Formula(lambda a: a), Formula(lambda a: -a)

def make(rate):
    def scaled(a):
        return rate * a
    return scaled

SMALL, LARGE = Formula(make(2.0)), Formula(make(3.0))
BY_NAME, BY_MODULE = Formula(lambda a: K * a), Formula(lambda a: helper.K * a)

if __name__ == "__main__":
    import sys
    import numpy as np
    from ebrank.evidence import BehaviorStats, Examination
    from ebrank.priors import ItemPrior
    from ebrank.scoring import scores

    item = ItemPrior(np.ones(1), np.ones(1)), BehaviorStats.zeros(1), Examination()
    for name in sys.argv[1].split(","):
        formula = globals()[name]
        print(scores(formula.bind(), *item)[0], formula.compiled.cache_hits)
"""


@pytest.mark.usefixtures("cache")
def test_lambdas_and_closures_have_their_own_machine_code(folder: Folder) -> None:
    folder.write({"helper": HELPER, "script": FORMULAS})
    mine: Any = folder.load("script")
    assert agree(mine.UP, mine.DOWN, mine.SMALL, mine.LARGE) == [2.0, -2.0, 4.0, 6.0]
    again: Any = folder.load("script")
    assert agree(again.LARGE, again.SMALL, again.DOWN, again.UP) == [6.0, 4.0, -2.0, 2.0]
    assert again.DOWN.compiled.cache_hits == 1


@pytest.mark.usefixtures("cache")
def test_lambdas_and_closures_have_their_own_machine_code_in_other_processes(
    folder: Folder,
) -> None:
    folder.write({"helper": HELPER, "script": FORMULAS})
    assert run(folder, "script", "UP,SMALL") == [1, 0, 2, 0]
    assert run(folder, "script", "DOWN,LARGE,UP,SMALL") == [-1, 0, 3, 0, 1, 1, 2, 1]


@pytest.mark.usefixtures("cache")
def test_a_constant_of_another_module_is_that_of_now(folder: Folder) -> None:
    folder.write({"helper": HELPER, "script": FORMULAS})
    mine: Any = folder.load("script")
    assert agree(mine.BY_NAME, mine.BY_MODULE) == [4.0, 4.0]
    mine.K = mine.helper.K = 3.0
    assert agree(mine.BY_NAME, mine.BY_MODULE) == [6.0, 6.0]
    folder.write({"helper": HELPER.replace("K = 2.0", "K = 5.0")})
    edited: Any = folder.load("script")
    assert agree(edited.BY_NAME, edited.BY_MODULE) == [10.0, 10.0]


NAMESAKES = """
import math, sys
import numba
from ebrank.compiled import kernel

def make(rate):
    @numba.njit
    def helper(x):  # too long to be inlined
        s = 0.0
{lines}
        return s * 0.0 + rate * x
    @kernel
    def score(x):
        return helper(x) + helper(x + 1) + helper(x + 2) - 2 * helper(x) - helper(3.0)
    return score

for rate in map(float, sys.argv[1:]):
    score = make(rate)
    print(score(1.0), sum(score.stats.cache_hits.values()))
"""


@pytest.mark.usefixtures("cache")
def test_code_from_disk_calls_its_own_functions_not_namesakes(folder: Folder) -> None:
    line = "        s = s * 1.{i:03} + math.sin(x + {i}) if s < {i} else s / {i} - x"
    lines = "\n".join(line.format(i=i) for i in range(2, 32))
    folder.write({"script": NAMESAKES.format(lines=lines)})
    assert run(folder, "script", "1") == [1, 0]
    assert run(folder, "script", "2", "1") == [2, 0, 1, 1]


FORKS = """
import os
import ebrank.compiled
from numba.core.bytecode import FunctionIdentity

child = os.fork()
if child:
    os.waitpid(child, 0)  # one after the other: both write to the same pipe
print(next(FunctionIdentity._unique_ids), flush=True)
"""


def test_a_forked_process_numbers_its_functions_anew(folder: Folder) -> None:
    folder.write({"script": FORKS})
    one, other = run(folder, "script")
    assert abs(one - other) > 1e6


RECURSIVE = """
import numba
from ebrank.compiled import FirstClass

@numba.njit
def power(x, n):
    return x if n <= 0 else power(x, n - 1) + power(x, n - 2)

def score(x):
    return power(x, 3)
"""


def test_what_calls_itself_is_not_kept(folder: Folder, cache: Path) -> None:
    folder.write({"mine": RECURSIVE})
    assert FirstClass(folder.load("mine").score, "f8(f8)").compiled.ctypes(1.0) == 5.0
    assert machine_code(cache) == set()


CONSTANTS = st.sampled_from(["0.5", "2.0", "-3.0", "7"])
BODIES = st.sampled_from(["{c} * {x}", "{x} - {c}", "{c} - {x}", "{x} / {c}", "-{x}"])
KINDS = st.sampled_from(["literal", "name", "imported", "by_module", "closure", "default", "def"])
ARGUMENTS = st.sampled_from(["a", "clicks", "shown"])


@st.composite
def formula_texts(draw: st.DrawFn) -> tuple[str, str]:
    """Return a formula's text and the constant that it reads."""
    kind, argument, constant = draw(KINDS), draw(ARGUMENTS), draw(CONSTANTS)
    read = {"literal": constant, "by_module": "helper.C{i}", "closure": "c", "default": "c"}
    body = draw(BODIES).format(c=read.get(kind, "C{i}"), x=argument)
    if kind == "closure":
        return f"Formula((lambda c: lambda {argument}: {body})({constant}))", constant
    if kind == "default":
        return f"Formula((lambda c: lambda {argument}, b: {body} + 0 * b)({constant}))", constant
    if kind == "def":
        return f"defined(lambda {argument}: {body})", constant
    return f"Formula(lambda {argument}: {body})", constant


@settings(max_examples=4)
@given(st.lists(formula_texts(), min_size=3, max_size=3), CONSTANTS)
def test_any_formulas_beside_each_other_agree_with_their_plain_forms(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str]], other: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("formulas")
        patch.setenv("EBRANK_CACHE", str(path / "cache"))
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.syspath_prepend(path)
        folder = Folder(path)
        names = "".join(f"C{i} = {constant}\n" for i, (_, constant) in enumerate(texts))
        made = ", ".join(text.format(i=i) for i, (text, _) in enumerate(texts))
        mine = "from ebrank.formula import Formula\nimport helper\nfrom helper import *\n"
        mine += "def defined(f):\n    return Formula(f)\n"
        folder.write({"helper": names, "formulas": f"{mine}ALL = [{made}]\n"})
        try:
            for _ in range(2):  # compiled, then from disk
                agree(*folder.load("formulas").ALL)
            folder.write({"helper": names.replace(f"= {texts[0][1]}\n", f"= {other}\n")})
            agree(*folder.load("formulas").ALL)
        finally:
            folder.forget()


def test_a_formula_typed_in_follows_its_constants_too(cache: Path) -> None:
    names: dict[str, Any] = {"RATE": 2.0}
    exec("def rated(a):\n    return RATE * a", names)
    formula = Formula(names["rated"])
    assert agree(formula) == [4.0]
    names["RATE"] = 3.0
    assert agree(formula) == [6.0]
    assert machine_code(cache) == set()


def test_a_formula_is_compiled_once_while_nothing_changes(folder: Folder, cache: Path) -> None:
    folder.write({"mine": "def f(a):\n    return a\n"})
    module: ModuleType = folder.load("mine")
    formula = Formula(module.f)
    assert formula.compiled is formula.compiled
    assert len(machine_code(cache)) == 1
    assert next(iter(machine_code(cache))).is_relative_to(paths.kernel_cache())
