from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebrank.bonus import Bonus
from ebrank.bonus.none import NoBonus
from ebrank.errors import ParameterError
from ebrank.plugins import load_class, path_of

SOURCE = """
from ebrank.bonus.none import NoBonus

class Mine(NoBonus):
    class Inner(NoBonus):
        pass

class Other:
    pass

number = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder that modules are imported from; they are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "plugin_here.py").write_text(SOURCE)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("plugin_"):
            del sys.modules[name]


def test_a_class_is_found_by_its_path() -> None:
    assert load_class("plugin_here:Mine", Bonus).__name__ == "Mine"
    assert load_class("plugin_here:Mine.Inner", Bonus).__name__ == "Inner"
    assert load_class(path_of(NoBonus), Bonus) is NoBonus
    assert path_of(NoBonus) == "ebrank.bonus.none:NoBonus"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("plugin_here:Missing", r"no 'Missing' in .*plugin_here\.py; it has NoBonus, Mine"),
        ("plugin_here:Other", r"plugin_here:Other does not derive from ebrank\.bonus:Bonus"),
        ("plugin_here:number", "is not a class derived from"),
        ("plugin_here:", "no ''"),
        ("plugin_absent:Mine", "no module is called 'plugin_absent'"),
        ("plugin_here.inner:Mine", "no module is called 'plugin_here.inner'|fails on import"),
        ("plugin_absent.py:Mine", "leave .py out"),
        ("plugin here:Mine", "is not the name of a module"),
        ("../plugin_here:Mine", "is not the name of a module"),
        (":Mine", "is not the name of a module"),
    ],
)
def test_a_wrong_path_is_refused_in_words(path: str, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        load_class(path, Bonus)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import plugin_of_a_plugin", "plugin_broken fails on import: ModuleNotFoundError"),
        ("1 / 0", "plugin_broken fails on import: ZeroDivisionError"),
        ("def", "plugin_broken fails on import: SyntaxError"),
        ("raise SystemExit(3)", "plugin_broken fails on import: SystemExit: 3"),
    ],
)
def test_a_module_that_fails_on_import_is_named(folder: Path, source: str, problem: str) -> None:
    (folder / "plugin_broken.py").write_text(source)
    with pytest.raises(ParameterError, match=problem):
        load_class("plugin_broken:Mine", Bonus)
