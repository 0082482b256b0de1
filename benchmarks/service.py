"""The service under load: a real `ebrank serve`, asked from this process over loopback.

Latencies are also told as ratios to `/healthz`, an endpoint of the same server that does nothing.
`python -m benchmarks.service --long` restarts with 10 M events and stores 1 M items; without, both
are smaller.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.figure import (
    Figure,
    folder_on_disk,
    print_figures,
    print_load,
    processor_seconds,
)
from benchmarks.http_load import (
    BATCH,
    QUERIES,
    K,
    Load,
    ask_all,
    click_batches,
    closed_loop,
    open_loop,
    rank,
    request,
)
from ebrank.service.serving.lists import RankingIds
from ebrank.service.store import open
from ebrank.service.store.records import EventEntry, NewItem, RankingEntry
from tests.serving import Server, serving

SECONDS = 6.0
CONNECTIONS = 8
FEATURES = 20
SHARED = [f"shared {number}" for number in range(FEATURES)]
QUIET = "[training]\nafter_events = 0\nevery_seconds = 0\n"
PAPERS = '[ranking]\npolicy = "ebrank:estimator=exposure"\n'
DISK = QUIET + '[store]\ndurability = "disk"\n'


def figures(long: bool = False) -> Iterator[Figure]:
    with folder_on_disk() as folder:
        with serving(folder / "process", config=QUIET) as server:
            put(server, candidates=100)
            nothing = nothing_at(server, rate=300)
            yield from rank_latency(server, nothing)
            rate = rank_rate(server)
            yield rate.figure
            yield feedback_rate(server)
            yield catalog_rate(server)
        with serving(folder / "papers", config=QUIET + PAPERS) as server:
            put(server, candidates=100)
            yield against(rate, rank_rate(server))
        with serving(folder / "large", config=QUIET) as server:
            put(server, candidates=1_000)
            yield large_lists(server)
        with serving(folder / "disk", config=DISK) as server:
            put(server, candidates=100)
            yield on_disk(server)
        yield memory(folder / "memory", items=1_000_000 if long else 100_000)
        yield restart(folder / "restart", events=10_000_000 if long else 500_000)


def put(server: Server, candidates: int, queries: int = QUERIES) -> None:
    """Store candidates with random features, and rank each query once."""
    rng = np.random.default_rng(1)
    messages = []
    for query in range(queries):
        rows = rng.random((candidates, FEATURES)).round(4).tolist()
        items = [{"id": f"item-{place:06d}", "features": row} for place, row in enumerate(rows)]
        messages.append(request("PUT", f"/v1/queries/query-{query}/items", {"items": items}))
    ask_all(server.port, messages)
    ask_all(server.port, [rank(number) for number in range(queries)])


def nothing_at(server: Server, rate: float) -> Load:
    """Return the load of an endpoint that does nothing."""
    return open_loop(server.port, lambda _: request("GET", "/healthz"), rate, SECONDS / 2)


def rank_latency(server: Server, nothing: Load) -> Iterator[Figure]:
    """Rank 100 candidates 300 times a second."""
    load = open_loop(server.port, rank, 300, SECONDS)
    for share, target in ((0.5, 3.0), (0.99, 10.0)):
        took, base = load.percentile(share), nothing.percentile(share)
        yield Figure(
            f"rank, 100 candidates, k = 10, 300/s: p{share * 100:g}",
            f"{took:.2f} ms, {took / base:.1f}× a request that does nothing ({base:.2f} ms)",
            f"≤ {target:g} ms",
            took <= target,
        )


class Rate(NamedTuple):
    """A rate of lists, and the processor time of each."""

    figure: Figure
    seconds: float


def against(ours: Rate, papers: Rate) -> Figure:
    """Return what a list costs by default, against the paper's ranker."""
    ratio = ours.seconds / papers.seconds
    return Figure(
        "rank, 100 candidates: processor time of `auto` against EBRank's, `exposure`",
        f"{ratio:.2f}×",
        "≤ 1.3×",
        ratio <= 1.3,
    )


def rank_rate(server: Server) -> Rate:
    """Rank as often as possible."""
    before = processor_seconds(server.process.pid)
    load = closed_loop(server.port, map(rank, itertools.count()), CONNECTIONS, SECONDS)
    each = (processor_seconds(server.process.pid) - before) / len(load.latencies)
    free = itertools.repeat(request("GET", "/healthz"))
    base = closed_loop(server.port, free, CONNECTIONS, SECONDS / 2)
    figure = Figure(
        f"rank, 100 candidates, {CONNECTIONS} connections",
        f"{load.rate:,.0f}/s, {load.rate / base.rate:.0%} of requests that do nothing; "
        f"{each * 1e3:.2f} ms of processor time each",
        "≥ 800/s",
        load.rate >= 800,
    )
    return Rate(figure, each)


def feedback_rate(server: Server) -> Figure:
    """Send clicks in batches, each event new and of another list."""
    messages = click_batches(server.port, 6_000)
    began = time.perf_counter()
    answers = ask_all(server.port, messages, CONNECTIONS)
    rate = len(messages) * BATCH / (time.perf_counter() - began)
    accepted = sum(json.loads(answer)["accepted"] for answer in answers)
    return Figure(
        f"feedback, batches of {BATCH}, {CONNECTIONS} connections, all on disk",
        f"{rate:,.0f} events/s, {accepted:,} of {len(messages) * BATCH:,} accepted",
        "≥ 20,000/s",
        rate >= 20_000 and accepted == len(messages) * BATCH,
    )


def catalog_rate(server: Server) -> Figure:
    """Fill the catalog in one stream of lines, then send it all again with a tenth changed."""
    count = 100_000
    rng = np.random.default_rng(2)
    rows = rng.random((count, FEATURES)).round(4)
    rates = []
    for _ in range(2):
        items = (
            {"id": f"item-{place:06d}", "features": dict(zip(SHARED, row, strict=True))}
            for place, row in enumerate(rows.tolist())
        )
        body = "\n".join(map(json.dumps, items)).encode()
        head = f"POST /v1/items:bulk HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}"
        began = time.perf_counter()
        [answer] = ask_all(server.port, [head.encode() + b"\r\n\r\n" + body])
        rates.append(count / (time.perf_counter() - began))
        changed = json.loads(answer)["changed"]
        rows[::10] += 1.0
    return Figure(
        f"{count:,} items of the catalog, {FEATURES} features, one stream of lines, on disk",
        f"{rates[0]:,.0f} items/s; {rates[1]:,.0f}/s again, {changed:,} changed",
        "≥ 20,000/s",
        min(rates) >= 20_000,
    )


def large_lists(server: Server) -> Figure:
    """Rank 1,000 candidates 100 times a second."""
    load = open_loop(server.port, rank, 100, SECONDS)
    return Figure(
        "rank, 1,000 candidates, 100/s: p99",
        f"{load.percentile(0.99):.2f} ms (p50 {load.percentile(0.5):.2f} ms)",
        "≤ 15 ms",
        load.percentile(0.99) <= 15,
    )


def on_disk(server: Server) -> Figure:
    """Rank with a flush before each answer leaves."""
    flush = flush_seconds(server.folder) * 1e3
    load = open_loop(server.port, rank, 100, SECONDS)
    took = load.percentile(0.5)
    return Figure(
        'rank, 100 candidates, durability = "disk", 100/s: p50',
        f"{took:.2f} ms, {took / flush:.1f} flushes of {flush:.2f} ms on the idle disk; "
        f"the server's own took {own_flush_seconds(server) * 1e3:.2f} ms",
        "≤ 2 flushes",
        took <= 2 * flush,
    )


def flush_seconds(folder: Path) -> float:
    """Return the median time to append a page to a file and flush it, on the store's disk."""
    path, times = folder / "flush.tmp", []
    with path.open("wb", buffering=0) as file:
        for _ in range(100):
            start = time.perf_counter()
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - start)
    path.unlink()
    return sorted(times)[len(times) // 2]


def own_flush_seconds(server: Server) -> float:
    """Return the mean time of the flushes that the server has done, as it tells itself."""
    page = ask_all(server.port, [request("GET", "/metrics")])[0].decode()
    told = dict(line.rsplit(" ", 1) for line in page.splitlines() if line[0] != "#")
    return float(told["ebrank_flush_seconds_sum"]) / float(told["ebrank_flush_seconds_count"])


def memory(folder: Path, items: int) -> Figure:
    """Hold many items in memory; features are 4 bytes each."""
    queries = items // 100
    fill(folder, queries)
    with serving(folder, config=QUIET) as server:
        before = resident_bytes(server)
        ask_all(server.port, [rank(number, queries) for number in range(queries)])
        each = (resident_bytes(server) - before) / items
    beyond = each - 4 * FEATURES
    return Figure(
        f"memory of {items:,} items of {queries:,} queries, each beyond its features",
        f"{beyond:.0f} bytes",
        "≤ 200 bytes",
        beyond <= 200,
    )


def fill(folder: Path, queries: int) -> None:
    """Store a hundred items for each query."""
    rng = np.random.default_rng(1)

    async def session() -> None:
        async with open(str(folder)) as store:
            for query in range(queries):
                rows = rng.random((100, FEATURES)).tolist()
                items = [NewItem(f"item-{place:06d}", tuple(row)) for place, row in enumerate(rows)]
                await store.items.put(f"query-{query}", items, time.time())

    asyncio.run(session())


def resident_bytes(server: Server) -> int:
    """Return the memory that the server's process uses."""
    pages = Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def restart(folder: Path, events: int) -> Figure:
    """Start on a store with a long log, until the first list is served."""
    fill(folder, QUERIES)
    write_log(folder, events)
    began = time.perf_counter()
    with serving(folder, config=QUIET) as server:
        ask_all(server.port, [rank(0)])
        seconds = time.perf_counter() - began
    size = (folder / "log.db").stat().st_size
    return Figure(
        f"restart with {events:,} logged events, until a list is served",
        f"{seconds:.2f} s ({size / 1e9:.2f} GB on disk)",
        "≤ 5 s",
        seconds <= 5,
    )


def write_log(folder: Path, events: int) -> None:
    """Log lists whose items were all clicked."""
    asyncio.run(_write_log(folder, events))


async def _write_log(folder: Path, events: int) -> None:
    items = tuple(f"item-{place:06d}" for place in range(K))
    begin = time.time() - 1000.0
    ids, lists = RankingIds(), events // K
    async with open(str(folder)) as store:
        for first in range(0, lists, 500):
            operations: list[RankingEntry | EventEntry] = []
            for number in range(first, min(first + 500, lists)):
                now, query = begin + number * 1e-4, f"query-{number % QUERIES}"
                name = ids.new(now)
                operations.append(RankingEntry(name, query, now, 0, items))
                for r, item in enumerate(items, start=1):
                    click = f"{name}-{r}", name, query, item, "click"
                    operations.append(EventEntry(*click, r, 1, False, now, now))
            await store.log.write(operations)


if __name__ == "__main__":
    print_load()
    print_figures(figures("--long" in sys.argv))
