"""A store that forgets when the process ends: for tests, demos, and as the plain truth.

It does what `sqlite` does with dictionaries and lists, so the two are compared step by step.

>>> store = MemoryStore()
>>> store.put_items("shoes", [NewItem("a", (1.0,)), NewItem("b", (2.0,))], time=10.0)
>>> entry = RankingEntry("r1", "shoes", 11.0, 0, items=("b", "a"), examination=(1.0, 0.5))
>>> store.write([entry], flush=False)
[Written(status='accepted', reason='', shows=False)]
>>> store.load("shoes").stats.exposure
array([0.5, 1. ])
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ebrank.service.store.base import StoreError
from ebrank.service.store.counting import as_written, steps, time_of
from ebrank.service.store.records import (
    EventEntry,
    Minute,
    ModelRecord,
    NewItem,
    Operation,
    QueryState,
    RankingEntry,
    RolledUp,
    Written,
)
from ebrank.service.store.rows import (
    ALREADY_COUNTED,
    ID_SEEN,
    Counters,
    ItemRow,
    check_width,
    rows_of,
    state_of,
)


@dataclass
class _Item:
    """An item with what all entries, and those that were rolled up, add up to."""

    features: tuple[float, ...]
    entered: float
    active: bool = True
    now: Counters = field(default_factory=Counters)
    rolled: Counters = field(default_factory=Counters)

    def row(self, name: str, counters: Counters) -> ItemRow:
        return ItemRow(name, self.entered, self.active, *dataclasses.astuple(counters))


class MemoryStore:
    """Keeps everything in this process; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._items: dict[str, dict[str, _Item]] = {}
        self._log: deque[Operation] = deque()
        self._rankings: dict[str, RankingEntry] = {}
        self._event_ids: set[str] = set()
        self._events: dict[tuple[str, str], dict[str, bool]] = {}  # type → whether it shows
        self._last_time = 0.0
        self._minutes: dict[float, dict[str, float]] = {}
        self._models: dict[int, tuple[ModelRecord, bytes]] = {}
        self._active = 0
        self._meta: dict[str, str] = {}

    # --- items ---------------------------------------------------------------------------------

    def queries(self) -> list[str]:
        """Return the names of all queries, in the order in which they were first given."""
        with self._lock:
            return list(self._items)

    def load(self, query: str) -> QueryState | None:
        """Return the state of a query, or None if it is unknown; the caller owns the arrays."""
        return self._state(query, lambda item: item.now)

    def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state as if only what was rolled up had happened."""
        return self._state(query, lambda item: item.rolled)

    def _state(self, query: str, counters: Callable[[_Item], Counters]) -> QueryState | None:
        with self._lock:
            items = self._items.get(query, {})
            rows = [item.row(name, counters(item)) for name, item in items.items()]
            features = np.array([item.features for item in items.values()], np.float32)
            return state_of(query, rows, features)

    def put_items(
        self,
        query: str,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        flush: bool = True,
    ) -> None:
        """Add candidates or change their features, all or none; withdrawn ones come back."""
        with self._lock:
            there = self._items.get(query, {})
            check_width(query, items, next((len(old.features) for old in there.values()), None))
            for item in items:
                old = self._items.setdefault(query, {}).setdefault(item.id, _Item((), time))
                old.features, old.active = item.features, True
            self._meta |= meta or {}
            self._last_time = max(self._last_time, time if items else 0.0)

    def withdraw(self, query: str, item: str, time: float, *, flush: bool = True) -> bool:
        """Withdraw a candidate, its history stays; return whether it was one."""
        with self._lock:
            there = self._items.get(query, {}).get(item)
            if there is None or not there.active:
                return False
            there.active = False
            self._last_time = max(self._last_time, time)
            return True

    def restore(self, state: QueryState, time: float) -> None:
        """Add a query with the history that its counters hold, as if it had been rolled up."""
        with self._lock:
            if state.query in self._items:
                raise StoreError(f"query {state.query!r} is there already")
            features = map(tuple, state.features.tolist())
            self._items[state.query] = {
                row.id: _Item(one, row.entered, row.active, Counters(*row[3:]), Counters(*row[3:]))
                for row, one in zip(rows_of(state), features, strict=True)
            }
            self._last_time = max(self._last_time, time)

    # --- log -----------------------------------------------------------------------------------

    def write(self, operations: Sequence[Operation], *, flush: bool) -> list[Written]:
        """Log operations and add them to the counters, in order, all or none."""
        with self._lock:
            for entry in operations:
                self._check(entry)
            return [self._write(entry) for entry in operations]

    def flush(self) -> None:
        """Do nothing: there is no disk."""

    def _check(self, entry: Operation) -> None:
        there = self._items.get(entry.query, {})
        for step in steps(entry):
            if step.item not in there:
                raise StoreError(f"query {entry.query!r} has no item {step.item!r}")
        if isinstance(entry, RankingEntry) and entry.id in self._rankings:
            raise StoreError(f"there is a ranking {entry.id!r} already")

    def _write(self, entry: Operation) -> Written:
        written = Written("accepted")
        if isinstance(entry, RankingEntry):
            self._rankings[entry.id] = entry
        else:
            if entry.event_id in self._event_ids:
                return Written("duplicate", ID_SEEN)
            counted = self._events.setdefault((entry.ranking_id, entry.item), {})
            if entry.type in counted:
                return Written("duplicate", ALREADY_COUNTED)
            written = Written("accepted", shows=entry.shows and not any(counted.values()))
            counted[entry.type] = written.shows
            self._event_ids.add(entry.event_id)
            entry = as_written(entry, written)
        self._log.append(entry)
        for step in steps(entry):
            self._items[entry.query][step.item].now.add(step)
        self._last_time = max(self._last_time, time_of(entry))
        return written

    def ranking(self, ranking_id: str) -> RankingEntry | None:
        """Return a list that is still in the log."""
        with self._lock:
            return self._rankings.get(ranking_id)

    def log(self) -> Iterator[Operation]:
        """Yield the log in its order, as it is now."""
        with self._lock:
            entries = tuple(self._log)
        return iter(entries)

    def log_length(self) -> int:
        """Return how many entries the log holds."""
        with self._lock:
            return len(self._log)

    def roll_up(self, before: float, *, minutes_before: float | None = None) -> RolledUp:
        """Add the log's entries older than a time to the snapshot, and remove them."""
        with self._lock:
            old = list(itertools.takewhile(lambda entry: time_of(entry) < before, self._log))
            for entry in old:
                self._log.popleft()
                for step in steps(entry):
                    self._items[entry.query][step.item].rolled.add(step)
                self._forget(entry)
            oldest = before if minutes_before is None else minutes_before
            self._minutes = {start: v for start, v in self._minutes.items() if start >= oldest}
            rankings = sum(isinstance(entry, RankingEntry) for entry in old)
            return RolledUp(rankings, len(old) - rankings)

    def _forget(self, entry: Operation) -> None:
        if isinstance(entry, EventEntry):
            self._event_ids.remove(entry.event_id)
            counted = self._events[entry.ranking_id, entry.item]
            del counted[entry.type]
            if not counted:
                del self._events[entry.ranking_id, entry.item]
        else:
            del self._rankings[entry.id]

    def last_time(self) -> float:
        """Return the time of the latest entry, 0 if there is none: clocks may jump back."""
        with self._lock:
            return self._last_time

    # --- minutes, models, settings ---------------------------------------------------------------

    def add_minutes(self, minutes: Sequence[Minute], meta: Mapping[str, str] | None = None) -> None:
        """Add the sums of some minutes to those kept, and keep settings."""
        with self._lock:
            self._meta |= meta or {}
            for minute in minutes:
                kept = self._minutes.setdefault(minute.start, {})
                for name, value in minute.values.items():
                    kept[name] = kept.get(name, 0.0) + value

    def minutes(self, since: float) -> list[Minute]:
        """Return what is known of the minutes since a time, in order."""
        with self._lock:
            kept = sorted((start, v) for start, v in self._minutes.items() if start >= since)
            return [Minute(start, dict(values)) for start, values in kept]

    def models(self) -> list[ModelRecord]:
        """Return all versions, oldest first."""
        with self._lock:
            return [self._models[version][0] for version in sorted(self._models)]

    def add_model(self, record: ModelRecord, document: bytes, *, flush: bool = True) -> None:
        """Keep a version and its file; if it is `activated`, it is the active one from now on."""
        with self._lock:
            if record.version in self._models or record.version < 1:
                raise StoreError(f"there is a model {record.version} already")
            self._models[record.version] = (record, document)
            if record.activated:
                self._active = record.version

    def model(self, version: int) -> bytes | None:
        """Return the file of a version."""
        with self._lock:
            return self._models[version][1] if version in self._models else None

    def activate(
        self, version: int, *, meta: Mapping[str, str] | None = None, flush: bool = True
    ) -> None:
        """Make a version the active one; 0 goes back to before any training."""
        with self._lock:
            if version and version not in self._models:
                raise StoreError(f"there is no model {version}")
            self._active = version
            self._meta |= meta or {}
            if version:
                record, document = self._models[version]
                self._models[version] = (dataclasses.replace(record, activated=True), document)

    def active_model(self) -> int:
        """Return the active version, 0 before any training."""
        with self._lock:
            return self._active

    def meta(self, key: str) -> str | None:
        """Return a setting that belongs to the data, such as the feature schema."""
        return self.settings().get(key)

    def settings(self) -> dict[str, str]:
        """Return all such settings."""
        with self._lock:
            return dict(sorted(self._meta.items()))

    def set_meta(self, key: str, value: str) -> None:
        """Keep such a setting."""
        with self._lock:
            self._meta[key] = value

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""
