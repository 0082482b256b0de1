"""Every store there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ebrank.service.store.base import Store
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.sqlite import SqliteStore

KINDS: dict[str, Callable[[Path], Store]] = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "store"),
}


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = KINDS[request.param](tmp_path)
    yield opened
    opened.close()
