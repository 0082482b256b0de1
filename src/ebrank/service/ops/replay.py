"""Proof that nothing was lost and nothing counted twice: add the log up again, and compare.

Counters = snapshot + log, to the bit. So counters can be checked wherever both are: in a store in
use, or a backup from last year.

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

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from ebrank.service.store import counting
from ebrank.service.store.base import Damaged, Progress, Store
from ebrank.service.store.counting import Tally
from ebrank.service.store.records import EventEntry, Operation, QueryState
from ebrank.service.store.rows import count_rows, item_rows

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
        self._places = {name: place for place, name in enumerate(state.ids)}
        self._first_shown = [item.first_shown for item in item_rows(state)]
        self._tally = Tally((0, *row) for row in count_rows(state))

    def add(self, entry: Operation, report: ReplayReport) -> None:
        """Add an entry of the log."""
        names, lacking = counting.items_of(entry), len(self._places)
        places = [self._places.get(name, lacking) for name in names]
        if lacking in places:
            counted = {name for name, *_ in counting.steps(entry, names)}
            for name in counted - self._places.keys():
                report.note(entry.query, name, "item", None, 1.0)
        self._tally.add((0, places, entry))
        for place in counting.shown(entry, places):
            if place != lacking and self._first_shown[place] is None:
                self._first_shown[place] = counting.time_of(entry)

    def compare(self, report: ReplayReport, state: QueryState) -> None:
        """Note how the counters of the query differ from these."""
        report.queries += 1
        report.items += len(state.ids)
        stored = {row[:3]: row[3] for row in count_rows(state)}
        replayed = {
            (place, *key): count
            for number, place in [*self._tally.items]
            if place < len(state.ids)
            for key, count in self._tally.reached((number, place), state.query, state.epoch).items()
        }
        for key in sorted(stored.keys() | replayed.keys()):
            here, there = stored.get(key, 0), replayed.get(key, 0)
            if here != there:
                place, outcome, slot = key
                counter = f"count of outcome {outcome} in slot {slot}"
                report.note(state.query, state.ids[place], counter, here, there)
        for item, time in zip(item_rows(state), self._first_shown, strict=True):
            if item.first_shown != time:
                report.note(state.query, item.id, "first_shown", item.first_shown, time)


async def replay(store: Store, progress: Progress | None = None) -> ReplayReport:
    """Return how the counters compare with the snapshot and the log.

    It keeps the counters of all items in memory, about 200 bytes each, but not the log.
    """
    report = ReplayReport()
    rebuilt = {
        query: _Rebuilt(listed(query, await store.items.snapshot(query)))
        for query in await store.items.queries()
    }
    async for entry in watched(store, progress):
        if isinstance(entry, EventEntry):
            report.events += 1
        else:
            report.rankings += 1
        if entry.query in rebuilt:
            rebuilt[entry.query].add(entry, report)
        else:
            report.note(entry.query, "", "query", None, 1.0)
    for query, counts in rebuilt.items():
        counts.compare(report, listed(query, await store.items.load(query)))
    return report


async def watched(store: Store, progress: Progress | None) -> AsyncIterator[Operation]:
    """Yield the log, and say now and then how much of it was read."""
    total, done = await store.log.length(), 0
    async for entry in store.log.entries():
        if progress is not None and done % 1000 == 0:
            progress(done, total)
        done += 1
        yield entry


def listed(query: str, state: QueryState | None) -> QueryState:
    """Return the state of a listed query, which must exist."""
    if state is None:
        raise Damaged(
            f"query {query!r} is listed and cannot be found: the store is damaged. "
            "Run `ebrank check STORE` to see how far."
        )
    return state


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
