"""Classes by their path: loaded if they fit, or refused with what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebrank import ParameterError
from ebrank.environment.plugins import load_class, path_of
from ebrank.model.bonus import Bonus
from ebrank.model.bonus.none import NoBonus

MINE = """
from ebrank.model.bonus import Bonus
from ebrank.model.bonus.none import NoBonus

class Mine(Bonus):
    class Inner(Bonus):
        pass

NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder to import from."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_parts.py").write_text(MINE)
    return tmp_path


def test_a_class_and_its_path() -> None:
    assert load_class("ebrank.model.bonus.none:NoBonus", Bonus) is NoBonus
    assert path_of(NoBonus) == "ebrank.model.bonus.none:NoBonus"


@pytest.mark.usefixtures("folder")
def test_a_class_of_ones_own_also_within_another() -> None:
    mine = load_class("my_parts:Mine", Bonus)
    assert issubclass(mine, Bonus)
    assert path_of(mine) == "my_parts:Mine"
    assert path_of(load_class("my_parts:Mine.Inner", Bonus)) == "my_parts:Mine.Inner"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("no_such_module:Mine", "no module is called 'no_such_module'"),
        ("my_parts.py:Mine", "no module is called 'my_parts.py'.*leave out .py"),
        ("./my_parts:Mine", "not the name of a module"),
        (":Mine", "not the name of a module"),
        ("my_parts:Missing", "no 'Missing' in .*my_parts.py; it has NoBonus, Mine"),
        ("my_parts", "no '' in .*my_parts.py"),
        ("my_parts:NUMBER", "my_parts:NUMBER is not a class derived from ebrank.model.bonus:Bonus"),
        ("pathlib:Path", "pathlib:Path does not derive from ebrank.model.bonus:Bonus"),
        ("sys:Missing", "no 'Missing' in sys; it has no bonus at all"),
    ],
)
def test_errors_name_what_is_wrong_with_a_path(path: str, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        load_class(path, Bonus)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import my_missing_dependency", "ModuleNotFoundError"),
    ],
)
def test_a_module_that_fails_is_blamed(folder: Path, text: str, problem: str) -> None:
    (folder / "my_broken.py").write_text(text)
    with pytest.raises(ParameterError, match=f"my_broken fails on import: {problem}"):
        load_class("my_broken:X", Bonus)
