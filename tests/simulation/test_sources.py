"""Which files a ranker from elsewhere depends on."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ebrank.rankers import registry
from ebrank.rankers.base import Ranker
from ebrank.simulation.sources import own_sources
from ebrank.simulation.storage import engine_stamp

CLASS = """
from dataclasses import dataclass
{imports}
@dataclass(frozen=True)
class Mine({base}):
    name, help, settings = "mine", "A test's.", ("none",)
    def learner(self, trial):
        {inside}
"""

Write = Callable[[str, str], None]


def source(imports: str = "", base: str = "Ranker", inside: str = "return None") -> str:
    imports = f"from ebrank.rankers.base import Ranker\n{imports}"
    return CLASS.format(imports=imports, base=base, inside=inside)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write files into a folder that can be imported from, for a while."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        importlib.invalidate_caches()

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def files(ranker: Ranker) -> set[str]:
    return {name for name in own_sources(type(ranker)) if not name.endswith(":")}


@pytest.mark.parametrize("name", sorted(registry.known()))
def test_our_own_rankers_have_no_others(name: str) -> None:
    assert own_sources(type(registry.parse(name))) == {}


def test_what_a_module_imports_from_beside_it(write: Write) -> None:
    write("mine.py", source("import one\nfrom two import CONSTANT\nimport numpy, json"))
    write("one.py", "")
    write("two.py", "def f():\n    from three import x\nCONSTANT = 2")
    write("three.py", "import mine\nx = 1")
    write("four.py", "nobody imports it")
    assert files(registry.parse("mine:Mine")) == {"mine.py", "one.py", "two.py", "three.py"}


def test_what_a_package_imports_from_itself(write: Write) -> None:
    write("pack/__init__.py", "")
    write("pack/inner/__init__.py", "from pack import base")
    write(
        "pack/inner/mine.py", source("from . import near\nfrom ..far import thing\nimport beside")
    )
    write("pack/inner/near.py", "")
    write("pack/far.py", "from .far_away import *\nthing = 1")
    write("pack/far_away.py", "")
    write("pack/base.py", "")
    write("beside.py", "belongs = 'to somebody else'")
    assert files(registry.parse("pack.inner.mine:Mine")) == {
        "pack/__init__.py",
        "pack/inner/__init__.py",
        "pack/inner/mine.py",
        "pack/inner/near.py",
        "pack/far.py",
        "pack/far_away.py",
        "pack/base.py",
    }


def test_classes_it_derives_from_count_wherever_they_are(write: Write) -> None:
    write("pack/__init__.py", "")
    write("pack/mine.py", source("import beside", "beside.Base"))
    write("beside.py", "from ebrank.rankers.base import Ranker\nclass Base(Ranker): ...")
    ranker = registry.parse("pack.mine:Mine")
    assert set(own_sources(type(ranker))) == {"pack.mine:", "beside:", "pack/mine.py"}


@pytest.mark.parametrize("changed", ["mine.py", "base.py", "helper.py", "constants.py"])
def test_a_change_to_any_of_them_is_a_change_of_the_stamp(write: Write, changed: str) -> None:
    write("mine.py", source("from base import Base", "Base"))
    write(
        "base.py", "from ebrank.rankers.base import Ranker\nimport helper\nclass Base(Ranker): ..."
    )
    write("helper.py", "from constants import PI")
    write("constants.py", "PI = 3")
    write("other.py", "")
    ranker = registry.parse("mine:Mine")
    before = engine_stamp(ranker)
    write("other.py", "# changed")
    assert engine_stamp(ranker) == before
    path = Path(sys.path[0]) / changed
    write(changed, path.read_text() + "\n# changed")
    assert engine_stamp(ranker) != before


def test_where_they_are_does_not_matter(write: Write, tmp_path: Path) -> None:
    write("mine.py", source("import helper"))
    write("helper.py", "")
    before = engine_stamp(registry.parse("mine:Mine"))
    moved = tmp_path / "moved"
    for name in ("mine.py", "helper.py"):
        write(f"moved/{name}", (tmp_path / name).read_text())
    del sys.modules["mine"], sys.modules["helper"]
    sys.path.insert(0, str(moved))
    try:
        ranker = registry.parse("mine:Mine")
    finally:
        sys.path.remove(str(moved))
    assert engine_stamp(ranker) == before


def test_a_file_that_cannot_be_parsed_counts_as_it_is(write: Write) -> None:
    write("mine.py", source(inside="import broken"))
    write("broken.py", "def f(:")
    assert files(registry.parse("mine:Mine")) == {"mine.py", "broken.py"}


def test_what_is_typed_in_may_be_anything() -> None:
    names: dict[str, object] = {"__name__": "typed_in"}
    exec(source(), names)
    ranker = names["Mine"]()  # type: ignore[operator]
    assert engine_stamp(ranker) != engine_stamp(ranker)
