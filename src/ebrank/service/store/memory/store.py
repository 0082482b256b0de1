"""The store in memory: its parts, and what it has in place of files."""

from __future__ import annotations

from pathlib import Path

from ebrank.service.store.announcements import Announced, Announcements
from ebrank.service.store.base import Mode, Progress, StoreError
from ebrank.service.store.memory.catalog import MemoryCatalog
from ebrank.service.store.memory.deletions import MemoryDeletions
from ebrank.service.store.memory.items import MemoryItems
from ebrank.service.store.memory.kept import Kept
from ebrank.service.store.memory.log import MemoryLog
from ebrank.service.store.memory.meta import MemoryMeta
from ebrank.service.store.memory.models import MemoryModels
from ebrank.service.store.records import Fault


class MemoryStore:
    """Keeps everything in this process, for this process only."""

    def __init__(self, argument: str = "", mode: Mode = "serve") -> None:
        """Take what `open` passes: only `memory:` has a meaning, and all modes are the same."""
        self.url: str | None = None
        self.touched: float | None = None
        self.epoch = 0
        self._announcements = Announcements()
        kept = Kept()
        self.items = MemoryItems(kept)
        self.catalog = MemoryCatalog(kept)
        self.log = MemoryLog(kept)
        self.models = MemoryModels(kept)
        self.meta = MemoryMeta(kept)
        self.deletions = MemoryDeletions(kept, self.catalog, self.log)

    async def flush(self) -> None:
        """Do nothing: there is no disk."""

    async def size(self) -> None:
        """Return nothing: there is no disk."""

    async def elected(self, job: str) -> bool:
        """Return whether this server does a job: there is no other."""
        return True

    async def announce(self, server: str, about: str | None) -> None:
        """Record that a server is running, and what it reports; None when it leaves."""
        self._announcements.announce(server, about)

    async def servers(self) -> list[Announced]:
        """Return the servers that have announced themselves recently."""
        return self._announcements.heard()

    async def faults(self) -> list[Fault]:
        """Return nothing: there are no files or tables."""
        return []

    async def backup(self, target: Path, progress: Progress | None = None) -> Path:
        """Refuse: there is no file."""
        raise StoreError("a store in memory has no files to copy. Export it instead")

    async def close(self, *, discard: bool = False) -> None:
        """Do nothing: there is nothing to release."""
