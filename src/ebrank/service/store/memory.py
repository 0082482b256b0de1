"""A store in memory, for tests and demos: a database of SQLite that is lost when it is closed."""

from __future__ import annotations

from ebrank.service.store.base import Store
from ebrank.service.store.driver import Mode
from ebrank.service.store.sqlite.database import MemoryDatabase
from ebrank.service.store.sqlite.driver import SqliteDriver


class MemoryStore(Store):
    """Keeps everything in this process, for this process only."""

    def __init__(self, argument: str = "", mode: Mode = "serve") -> None:
        """Take what `open` passes: only `memory:` has a meaning, and all modes are the same."""
        super().__init__(SqliteDriver(MemoryDatabase()))
