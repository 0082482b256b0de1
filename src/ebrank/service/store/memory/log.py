"""The log as a list, and what its entries add to the counters."""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

from ebrank.evidence.behaviors import NEGATIVE
from ebrank.service.store.base import ANOTHER_EPOCH, Remembered, StoreError, UnknownQuery
from ebrank.service.store.counting import (
    Fold,
    ItemCounts,
    as_written,
    items_of,
    shown,
    steps,
    time_of,
)
from ebrank.service.store.memory.kept import Kept, KeptItem, KeptQuery
from ebrank.service.store.records import (
    LIFE,
    Commit,
    EventEntry,
    News,
    Operation,
    RankingEntry,
    RolledUp,
    Written,
)
from ebrank.service.store.rows import ALREADY_COUNTED, ID_SEEN


class MemoryLog:
    """Rankings and events."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._entries: deque[Operation] = deque()
        self._rankings: dict[str, RankingEntry] = {}
        self._event_ids: set[tuple[str, str]] = set()  # with their queries
        self._events: dict[tuple[str, str], dict[str, Written]] = {}  # by type

    async def write(
        self,
        operations: Sequence[Operation],
        *,
        epoch: int | None = None,
        known: Remembered | None = None,
    ) -> Commit:
        """Log operations and add them to the counters, in order, all or none."""
        if epoch:  # there is but one
            raise StoreError(ANOTHER_EPOCH)
        new: set[str] = set()
        for entry in operations:
            self._check(entry, new)
        queries = {entry.query: self._kept.queries[entry.query] for entry in operations}
        before = {name: _first_shown(query) for name, query in queries.items()}
        written = [self._write(entry) for entry in operations]
        versions, news = {}, {}
        for name, query in queries.items():
            places = {item: place for place, item in enumerate(query.items)}
            added = [
                (places[item], outcome, slot, amount)
                for entry, result in zip(operations, written, strict=True)
                if entry.query == name and result.status == "accepted"
                for item, outcome, slot, amount in steps(as_written(entry, result), items_of(entry))
            ]
            first = _first_shown(query).items() - before[name].items()
            forgets = any(entry.epoch for entry in operations)
            versions[name] = query.advance(None if forgets else News(0, added, sorted(first)))
            missed = query.news(None if known is None else known(name))
            if missed is not None:
                news[name] = missed
        return Commit(written, versions, self._kept.active_model, self._kept.catalog_version, news)

    def _check(self, entry: Operation, new: set[str]) -> None:
        known = self._kept.queries.get(entry.query)
        if known is None:
            raise UnknownQuery(f"there is no query {entry.query!r}")
        if entry.hint is not None and entry.hint.life != known.version // LIFE:
            raise UnknownQuery(f"query {entry.query!r} was deleted, and given again")
        for name in items_of(entry):
            if name not in known.items:
                raise StoreError(f"query {entry.query!r} has no item {name!r}")
        if isinstance(entry, RankingEntry):
            if entry.id in new or entry.id in self._rankings:
                raise StoreError(f"there is a ranking {entry.id!r} already")
            new.add(entry.id)

    def _write(self, entry: Operation) -> Written:
        written = Written("accepted")
        if isinstance(entry, RankingEntry):
            self._rankings[entry.id] = entry
        else:
            if (entry.query, entry.event_id) in self._event_ids:
                return Written("duplicate", ID_SEEN)
            before = self._events.setdefault((entry.ranking_id, entry.item), {})
            if entry.type in before:
                return Written("duplicate", ALREADY_COUNTED)
            shown_before = any(one.shows for one in before.values())
            earlier = [one.outcome for one in before.values()]
            best = max(earlier, default=0)
            better = NEGATIVE not in earlier and (entry.outcome > best or entry.outcome < 0)
            written = Written(
                "accepted",
                shows=entry.shows and not shown_before,
                outcome=entry.outcome if better else 0,
                replaces=entry.replaces or (best if better else 0),
            )
            before[entry.type] = written
            self._event_ids.add((entry.query, entry.event_id))
            entry = as_written(entry, written)
        self._entries.append(entry)
        items, names = self._kept.queries[entry.query].items, items_of(entry)
        for name, counts in self._folded(entry, lambda item: item.now).items():
            items[name].now = counts
        for name in shown(entry, names):
            if items[name].first_shown is None:
                items[name].first_shown = time_of(entry)
        self._kept.touch(time_of(entry))
        return written

    def _folded(
        self, entry: Operation, counts: Callable[[KeptItem], ItemCounts]
    ) -> dict[str, ItemCounts]:
        """Return the counts of items, once an entry is added to them."""
        items = self._kept.queries[entry.query].items
        fold = Fold(lambda _, name: counts(items[name]), lambda _, name: list(items).index(name))
        fold.add(entry)
        return {name: folded for (_, name), folded in fold.items.items()}

    async def ranking(self, ranking_id: str) -> RankingEntry | None:
        """Return a list that is still in the log."""
        return self._rankings.get(ranking_id)

    async def entries(self) -> AsyncIterator[Operation]:
        """Yield the log in order, as it is now."""
        for entry in tuple(self._entries):
            yield entry

    async def latest(self, lists: int) -> AsyncIterator[Operation]:
        """Yield the end of the log in order, starting this many lists back."""
        entries = tuple(self._entries)
        begins = [at for at, entry in enumerate(entries) if isinstance(entry, RankingEntry)]
        for entry in entries[begins[-lists] if lists <= len(begins) else 0 :]:
            yield entry

    async def length(self) -> int:
        """Return how many entries the log holds."""
        return len(self._entries)

    async def last_time(self) -> float:
        """Return the time of the latest write, 0 if there is none: clocks may jump back."""
        return self._kept.last_time

    async def roll_up(self, before: float, *, minutes_before: float | None = None) -> RolledUp:
        """Add the log's entries older than a time to the snapshot, and remove them."""
        old = list(itertools.takewhile(lambda entry: time_of(entry) < before, self._entries))
        for entry in old:
            self._entries.popleft()
            items = self._kept.queries[entry.query].items
            for name, counts in self._folded(entry, lambda item: item.rolled).items():
                items[name].rolled = counts
            self._forget(entry)
        oldest = before if minutes_before is None else minutes_before
        for start in [start for start in self._kept.minutes if start < oldest]:
            del self._kept.minutes[start]
        rankings = sum(isinstance(entry, RankingEntry) for entry in old)
        return RolledUp(rankings, len(old) - rankings)

    def remove(self, query: str) -> tuple[int, int]:
        """Remove all entries of a query; return how many rankings and events there were."""
        gone = [entry for entry in self._entries if entry.query == query]
        self._entries = deque(entry for entry in self._entries if entry.query != query)
        for entry in gone:
            self._forget(entry)
        rankings = sum(isinstance(entry, RankingEntry) for entry in gone)
        return rankings, len(gone) - rankings

    def rewrite(self, change: Callable[[Operation], Operation]) -> int:
        """Change entries one by one; return how many changed."""
        before, self._entries = self._entries, deque(map(change, self._entries))
        for entry in self._entries:
            if isinstance(entry, RankingEntry):
                self._rankings[entry.id] = entry
        return sum(one is not other for one, other in zip(before, self._entries, strict=True))

    def rename(self, item: str, stand_in: str) -> None:
        """Give an item another name."""
        self.rewrite(lambda entry: _renamed(entry, item, stand_in))
        for ranking, name in [key for key in self._events if key[1] == item]:
            self._events[ranking, stand_in] = self._events.pop((ranking, name))

    def _forget(self, entry: Operation) -> None:
        if isinstance(entry, EventEntry):
            self._event_ids.remove((entry.query, entry.event_id))
            before = self._events[entry.ranking_id, entry.item]
            del before[entry.type]
            if not before:
                del self._events[entry.ranking_id, entry.item]
        else:
            del self._rankings[entry.id]


def _first_shown(query: KeptQuery) -> dict[int, float]:
    """Return when items of a query were first shown, by their places."""
    shown_then = [item.first_shown for item in query.items.values()]
    return {place: time for place, time in enumerate(shown_then) if time is not None}


def _renamed(entry: Operation, item: str, stand_in: str) -> Operation:
    """Return an entry with another name of an item."""
    if item not in items_of(entry):
        return entry
    if isinstance(entry, EventEntry):
        return dataclasses.replace(entry, item=stand_in)
    return dataclasses.replace(
        entry,
        items=tuple(stand_in if name == item else name for name in entry.items),
        would_rank=tuple(stand_in if name == item else name for name in entry.would_rank),
    )
