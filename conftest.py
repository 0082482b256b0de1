"""Doctests import modules of the package as everybody else does, and therefore once."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "src"


@pytest.hookimpl(tryfirst=True)
def pytest_collect_file(file_path: Path) -> None:
    """Import the package of a module before pytest does.

    To import a module, pytest executes its package's `__init__.py` and then the module, even if the
    package has imported it: there would be two of each class and setting.
    """
    if file_path.suffix == ".py" and file_path.is_relative_to(SOURCES):
        importlib.import_module(".".join(file_path.parent.relative_to(SOURCES).parts))
