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

from benchmarks.figure import Figure, best_seconds, print_figures
from ebrank.service.core.background import Flusher
from ebrank.service.store import open
from ebrank.service.store.records import EventEntry, Hint, NewItem, RankingEntry
from tests.service.store.killing import kill_again_and_again

QUERIES, ITEMS, LENGTH, BATCH = 1000, 100, 10, 100


class Traffic:
    """Rankings of random items, and clicks on all of their items, in batches.

    Entries come with hints, as the engine gives them.
    """

    def __init__(self, seed: int = 1) -> None:
        self._chance = random.Random(seed)
        self._shown: set[tuple[int, int]] = set()
        self._micros = 1_700_000_000_000_000

    def rankings(self, count: int) -> list[RankingEntry]:
        """Return lists of ten."""
        return [self._ranking() for _ in range(count)]

    def _ranking(self) -> RankingEntry:
        self._micros += 1000
        query = self._chance.randrange(QUERIES)
        places = self._chance.sample(range(ITEMS), LENGTH)
        unseen = [(query, place) not in self._shown for place in places]
        self._shown.update((query, place) for place in places)
        return RankingEntry(
            f"{self._micros:x}-{self._chance.getrandbits(64):016x}",
            f"query {query}",
            self._micros / 1e6,
            1,
            tuple(f"item-{query}-{place}" for place in places),
            explored=(False,) * LENGTH,
            relevance=(0.123,) * LENGTH,
            hint=Hint(places, unseen),
        )

    def batches(self, rankings: Sequence[RankingEntry]) -> Iterator[list[EventEntry]]:
        """Yield clicks on all items of these lists, a hundred at a time."""
        per_batch = BATCH // LENGTH
        for begin in range(0, len(rankings), per_batch):
            some = rankings[begin : begin + per_batch]
            yield [self._click(one, rank) for one in some for rank in range(1, LENGTH + 1)]

    def _click(self, served: RankingEntry, rank: int) -> EventEntry:
        name = str(uuid.UUID(int=self._chance.getrandbits(128)))
        item, now = served.items[rank - 1], self._micros / 1e6
        assert served.hint is not None
        hint = Hint((served.hint.places[rank - 1],), (False,))
        click = name, served.id, served.query, item, "click"
        return EventEntry(*click, rank, 1, False, now, now, hint=hint)


async def make_store(folder: Path) -> None:
    """Make a store of 100,000 items with 20 features."""
    async with open(str(folder)) as store:
        for query in range(QUERIES):
            items = [NewItem(f"item-{query}-{place}", (1.0,) * 20) for place in range(ITEMS)]
            await store.items.put(f"query {query}", items, 1.0)


async def write_events(folder: Path, traffic: Traffic, events: int) -> None:
    """Log lists and clicks on all of their items."""
    async with open(str(folder)) as store:
        for _ in range(events // 10_000):
            rankings = traffic.rankings(1000)
            await store.log.write(rankings)
            for batch in traffic.batches(rankings):
                await store.log.write(batch)


async def opened(folder: Path) -> None:
    """Open a store and close it."""
    async with open(str(folder)):
        pass


async def events_per_second(folder: Path, traffic: Traffic, events: int, clients: int) -> float:
    """Return how many events are written and flushed, by clients who wait for each batch."""
    async with open(str(folder)) as store:
        rankings = traffic.rankings(events // LENGTH)
        await store.log.write(rankings)
        batches, flusher = iter(list(traffic.batches(rankings))), Flusher(store)

        async def client() -> None:
            for batch in batches:
                await store.log.write(batch)
                await flusher.flushed()

        begin = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(clients)))
        seconds = time.perf_counter() - begin
        await flusher.close()
    return events / seconds


async def ranking_microseconds(folder: Path, traffic: Traffic) -> tuple[float, float]:
    """Return the median and the 99th percentile of writing a list of ten, without a flush."""
    times = []
    async with open(str(folder)) as store:
        for entry in traffic.rankings(5000):
            begin = time.perf_counter()
            await store.log.write([entry])
            times.append(time.perf_counter() - begin)
    median, slow = np.percentile(times, [50, 99]) * 1e6
    return float(median), float(slow)


def figures(events: int = 100_000) -> Iterator[Figure]:
    """Yield the figures of a store with this many events."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk, not in memory
        path = Path(folder) / "store"
        asyncio.run(make_store(path))
        empty, traffic = _size(path), Traffic()
        asyncio.run(write_events(path, traffic, events))
        each = (_size(path) - empty) / events
        yield Figure(
            "bytes per event, a tenth of a ranking included", f"{each:.0f}", "≤ 400", each <= 400
        )
        seconds = best_seconds(lambda: asyncio.run(opened(path)))
        what = f"opening and closing a store of {events:,} events"
        yield Figure(what, f"{seconds * 1e3:.0f} ms", "≤ 500 ms", seconds <= 0.5)
        for clients in (1, 16):
            rate = max(
                asyncio.run(events_per_second(path, traffic, 20_000, clients)) for _ in range(3)
            )
            what = f"flushed events/s in batches of {BATCH}, {clients} waiting"
            yield Figure(what, f"{rate:,.0f}", "≥ 20,000", rate >= 20_000)
        median, slow = asyncio.run(ranking_microseconds(path, traffic))
        what = "writing a ranking of ten, no flush: median, 99th percentile"
        yield Figure(what, f"{median:.0f} µs, {slow:.0f} µs", "≤ 500 µs, 5 ms", slow <= 5000)
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
    print_figures(figures(int(sys.argv[1])))
