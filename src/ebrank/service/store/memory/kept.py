"""What the parts of the store in memory share."""

from __future__ import annotations

from dataclasses import dataclass, field

from ebrank.service.store.counting import ItemCounts
from ebrank.service.store.records import Deletion, ModelRecord, News

CHANGES = 16
"""How many of the latest writes to a query it reports to servers that missed them."""


@dataclass
class KeptItem:
    """An item with what all entries, and those that were rolled up, add up to."""

    features: tuple[float, ...]
    entered: float
    active: bool = True
    first_shown: float | None = None
    now: ItemCounts = field(default_factory=ItemCounts)
    rolled: ItemCounts = field(default_factory=ItemCounts)


@dataclass
class KeptQuery:
    """A query's items, and how many writes have changed it."""

    items: dict[str, KeptItem] = field(default_factory=dict)
    version: int = 0
    changes: dict[int, News] = field(default_factory=dict)  # that made the latest versions, if all

    def advance(self, change: News | None = None) -> int:
        """Make a version; if it only adds to counts, what it adds is remembered for some time."""
        self.version += 1
        if change is None:
            self.changes.clear()
        else:
            self.changes[self.version] = change
            self.changes.pop(self.version - CHANGES, None)
        return self.version

    def news(self, known: int | None) -> News | None:
        """Return what a copy lacks besides the latest write; None if nothing, or too much."""
        missed = [] if known is None else range(known + 1, self.version)
        if known is None or not missed or not all(one in self.changes for one in missed):
            return None
        changes = [self.changes[version] for version in missed]
        return News(
            known,
            [step for change in changes for step in change.steps],
            [first for change in changes for first in change.first_shown],
        )


@dataclass
class Kept:
    """What the parts of a store share."""

    queries: dict[str, KeptQuery] = field(default_factory=dict)
    minutes: dict[float, dict[str, float]] = field(default_factory=dict)
    models: dict[int, tuple[ModelRecord, bytes]] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=dict)
    deletions: list[Deletion] = field(default_factory=list)
    active_model: int = 0
    lives: int = 0  # of queries that were deleted
    catalog_version: int = 0
    last_time: float = 0.0

    def touch(self, time: float) -> None:
        """Note the time of a write: that of the latest never goes back."""
        self.last_time = max(self.last_time, time)
