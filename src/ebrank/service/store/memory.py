"""A store that is lost when the process ends: for tests, demos, and as the reference.

It does what `sqlite` does, but with dictionaries and lists, so tests compare the two step by step.
No method ever waits, so its effect is immediate.

>>> import asyncio
>>> async def session() -> None:
...     store = MemoryStore()
...     await store.items.put("shoes", [NewItem("a", (1.0,)), NewItem("b", (2.0,))], time=10.0)
...     await store.log.write([RankingEntry("r1", "shoes", 11.0, 0, items=("b", "a"))])
...     print((await store.items.load("shoes")).counts[:, 0])  # how often at ranks 1 and 2
>>> asyncio.run(session())
[[0 1]
 [1 0]]
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ebrank.evidence.behaviors import NEGATIVE
from ebrank.service.store.announcements import Announced, Announcements
from ebrank.service.store.base import (
    ANOTHER_EPOCH,
    Mode,
    Progress,
    Remembered,
    StoreError,
    UnknownQuery,
    check_catalog,
)
from ebrank.service.store.counting import (
    Fold,
    ItemCounts,
    as_written,
    items_of,
    shown,
    steps,
    time_of,
)
from ebrank.service.store.records import (
    LIFE,
    CatalogCommit,
    Commit,
    Deletion,
    EventEntry,
    Fault,
    Minute,
    ModelRecord,
    NewItem,
    News,
    Operation,
    QueryRow,
    QueryState,
    RankingEntry,
    RolledUp,
    Tally,
    Written,
)
from ebrank.service.store.rows import (
    ALREADY_COUNTED,
    ID_SEEN,
    Count,
    ItemRow,
    added,
    count_rows,
    item_rows,
    padded,
    snapshot_of,
    state_of,
    tally_of,
)
from ebrank.typing import Features

CHANGES = 16
"""How many of the latest writes to a query it reports to servers that missed them."""


@dataclass
class _Item:
    """An item with what all entries, and those that were rolled up, add up to."""

    features: tuple[float, ...]
    entered: float
    active: bool = True
    first_shown: float | None = None
    now: ItemCounts = field(default_factory=ItemCounts)
    rolled: ItemCounts = field(default_factory=ItemCounts)


@dataclass
class _Query:
    """A query's items, and how many writes have changed it."""

    items: dict[str, _Item] = field(default_factory=dict)
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
class _Kept:
    """What the parts of a store share."""

    queries: dict[str, _Query] = field(default_factory=dict)
    minutes: dict[float, dict[str, float]] = field(default_factory=dict)
    models: dict[int, tuple[ModelRecord, bytes]] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=dict)
    deletions: list[Deletion] = field(default_factory=list)
    active_model: int = 0
    lives: int = 0  # of queries that were deleted
    catalog_version: int = 0
    last_time: float = 0.0

    def touch(self, time: float) -> None:
        self.last_time = max(self.last_time, time)


class MemoryStore:
    """Keeps everything in this process, for this process only."""

    def __init__(self, argument: str = "", mode: Mode = "serve") -> None:
        """Take what `open` passes: only `memory:` has a meaning, and all modes are the same."""
        self.url: str | None = None
        self.touched: float | None = None
        self.epoch = 0
        self._announcements = Announcements()
        kept = _Kept()
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


class MemoryItems:
    """Queries and their items."""

    def __init__(self, kept: _Kept) -> None:
        self._kept = kept

    async def queries(self) -> list[str]:
        """Return the names of all queries, in the order in which they were added."""
        return list(self._kept.queries)

    async def find(
        self, prefix: str = "", contains: str = "", after: str | None = None, limit: int = 100
    ) -> list[QueryRow]:
        """Return queries whose names begin with a text and contain another, after a name."""
        names = sorted(self._kept.queries, key=lambda name: name.encode("utf-8", "surrogatepass"))
        found = [name for name in names if name.startswith(prefix) and contains in name]
        later = [name for name in found if after is None or name.encode() > after.encode()]
        return [QueryRow(name, len(self._kept.queries[name].items)) for name in later[:limit]]

    async def load(self, query: str) -> QueryState | None:
        """Return the state of a query, or None if it is unknown; the caller owns the arrays."""
        known = self._kept.queries.get(query)
        return None if known is None else self._state(query, known)

    async def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state as if only what was rolled up had happened."""
        known = self._kept.queries.get(query)
        if known is None:
            return None
        rolled = _count_rows([item.rolled for item in known.items.values()])
        return snapshot_of(self._state(query, known), rolled)

    def _state(self, query: str, known: _Query) -> QueryState:
        items = known.items.values()
        rows = [
            ItemRow(name, item.entered, item.active, item.first_shown)
            for name, item in known.items.items()
        ]
        features = padded([item.features for item in items])
        counts = _count_rows([item.now for item in items])
        return state_of(query, rows, features, counts, known.version)

    async def put(
        self,
        query: str,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        known: int | None = None,
    ) -> int:
        """Add candidates or change their features; return the query's version."""
        if not items:
            return self._kept.queries[query].version if query in self._kept.queries else 0
        kept = self._kept.queries.get(query, _Query(version=LIFE * self._kept.lives))
        check_catalog(meta, known, self._kept.catalog_version)
        self._kept.queries[query] = kept
        for item in items:
            old = kept.items.setdefault(item.id, _Item((), time))
            old.features, old.active = item.features, True
        self._kept.meta |= meta or {}
        self._kept.catalog_version += bool(meta)
        self._kept.touch(time)
        return kept.advance()

    async def withdraw(self, query: str, item: str, time: float) -> int | None:
        """Withdraw a candidate; its history stays."""
        known = self._kept.queries.get(query, _Query())
        there = known.items.get(item)
        if there is None or not there.active:
            return None
        there.active = False
        self._kept.touch(time)
        return known.advance()

    async def restore(self, state: QueryState, time: float) -> None:
        """Add a query with the history that its counters hold, as if it had been rolled up."""
        if state.query in self._kept.queries:
            raise StoreError(f"query {state.query!r} is there already")
        features = map(tuple, state.features.tolist())
        items = {
            row.id: _Item(numbers, *row[1:])
            for row, numbers in zip(item_rows(state), features, strict=True)
        }
        for place, outcome, slot, count, epoch in count_rows(state):
            item = items[state.ids[place]]
            for counts in (item.now, item.rolled):
                counts.counts[outcome, slot], counts.epoch = count, epoch
        self._kept.queries[state.query] = _Query(items, LIFE * self._kept.lives + 1)
        self._kept.touch(time)

    async def tally(self) -> Tally:
        """Return how many items all queries have, and how many have a number in each column."""
        queries = self._kept.queries.values()
        return tally_of(
            padded([item.features for item in query.items.values()]) for query in queries
        )


class MemoryCatalog:
    """Features that queries share."""

    def __init__(self, kept: _Kept) -> None:
        self._kept = kept
        self._rows: dict[str, tuple[int, Features | None]] = {}  # by name, with their version

    async def version(self) -> int:
        """Return how many writes have changed the catalog."""
        return self._kept.catalog_version

    async def read(self, names: Sequence[str], since: int = 0) -> dict[str, Features | None]:
        """Return the rows of the items that were put after a version; None for removed ones."""
        found = ((name, self._rows[name]) for name in names if name in self._rows)
        return {
            name: None if row is None else row.copy()
            for name, (version, row) in found
            if version > since
        }

    async def entries(self) -> AsyncIterator[tuple[str, Features]]:
        """Yield all items with their rows, in the order of their names as UTF-8."""
        for name in sorted(self._rows, key=lambda name: name.encode("utf-8", "surrogatepass")):
            row = self._rows[name][1]
            if row is not None:
                yield name, row.copy()

    async def put(
        self,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        known: int | None = None,
    ) -> CatalogCommit:
        """Add items or change their rows, and keep settings in the same transaction."""
        check_catalog(meta, known, self._kept.catalog_version)
        changed, version = 0, self._kept.catalog_version + 1
        for item in items:
            row = np.array(item.features, np.float32)
            old = self._rows.get(item.id, (0, None))[1]
            if old is None or old.tobytes() != row.tobytes():
                self._rows[item.id] = version, row
                changed += 1
        self._kept.meta |= meta or {}
        return self._commit(changed, bool(changed or meta), time)

    async def remove(self, names: Sequence[str], time: float) -> CatalogCommit:
        """Remove items; the version grows by one if any of them existed."""
        changed, version = 0, self._kept.catalog_version + 1
        for name in names:
            if self._rows.get(name, (0, None))[1] is not None:
                self._rows[name] = version, None
                changed += 1
        return self._commit(changed, bool(changed), time)

    def forget(self, name: str) -> bool:
        """Delete an item without a trace; return whether it existed."""
        there = self._rows.pop(name, None) is not None
        self._kept.catalog_version += there
        return there

    def _commit(self, changed: int, rises: bool, time: float) -> CatalogCommit:
        if rises:
            self._kept.catalog_version += 1
            self._kept.touch(time)
        return CatalogCommit(self._kept.catalog_version, changed)

    async def tally(self) -> Tally:
        """Return how many items there are, and how many have a number in each column."""
        return tally_of(row[None] for _, row in self._rows.values() if row is not None)


class MemoryLog:
    """Rankings and events."""

    def __init__(self, kept: _Kept) -> None:
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
        self, entry: Operation, counts: Callable[[_Item], ItemCounts]
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


def _first_shown(query: _Query) -> dict[int, float]:
    """Return when items of a query were first shown, by their places."""
    shown_then = [item.first_shown for item in query.items.values()]
    return {place: time for place, time in enumerate(shown_then) if time is not None}


def _count_rows(items: Sequence[ItemCounts]) -> list[Count]:
    return [
        (place, outcome, slot, count, one.epoch)
        for place, one in enumerate(items)
        for (outcome, slot), count in one.counts.items()
    ]


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


class MemoryDeletions:
    """Deletes things, and keeps a proof."""

    def __init__(self, kept: _Kept, catalog: MemoryCatalog, log: MemoryLog) -> None:
        self._kept = kept
        self._catalog = catalog
        self._log = log

    async def all(self) -> list[Deletion]:
        """Return the proofs of all deletions, oldest first."""
        return list(self._kept.deletions)

    async def query(self, query: str, digest: str, time: float) -> Deletion | None:
        """Delete a query: its items, counters and entries of the log."""
        if self._kept.queries.pop(query, None) is None:
            return None
        self._kept.lives += 1
        return self._noted(Deletion(time, "query", digest, 1, *self._log.remove(query)))

    async def item(
        self, item: str, stand_in: str, digest: str, time: float
    ) -> tuple[Deletion, list[str]] | None:
        """Delete an item from all queries and the catalog."""
        names = [name for name, known in self._kept.queries.items() if item in known.items]
        if not self._catalog.forget(item) and not names:
            return None
        for query in names:
            known = self._kept.queries[query]
            gone = known.items[item]
            gone.features, gone.active = (), False
            known.items = {
                stand_in if one == item else one: row for one, row in known.items.items()
            }
            known.advance()
        self._log.rename(item, stand_in)
        return self._noted(Deletion(time, "item", digest, len(names))), names

    async def user(self, user: str, digest: str, time: float) -> Deletion:
        """Remove a user from all lists, which still count."""
        changed = self._log.rewrite(
            lambda entry: (
                dataclasses.replace(entry, user=None)
                if isinstance(entry, RankingEntry) and entry.user == user
                else entry
            )
        )
        return self._noted(Deletion(time, "user", digest, rankings=changed))

    def _noted(self, deletion: Deletion) -> Deletion:
        self._kept.touch(deletion.time)
        self._kept.deletions.append(deletion)
        return deletion

    async def restore(self, deletions: Sequence[Deletion]) -> None:
        """Add proofs from elsewhere."""
        self._kept.deletions += deletions

    async def purge(self) -> None:
        """Do nothing: there are no files."""


class MemoryModels:
    """The versions of the prior."""

    def __init__(self, kept: _Kept) -> None:
        self._kept = kept

    async def all(self) -> list[ModelRecord]:
        """Return all versions, oldest first."""
        return [record for _, (record, _) in sorted(self._kept.models.items())]

    async def document(self, version: int) -> bytes | None:
        """Return the file of a version."""
        return self._kept.models[version][1] if version in self._kept.models else None

    async def active(self) -> int:
        """Return the active version, 0 before any training."""
        return self._kept.active_model

    async def add(
        self,
        record: ModelRecord,
        document: bytes,
        *,
        instead_of: int | None = None,
        unless: Mapping[str, str] | None = None,
    ) -> bool:
        """Keep a version and its file; return whether it is now the active one."""
        if record.version in self._kept.models or record.version < 1:
            raise StoreError(f"there is a model {record.version} already")
        free = instead_of in (None, self._kept.active_model)
        held = any(self._kept.meta.get(key) == value for key, value in (unless or {}).items())
        live = record.activated and free and not held
        kept = dataclasses.replace(record, activated=live)
        self._kept.models[record.version] = (kept, document)
        if live:
            self._kept.active_model = record.version
        return live

    async def remove(self, versions: Sequence[int]) -> None:
        """Remove versions and their files; the active one cannot be removed."""
        if self._kept.active_model in versions:
            raise StoreError(f"model {self._kept.active_model} is active and cannot be removed")
        for version in versions:
            self._kept.models.pop(version, None)

    async def activate(self, version: int, *, meta: Mapping[str, str] | None = None) -> None:
        """Activate a version; 0 goes back to before any training."""
        if version and version not in self._kept.models:
            raise StoreError(f"there is no model {version}")
        self._kept.active_model = version
        self._kept.meta |= meta or {}
        if version:
            record, document = self._kept.models[version]
            self._kept.models[version] = (dataclasses.replace(record, activated=True), document)


class MemoryMeta:
    """Settings that belong to the data, and sums of minutes."""

    def __init__(self, kept: _Kept) -> None:
        self._kept = kept

    async def get(self, key: str) -> str | None:
        """Return a setting."""
        return self._kept.meta.get(key)

    async def all(self) -> dict[str, str]:
        """Return all settings, in the order of their names."""
        return dict(sorted(self._kept.meta.items()))

    async def set(self, values: Mapping[str, str], minutes: Sequence[Minute] = ()) -> None:
        """Keep settings, and add the sums of some minutes to those kept."""
        self._kept.meta |= values
        for minute in minutes:
            kept = self._kept.minutes.setdefault(minute.start, {})
            for name, value in minute.values.items():
                kept[name] = kept.get(name, 0.0) + value

    async def add(
        self, key: str, numbers: Mapping[str, int], minutes: Sequence[Minute] = ()
    ) -> dict[str, int]:
        """Add to the numbers that a setting holds, as JSON, and return the new ones."""
        sums = added(self._kept.meta.get(key), numbers)
        await self.set({key: json.dumps(sums)}, minutes)
        return sums

    async def settle(self, values: Mapping[str, str]) -> dict[str, str]:
        """Keep the settings that are not set yet; return the current value of each."""
        self._kept.meta = {**values, **self._kept.meta}
        return {key: self._kept.meta[key] for key in values}

    async def sums(self, since: float, width: float) -> list[Minute]:
        """Return the sums of the minutes since a time, added up over spans of some seconds."""
        spans: dict[float, Minute] = {}
        for minute in await self.minutes(since):
            start = minute.start // width * width
            sums = spans.setdefault(start, Minute(start)).values
            for name, value in minute.values.items():
                sums[name] = sums.get(name, 0.0) + value
        return list(spans.values())

    async def minutes(self, since: float) -> list[Minute]:
        """Return the sums of the minutes since a time, in order."""
        kept = sorted((start, v) for start, v in self._kept.minutes.items() if start >= since)
        return [Minute(start, dict(values)) for start, values in kept]
