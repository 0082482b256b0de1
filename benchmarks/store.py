"""The embedded store alone: how fast it writes, how large it gets, and what a killed writer loses.

`python -m benchmarks store` takes about a minute; `python -m benchmarks.store 10000000` fills a
store with that many events first, to show that neither opening nor writing depends on its length.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.figure import Figure, best_seconds
from ebrank.examination import Examination
from ebrank.service.core.committer import Committer
from ebrank.service.store.records import EventEntry, NewItem, RankingEntry
from ebrank.service.store.sqlite import SqliteStore
from tests.service.store.killing import kill_again_and_again

QUERIES, ITEMS, LENGTH, BATCH = 1000, 100, 10, 100
CURVE = tuple(Examination()(np.arange(1, LENGTH + 1)).tolist())


class Traffic:
    """Rankings of random items, and clicks on all of their items, in batches."""

    def __init__(self, seed: int = 1) -> None:
        self._chance = random.Random(seed)
        self._micros = 1_700_000_000_000_000

    def rankings(self, count: int) -> list[RankingEntry]:
        """Return lists of ten."""
        return [self._ranking() for _ in range(count)]

    def _ranking(self) -> RankingEntry:
        self._micros += 1000
        query = self._chance.randrange(QUERIES)
        places = self._chance.sample(range(ITEMS), LENGTH)
        return RankingEntry(
            f"{self._micros:x}-{self._chance.getrandbits(64):016x}",
            f"query {query}",
            self._micros / 1e6,
            1,
            tuple(f"item-{query}-{place}" for place in places),
            CURVE,
            explored=(False,) * LENGTH,
            relevance=(0.123,) * LENGTH,
        )

    def batches(self, rankings: Sequence[RankingEntry]) -> Iterator[list[EventEntry]]:
        """Yield clicks on all items of these lists, a hundred at a time."""
        per_batch = BATCH // LENGTH
        for begin in range(0, len(rankings), per_batch):
            some = rankings[begin : begin + per_batch]
            yield [self._click(one, rank) for one in some for rank in range(1, LENGTH + 1)]

    def _click(self, of: RankingEntry, rank: int) -> EventEntry:
        name = str(uuid.UUID(int=self._chance.getrandbits(128)))
        item, now = of.items[rank - 1], self._micros / 1e6
        p = CURVE[rank - 1]
        return EventEntry(name, of.id, of.query, item, "click", rank, p, False, now, now)


def new_store(folder: Path) -> SqliteStore:
    """Return a store of 100,000 items with 20 features."""
    store = SqliteStore(folder)
    for query in range(QUERIES):
        items = [NewItem(f"item-{query}-{place}", (1.0,) * 20) for place in range(ITEMS)]
        store.put_items(f"query {query}", items, 1.0, flush=False)
    return store


def events_per_second(store: SqliteStore, traffic: Traffic, events: int, clients: int) -> float:
    """Return how many events are written and flushed, by clients who wait for each batch."""
    rankings = traffic.rankings(events // LENGTH)
    store.write(rankings, flush=True)
    batches = list(traffic.batches(rankings))
    committer = Committer(store)

    async def client(left: Iterator[list[EventEntry]]) -> None:
        for batch in left:
            await asyncio.wrap_future(committer.submit(batch, flush=True).on_disk)

    async def all_clients() -> None:
        left = iter(batches)
        await asyncio.gather(*(client(left) for _ in range(clients)))

    begin = time.perf_counter()
    asyncio.run(all_clients())
    seconds = time.perf_counter() - begin
    committer.close()
    return events / seconds


def ranking_microseconds(store: SqliteStore, traffic: Traffic) -> tuple[float, float]:
    """Return the median and the 99th percentile of writing a list of ten, without a flush."""
    times = []
    for entry in traffic.rankings(5000):
        begin = time.perf_counter()
        store.write([entry], flush=False)
        times.append(time.perf_counter() - begin)
    median, slow = np.percentile(times, [50, 99]) * 1e6
    return float(median), float(slow)


def figures(events: int = 100_000) -> Iterator[Figure]:
    """Yield the figures of a store with this many events."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk, not in memory
        path = Path(folder) / "store"
        new_store(path).close()
        empty, traffic = _size(path), Traffic()
        store = SqliteStore(path)
        for _ in range(events // 10_000):
            rankings = traffic.rankings(1000)
            store.write(rankings, flush=False)
            for batch in traffic.batches(rankings):
                store.write(batch, flush=False)
        store.close()
        each = (_size(path) - empty) / events
        yield Figure(
            "bytes per event, a tenth of a ranking included", f"{each:.0f}", "≤ 400", each <= 400
        )
        seconds = best_seconds(lambda: SqliteStore(path).close())
        what = f"opening and closing a store of {events:,} events"
        yield Figure(what, f"{seconds * 1e3:.0f} ms", "≤ 500 ms", seconds <= 0.5)
        store = SqliteStore(path)
        for clients in (1, 16):
            rate = max(events_per_second(store, traffic, 20_000, clients) for _ in range(3))
            what = f"flushed events/s in batches of {BATCH}, {clients} waiting"
            yield Figure(what, f"{rate:,.0f}", "≥ 20,000", rate >= 20_000)
        median, slow = ranking_microseconds(store, traffic)
        what = "writing a ranking of ten, no flush: median, 99th percentile"
        yield Figure(what, f"{median:.0f} µs, {slow:.0f} µs", "≤ 500 µs, 5 ms", slow <= 5000)
        store.close()
    yield killed()


def killed(rounds: int = 50) -> Figure:
    """Return what fifty killed writers lost; the harness raises if it was anything."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        outcome = kill_again_and_again(Path(folder) / "store", rounds)
    measured = f"{outcome.acknowledged:,} acknowledged events, none lost, none counted twice"
    return Figure(
        f"a writer killed {rounds} times", measured, "none", outcome.acknowledged > rounds
    )


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


if __name__ == "__main__":
    for figure in figures(int(sys.argv[1])):
        print(f"| {figure.what} | {figure.measured} | {figure.target} | {figure.met} |", flush=True)
