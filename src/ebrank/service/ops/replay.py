"""Proof that nothing was lost and nothing counted twice: add the log up again, and compare.

Counters = snapshot + log, to the bit. So counters can be checked wherever both are: in a store in
use, a backup, or an export from last year.

>>> import asyncio
>>> from ebrank.service.store.memory import MemoryStore
>>> from ebrank.service.store.records import NewItem, RankingEntry
>>> async def session() -> None:
...     store = MemoryStore()
...     await store.items.put("shoes", [NewItem("a", (1.0,))], time=1.0)
...     await store.log.write([RankingEntry("r1", "shoes", 2.0, 0, ("a",))])
...     print(await replay(store))
>>> asyncio.run(session())
equal: 1 item of 1 query, 0 events and 1 ranking replayed
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ebrank.service.store import counting
from ebrank.service.store.base import Progress, StoreError, StoreView
from ebrank.service.store.counting import ItemTally, Tally
from ebrank.service.store.records import EventEntry, Operation, QueryState
from ebrank.service.store.rows import count_rows

MOST_DIFFERENCES = 10
"""How many differences are reported; all are counted."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A counter that is not what the log adds up to."""

    query: str
    item: str
    counter: str
    stored: float | None
    replayed: float | None

    def __str__(self) -> str:
        return (
            f"query {self.query!r}, item {self.item!r}: {self.counter} is {self.stored}, "
            f"the log gives {self.replayed}"
        )


@dataclass
class ReplayReport:
    """What a replay found; `differences` holds the first of `different`."""

    queries: int = 0
    items: int = 0
    rankings: int = 0
    events: int = 0
    different: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether all counters are what snapshot and log add up to."""
        return self.different == 0

    def note(self, query: str, item: str, counter: str, *values: float | None) -> None:
        """Count a difference between two values of a counter, and keep the first ones."""
        self.different += 1
        if len(self.differences) < MOST_DIFFERENCES:
            self.differences.append(Difference(query, item, counter, *values))

    def __str__(self) -> str:
        counts = (
            f"{_count(self.items, 'item')} of {_count(self.queries, 'query', 'queries')}, "
            f"{_count(self.events, 'event')} and {_count(self.rankings, 'ranking')} replayed"
        )
        if self.equal:
            return f"equal: {counts}"
        return f"not equal: {_count(self.different, 'wrong counter')}; {counts}"


class _Rebuilt:
    """The counts of a query as they grow, and the places of its items in them."""

    def __init__(self, state: QueryState) -> None:
        self.places = {name: place for place, name in enumerate(state.ids)}
        self.first_shown = state.first_shown
        self._tally = Tally(
            lambda _, item: ItemTally(epoch=state.epoch), lambda _, item: self.places.get(item, 0)
        )
        self._tally.items.update(_counted(state))

    def add(self, entry: Operation, report: ReplayReport) -> None:
        names = counting.items_of(entry)
        for name in {name for name, *_ in counting.steps(entry, names)} - self.places.keys():
            report.note(entry.query, name, "item", None, 1.0)
        self._tally.add(entry)
        for name in counting.shown(entry, names):
            place = self.places.get(name)
            if place is not None and math.isnan(self.first_shown[place]):
                self.first_shown[place] = counting.time_of(entry)

    def counts(self, epoch: int) -> dict[tuple[str, int, int], int]:
        """Return the counts as they are in an epoch, by item, outcome and slot."""
        return {
            (item, *key): count
            for (query, item), tally in self._tally.items.items()
            if item in self.places
            for key, count in tally.at(epoch, query, self.places[item]).counts.items()
        }


async def replay(store: StoreView, progress: Progress | None = None) -> ReplayReport:
    """Return how the counters compare with the snapshot and the log.

    It keeps the counters of all items in memory, about 200 bytes each, but not the log.
    """
    report = ReplayReport()
    rebuilt = {
        query: _Rebuilt(listed(query, await store.items.snapshot(query)))
        for query in await store.items.queries()
    }
    total, done = await store.log.length(), 0
    async for entry in store.log.entries():
        if progress is not None and done % 1000 == 0:
            progress(done, total)
        done += 1
        if isinstance(entry, EventEntry):
            report.events += 1
        else:
            report.rankings += 1
        if entry.query in rebuilt:
            rebuilt[entry.query].add(entry, report)
        else:
            report.note(entry.query, "", "query", None, 1.0)
    for query, counts in rebuilt.items():
        _compare(report, listed(query, await store.items.load(query)), counts)
    return report


def listed(query: str, state: QueryState | None) -> QueryState:
    """Return the state of a listed query, which must exist."""
    if state is None:
        raise StoreError(
            f"query {query!r} is listed and cannot be found: the store is damaged. "
            "Run `ebrank check STORE` to see how far."
        )
    return state


def _counted(state: QueryState) -> dict[tuple[str, str], ItemTally]:
    """Return the counts of each item that was shown."""
    tallies: dict[tuple[str, str], ItemTally] = {}
    for place, outcome, slot, count, epoch in count_rows(state):
        item = tallies.setdefault((state.query, state.ids[place]), ItemTally(epoch=epoch))
        item.counts[outcome, slot] = count
    return tallies


def _compare(report: ReplayReport, state: QueryState, rebuilt: _Rebuilt) -> None:
    report.queries += 1
    report.items += len(state.ids)
    stored = {
        (item, *key): count
        for (_, item), tally in _counted(state).items()
        for key, count in tally.counts.items()
    }
    replayed = rebuilt.counts(state.epoch)
    places = rebuilt.places
    for key in sorted(stored.keys() | replayed.keys(), key=lambda key: (places[key[0]], *key[1:])):
        here, there = stored.get(key, 0), replayed.get(key, 0)
        if here != there:
            counter = f"count of outcome {key[1]} in slot {key[2]}"
            report.note(state.query, key[0], counter, here, there)
    times = zip(state.ids, state.first_shown.tolist(), rebuilt.first_shown.tolist(), strict=True)
    for item, first, again in times:
        if first != again and not (math.isnan(first) and math.isnan(again)):
            times_shown = (None if math.isnan(time) else time for time in (first, again))
            report.note(state.query, item, "first_shown", *times_shown)


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
