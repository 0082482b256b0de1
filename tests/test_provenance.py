"""A stamp changes with everything that a result depends on, and with nothing else."""

from __future__ import annotations

import ast
import dataclasses
import os
import subprocess
import sys
import threading
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ebrank import provenance
from ebrank.data.dataset import Dataset
from ebrank.provenance import files as files_module
from ebrank.provenance import fingerprint, package_stamp, stamp, trace
from ebrank.rankers import registry
from ebrank.rankers.base import Ranker
from ebrank.simulation import scored
from tests.importing import Folder, folder
from tests.simulation.tiny import tiny

__all__ = ["folder"]

HELPER = """
from dataclasses import dataclass
from enum import Enum
import numpy as np

@dataclass(frozen=True)
class Settings:
    rate: float = 1.5
    grid: tuple = (1, 2)

class Kind(Enum):
    FEW = 1
    MANY = 2

NUMBER, WORD, TUPLE, TABLE = 2.5, "few", (1, (2.0, "x")), {"a": 1}
SCALAR, ARRAY, SETTINGS = np.float32(3), np.array([1, 2, 3]), Settings()

def twice(x):
    return NUMBER * x

class Base:
    weight = 1
    def score(self, x):
        return self.weight * x
"""
USER = """
import functools
import numpy as np
import helper
from helper import ARRAY, NUMBER, SCALAR, SETTINGS, TABLE, TUPLE, WORD, Base, Kind, twice

def number(x): return NUMBER * x
def word(x): return WORD
def pair(x): return TUPLE[0] + x
def table(x): return TABLE["a"] * x
def scalar(x): return SCALAR * x
def array(x): return ARRAY[1] * x
def settings(x): return SETTINGS.rate * x
def member(x): return Kind.FEW
def by_module(x): return helper.NUMBER * x
def calls(x): return twice(x)
def calls_by_module(x): return helper.twice(x)
def default(x, y=NUMBER): return x * y
def keyword(x, *, y=NUMBER): return x * y
def nested(x): return (lambda y: y * NUMBER)(x)
def library(x): return np.log(x) + np.mean(x)

def make(rate):
    def closed(x):
        return rate * x
    return closed

closure = make(NUMBER)
part = functools.partial(make(1), NUMBER)
cached = functools.lru_cache(number)

class Model(Base):
    rate = NUMBER
    def __init__(self, size=1):
        self.size = size
    @property
    def doubled(self):
        return twice(self.size)
    @staticmethod
    def fixed():
        return NUMBER

def builds(x): return Model(x)

model = Model()
method = model.score
"""
EVERYTHING = (
    *("number", "word", "pair", "table", "scalar", "array", "settings", "member", "by_module"),
    *("calls", "calls_by_module", "default", "keyword", "nested", "library", "closure", "part"),
    *("cached", "Model", "builds", "model", "method"),
)


def values(module: ModuleType) -> dict[str, str]:
    return {name: trace(getattr(module, name)).values for name in EVERYTHING}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


@pytest.fixture
def user(folder: Folder) -> ModuleType:
    folder.write({"helper": HELPER, "user": USER})
    return folder.load("user")


def test_a_module_imported_again_has_the_same_stamp(folder: Folder, user: ModuleType) -> None:
    before = values(user)
    assert changed(before, values(folder.load("user"))) == set()
    assert len(set(before.values())) == len(EVERYTHING)
    assert all(trace(getattr(user, name)).lasting for name in EVERYTHING)


READERS = {
    "NUMBER = 3.5": {
        *("number", "by_module", "calls", "calls_by_module", "nested", "cached"),
        *("Model", "builds", "model", "method"),
    },
    "NUMBER = 2": {
        *("number", "by_module", "calls", "calls_by_module", "nested", "cached"),
        *("Model", "builds", "model", "method"),
    },
    "WORD = 'many'": {"word"},
    "TUPLE = (1, (2.0, 'y'))": {"pair"},
    "TABLE['a'] = 2": {"table"},
    "SCALAR = np.float64(3)": {"scalar"},
    "ARRAY[2] = 4": {"array"},
    "SETTINGS = Settings(rate=2.5)": {"settings"},
    "Base.weight = 2": {"Model", "builds", "model", "method"},
}


@pytest.mark.slow
@pytest.mark.parametrize("patch", READERS)
def test_a_change_in_this_process_shows_in_all_that_read_it(user: ModuleType, patch: str) -> None:
    before = values(user)
    exec(f"import numpy as np\nfrom helper import Settings\n{patch}", vars(user))
    exec(patch, vars(sys.modules["helper"]))
    assert changed(before, values(user)) == READERS[patch]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "readers"),
    [
        ("WORD, TUPLE, TABLE = 2.5", "WORD, TUPLE, TABLE = 2.25", "closure default keyword part"),
        ("return NUMBER * x", "return NUMBER + x", "calls"),
        ("return NUMBER * x", "return NUMBER * x if x else x", "model"),
        ("return self.weight * x", "return self.weight + x", "method"),
        ("FEW = 1", "FEW = 3", "member"),
        ("rate: float = 1.5", "rate: float = 1.25", "settings"),
    ],
)
def test_an_edit_shows_in_the_values_of_the_next_process(
    folder: Folder, user: ModuleType, old: str, new: str, readers: str
) -> None:
    before = values(user)
    assert old in HELPER
    folder.write({"helper": HELPER.replace(old, new)})
    assert set(readers.split()) <= changed(before, values(folder.load("user")))


def test_lambdas_and_closures_differ_by_what_they_do(folder: Folder) -> None:
    text = "UP, DOWN = (lambda a: a), (lambda a: -a)\n"
    text += "def make(k):\n    def f(a):\n        return k * a\n    return f\n"
    folder.write({"mine": text})
    mine = folder.load("mine")
    functions = [mine.UP, mine.DOWN, mine.make(1), mine.make(1.0), mine.make(2), mine.make(mine.UP)]
    assert len({trace(function).values for function in functions}) == len(functions)
    assert trace(mine.make(2)).values == trace(mine.make(2)).values


def test_where_code_stands_does_not_change_its_values(folder: Folder) -> None:
    text = "def f(x):\n    return 2 * x\n"
    folder.write({"one": text, "two": f"# a comment\n\n{text}"})
    one, two = trace(folder.load("one").f), trace(folder.load("two").f)
    assert one.values == two.values
    assert one.stamp != two.stamp


def test_circles_end(folder: Folder) -> None:
    text = "def f(x):\n    return g(x)\ndef g(x):\n    return f(x) + len(LOOP)\nLOOP = []\n"
    folder.write({"mine": text + "LOOP.append(LOOP)\nLOOP.append(f)\n"})
    mine = folder.load("mine")
    assert trace(mine.f).lasting
    assert trace(mine.f).values != trace(mine.g).values
    assert trace(mine.f).circular
    assert not trace(lambda x: mine.f(x)).circular


@pytest.mark.slow
def test_a_long_chain_is_followed_to_its_end(folder: Folder) -> None:
    links = "\n".join(f"def f{i}(x): return f{i + 1}(x)" for i in range(3000))
    folder.write({"mine": f"END = 1\n{links}\ndef f3000(x): return END * x\n"})
    mine = folder.load("mine")
    before = trace(mine.f0).values
    vars(mine)["END"] = 2
    assert trace(mine.f0).values != before


def test_objects_differ_by_state_but_not_by_what_follows_from_it(folder: Folder) -> None:
    text = """
from functools import cached_property
from typing import NamedTuple
class Pair(NamedTuple):
    x: int
    y: int
class Slotted:
    __slots__ = ("x",)
    def __init__(self, x): self.x = x
class Words(dict):
    pass
class Derived:
    def __init__(self, x): self.x = x
    @cached_property
    def square(self): return self.x ** 2
"""
    folder.write({"mine": text})
    mine = folder.load("mine")
    for one, other in (
        (mine.Pair(1, 2), mine.Pair(2, 1)),
        (mine.Slotted(1), mine.Slotted(2)),
        (mine.Words(a=1), mine.Words(a=2)),
        (mine.Derived(1), mine.Derived(2)),
    ):
        assert trace(one).values != trace(other).values
        assert trace(one).lasting
    derived = mine.Derived(3)
    before = trace(derived).values
    assert derived.square == 9
    assert trace(derived).values == before


ELSEWHERE = """
import sys
from ebrank.provenance import trace
import mine
print(trace(mine.f).stamp, trace(mine.f).lasting)
"""


@pytest.mark.slow
def test_another_process_finds_the_same_stamp(folder: Folder) -> None:
    folder.write(
        {"mine": "WORDS = {'one', 'two'}\ndef f(x):\n    return x in {'a', 'b'} or WORDS\n"}
    )
    expected = trace(folder.load("mine").f)
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", ELSEWHERE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=folder.path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [expected.stamp, "True"]


# --- files ---------------------------------------------------------------------------------------

RANKER = """
from dataclasses import dataclass
from ebrank.rankers.base import Ranker
{imports}
@dataclass(frozen=True)
class Mine({base}):
    name, help, settings = "mine", "A test's.", ("none",)
    def learner(self, trial):
        {inside}
"""


def ranker_text(imports: str = "", base: str = "Ranker", inside: str = "return None") -> str:
    return RANKER.format(imports=imports, base=base, inside=inside)


def files(thing: object) -> set[str]:
    """Return the modules whose files count, ebrank's own left out."""
    return {name for name in trace(thing).files if not name.startswith("ebrank.")}


@pytest.mark.parametrize("name", sorted(registry.known()))
def test_our_own_rankers_have_no_files_of_others(name: str) -> None:
    ranker = registry.parse(name)
    assert files(ranker) == set()
    assert stamp(ranker) == stamp(registry.parse(name))


def test_our_own_code_counts_with_all_it_imports_and_no_more() -> None:
    reached = set(trace(scored.run_sessions).files)
    assert {"ebrank.equations", "ebrank.special", "ebrank.simulation.tournament"} < reached
    assert {"ebrank.streams", "ebrank.simulation.session", "ebrank.compiled"} < reached
    assert not {"ebrank", "ebrank.simulation.engine", "ebrank.rankers.ebrank"} & reached


def test_what_a_module_imports(folder: Folder) -> None:
    folder.write(
        {
            "mine": ranker_text("import one\nfrom two import CONSTANT\nimport numpy, json"),
            "one": "",
            "two": "def f():\n    from three import x\nCONSTANT = 2",
            "three": "import mine\nx = 1",
            "four": "nobody = 'imports it'",
        }
    )
    assert files(folder.load("mine").Mine()) == {"mine", "one", "two", "three"}


def test_what_a_package_imports(folder: Folder) -> None:
    imports = "from . import near\nfrom ..far import thing\nimport beside"
    folder.write(
        {
            "pack/__init__": "",
            "pack/inner/__init__": "from pack import base",
            "pack/inner/mine": ranker_text(imports),
            "pack/inner/near": "",
            "pack/far": "from .far_away import *\nthing = 1",
            "pack/far_away": "",
            "pack/base": "",
            "pack/unused": "",
            "beside": "",
        }
    )
    modules = {"pack.inner.mine", "pack.inner.near", "pack.far", "pack.far_away", "pack.base"}
    assert files(folder.load("pack.inner.mine").Mine()) == modules | {
        *("pack", "pack.inner", "beside")
    }


def test_a_package_that_is_installed_counts_where_the_ranker_is_from(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write(
        {
            "pack/__init__": "",
            "pack/mine": ranker_text("import pack.near\nimport other"),
            "pack/near": "",
            "other": "",
        }
    )
    monkeypatch.setattr(files_module, "_installed", lambda: [folder.path])
    files_module._is_installed.cache_clear()
    assert files(folder.load("pack.mine").Mine()) == {"pack", "pack.mine", "pack.near"}
    files_module._is_installed.cache_clear()


@pytest.mark.parametrize("edited", ["mine", "base", "helper", "constants", "within"])
def test_an_edit_to_any_of_them_is_another_stamp(folder: Folder, edited: str) -> None:
    texts = {
        "mine": ranker_text("from base import Base", "Base", "import within"),
        "base": "from ebrank.rankers.base import Ranker\nimport helper\nclass Base(Ranker): ...",
        "helper": "from constants import PI",
        "constants": "PI = 3",
        "within": "",
        "other": "",
    }
    folder.write(texts)
    ranker = folder.load("mine").Mine()
    before = stamp(ranker)
    folder.write({"other": "# edited"})
    assert stamp(ranker) == before
    folder.write({edited: texts[edited] + "\n# edited"})
    assert stamp(ranker) != before


def test_a_formula_given_by_name_counts_with_its_code(folder: Folder) -> None:
    imports = "from ebrank.formula import Formula\nBY_NAME = Formula('named:score')"
    folder.write(
        {
            "mine": ranker_text(imports, inside="return BY_NAME"),
            "named": "def score(a):\n    return a",
        }
    )
    before = stamp(folder.load("mine").Mine())
    assert stamp(folder.load("mine").Mine()) == before
    folder.write({"named": "def score(a):\n    return -a"})
    assert stamp(folder.load("mine").Mine()) != before


def test_where_files_are_does_not_matter(folder: Folder) -> None:
    folder.write({"mine": ranker_text("import helper"), "helper": "X = 1"})
    before = stamp(folder.load("mine").Mine())
    moved = Folder(folder.path / "moved")
    moved.write({"mine": ranker_text("import helper"), "helper": "X = 1"})
    for name in ("mine", "helper"):
        del sys.modules[name]
    sys.path.insert(0, str(moved.path))
    try:
        assert stamp(moved.load("mine").Mine()) == before
    finally:
        sys.path.remove(str(moved.path))


def test_a_file_that_cannot_be_parsed_counts_as_it_is(folder: Folder) -> None:
    folder.write({"mine": ranker_text(inside="import broken"), "broken": "def f(:"})
    assert files(folder.load("mine").Mine()) == {"mine", "broken"}


def test_code_typed_in_or_opaque_never_has_the_same_stamp_twice() -> None:
    names: dict[str, Any] = {"__name__": "typed_in"}
    exec(ranker_text(), names)
    ranker: Ranker = names["Mine"]()
    assert not trace(ranker).lasting
    assert stamp(ranker) != stamp(ranker)
    assert trace(ranker).values == trace(ranker).values
    assert not trace(threading.Lock()).lasting
    assert not trace({threading.Lock()}).lasting


def test_methods_of_built_in_objects_count_with_their_objects() -> None:
    one, other = (np.random.default_rng(seed).normal for seed in (1, 2))
    assert trace(one).values == trace(np.random.default_rng(1).normal).values
    assert trace(one).values != trace(other).values


@pytest.mark.slow
def test_no_import_is_overlooked() -> None:
    """The pattern finds whatever the parser does."""
    root = Path(__file__).parents[1]
    paths = [*root.glob("src/**/*.py"), Path(subprocess.__file__)]
    odd = "import a.b as c, d\nif 1: import e; from f import g\nfrom . import (h, # )\n i as j,)\n"
    odd += "from ..k.l import m, \\\n    n\nfrom .import o\ntry: import p\nexcept: pass\n"
    odd += "# a comment ends in import\nfrom q import r\nimport \\\n  s\n"
    texts = [odd.encode(), *(path.read_bytes() for path in paths)]
    assert len(texts) > 300
    for text in texts:
        expected = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                expected |= {("", alias.name) for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                origin = "." * node.level + (node.module or "")
                expected |= {(origin, alias.name) for alias in node.names}
        found = {(origin, name) for origin, names in files_module._imports(text) for name in names}
        assert expected <= found


def test_the_package_stamp_is_of_what_decides_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "ROOT", tmp_path)

    def stamp_with(path: str) -> str:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(target.read_text() + "#" if target.exists() else "#")
        package_stamp.cache_clear()
        return package_stamp()

    try:
        first = stamp_with("service/app.py")
        assert stamp_with("service/app.py") == stamp_with("report/svg.py") == first
        seen = {stamp_with(path) for path in ("a.py", "rankers/b.py", "new/folder/c.py", "a.py")}
        assert len(seen | {first}) == 5
    finally:
        package_stamp.cache_clear()


@pytest.mark.parametrize("library", ["scipy", "numba"])
def test_another_version_of_a_library_that_computes_is_another_package(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = metadata.version
    before = provenance.versions()
    monkeypatch.setattr(
        metadata,
        "version",
        lambda name: "0.0.1" if name == library else installed(name),
    )
    package_stamp.cache_clear()
    try:
        after = provenance.versions()
    finally:
        package_stamp.cache_clear()
    assert {name for name in after if after[name] != before[name]} == {library, "source"}


def test_a_new_python_is_another_package_and_a_bug_fix_of_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stamps = []
    try:
        for version in (("3", "12", "1"), ("3", "12", "9"), ("3", "13", "1")):
            monkeypatch.setattr("platform.python_version_tuple", lambda found=version: found)
            package_stamp.cache_clear()
            stamps.append(package_stamp())
    finally:
        package_stamp.cache_clear()
    assert stamps[0] == stamps[1] != stamps[2]


# --- data ----------------------------------------------------------------------------------------


def test_the_fingerprint_is_of_the_content() -> None:
    dataset: Dataset = tiny()
    usual = fingerprint(dataset)
    assert fingerprint(dataclasses.replace(dataset, name="other")) == usual
    assert fingerprint(dataclasses.replace(dataset, features=dataset.features.copy())) == usual
    seen = {usual, fingerprint(dataclasses.replace(dataset, max_label=dataset.max_label + 1))}
    for name in ("features", "labels", "query_splits", "baseline", "feature_ids"):
        other = getattr(dataset, name).copy()
        other.flat[-1] += -1 if name == "query_splits" else 1
        seen.add(fingerprint(dataclasses.replace(dataset, **{name: other})))
    assert len(seen) == 7


def test_arrays_differ_by_type_shape_and_content() -> None:
    arrays = [
        np.zeros(4),
        np.zeros(4, np.float32),
        np.zeros((2, 2)),
        np.array([0.0, 0.0, 0.0, -0.0]),
        np.zeros(4, object),
        np.float64(0),
        np.int64(0),
    ]
    assert len({trace(array).values for array in arrays}) == len(arrays)
    assert trace(np.arange(6)[::2]).values == trace(np.array([0, 2, 4])).values
