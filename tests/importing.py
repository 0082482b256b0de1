"""Modules that a test writes, imports, edits and imports again."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest


class Folder:
    """A folder that can be imported from."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, texts: Mapping[str, str]) -> None:
        """Write modules by their paths: `{"pack/mine": "..."}`."""
        for name, text in texts.items():
            path = self.path / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        importlib.invalidate_caches()

    def load(self, name: str) -> ModuleType:
        """Import a module as a new process would: with everything it imports from here."""
        self.forget()
        return importlib.import_module(name)

    def forget(self) -> None:
        """Take all that was imported from here out of memory."""
        for name, module in list(sys.modules.items()):
            if Path(getattr(module, "__file__", None) or "/").is_relative_to(self.path):
                del sys.modules[name]
        importlib.invalidate_caches()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A folder that can be imported from, for a while; `own_modules` forgets what was."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # its times are too coarse for edits
    monkeypatch.syspath_prepend(tmp_path)
    return Folder(tmp_path)
