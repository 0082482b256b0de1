"""Servers on one PostgreSQL, against one on SQLite in the same run; the database shares the cores.

`python -m benchmarks.fleet` takes some three minutes. One process asks all servers. With more of
them than cores, a sum that does not fall is all that can be asked for. All fleets are measured in
turn, several times, and the best of each counts: noise on a shared machine only ever adds time.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

from benchmarks.figure import Figure, folder_on_disk, print_figures, processor_seconds
from benchmarks.http_load import (
    BATCH,
    QUERIES,
    Load,
    ask_all,
    click_batches,
    closed_loop,
    open_loop,
    rank,
)
from benchmarks.service import QUIET, put
from tests.postgres import Postgres, postgres
from tests.service import fleet
from tests.serving import Server, serving

SECONDS = 3.0
ROUNDS = 3
CONNECTIONS = 6
LISTS = 1_200
RATE = 150
KILLS = 50


class Speed(NamedTuple):
    """What servers do: latencies in milliseconds, and rates per second.

    `work` is the processor time of a list, of servers and database, in milliseconds. On a machine
    that has other work it says more than rates.
    """

    p50: float
    p99: float
    lists: float
    events: float
    work: float

    def best(self, other: Speed) -> Speed:
        """Return the best of two rounds."""
        return Speed(
            min(self.p50, other.p50),
            min(self.p99, other.p99),
            max(self.lists, other.lists),
            max(self.events, other.events),
            min(self.work, other.work),
        )


class Routed(NamedTuple):
    """How many lists per second servers made, and which share without news of another server."""

    lists: float
    stale: float


def figures() -> Iterator[Figure]:
    with folder_on_disk() as folder, postgres() as database, ExitStack() as stack:
        fleets = [
            [
                stack.enter_context(serving(folder / f"{size}-{number}", *where, config=QUIET))
                for number in range(max(size, 1))
            ]
            for size, where in ((0, ()), *((n, in_database(database, n)) for n in (1, 2, 3)))
        ]
        for servers in fleets:
            put(servers[0], candidates=100)
        sqlite, alone, two, three = measured(fleets, database)
        yield from one_server(alone, sqlite)
        yield in_sum(2, two, alone, sqlite)
        yield in_sum(3, three, alone, sqlite)
        yield from routing(fleets[3], alone)
    yield kills()


def in_database(database: Postgres, size: int) -> tuple[str, str]:
    """Return the options of servers that share a store."""
    return "--store", database.url(f"fleet{size}")


def measured(fleets: Sequence[Sequence[Server]], database: Postgres) -> list[Speed]:
    """Return what each of some fleets does at best."""
    speeds = [speed(servers, database) for servers in fleets]
    for _ in range(ROUNDS - 1):
        again = [speed(servers, database) for servers in fleets]
        speeds = [before.best(now) for before, now in zip(speeds, again, strict=True)]
    return speeds


def speed(servers: Sequence[Server], database: Postgres) -> Speed:
    """Measure servers, each of which is asked for any query."""
    for server in servers:  # each reads its queries once
        ask_all(server.port, [rank(number) for number in range(QUERIES)])
    loads = at_once(
        servers, lambda port, _: open_loop(port, anything, RATE / len(servers), SECONDS)
    )
    together = Load([one for load in loads for one in load.latencies], SECONDS)
    p50, p99 = together.percentile(0.5), together.percentile(0.99)
    processes = [*(server.process.pid for server in servers), *database.processes()]
    before, (made, _) = processor_seconds(*processes), counted(servers)
    rate = list_rate(servers, lambda _: anything())
    work = (processor_seconds(*processes) - before) / (counted(servers)[0] - made)
    return Speed(p50, p99, rate, event_rate(servers), work * 1e3)


def anything(number: int = 0) -> bytes:
    """Return the request for a list of some query."""
    return rank(random.randrange(QUERIES))


def at_once(servers: Sequence[Server], load: Callable[[int, int], Load]) -> list[Load]:
    """Put a load on all servers at once, given the port and the number of each."""
    ports = [server.port for server in servers]
    with ThreadPoolExecutor(len(servers)) as threads:
        return list(threads.map(load, ports, range(len(servers))))


def list_rate(servers: Sequence[Server], message: Callable[[int], bytes]) -> float:
    """Return how many lists per second servers make in sum, given what each is asked for."""
    each = max(CONNECTIONS // len(servers), 1)

    def load(port: int, number: int) -> Load:
        messages = (message(number) for _ in itertools.count())
        return closed_loop(port, messages, each, SECONDS)

    return sum(one.rate for one in at_once(servers, load))


def event_rate(servers: Sequence[Server]) -> float:
    """Return how many clicks per second are on disk, in batches, each of another list."""
    messages = [click_batches(server.port, LISTS // len(servers)) for server in servers]
    each = max(CONNECTIONS // len(servers), 1)
    began = time.perf_counter()
    with ThreadPoolExecutor(len(servers)) as threads:
        ports = [server.port for server in servers]
        answers = list(threads.map(ask_all, ports, messages, itertools.repeat(each)))
    seconds = time.perf_counter() - began
    accepted = sum(int(json.loads(one)["accepted"]) for some in answers for one in some)
    assert accepted == BATCH * sum(map(len, messages))
    return accepted / seconds


def one_server(alone: Speed, sqlite: Speed) -> Iterator[Figure]:
    """Yield what a database costs one server."""
    what = "1 server on PostgreSQL"
    yield Figure(
        f"{what}: rank, {RATE}/s, p50 and p99",
        f"{alone.p50:.2f} ms and {alone.p99:.2f} ms, {alone.p50 / sqlite.p50:.2f}× and "
        f"{alone.p99 / sqlite.p99:.2f}× SQLite's",
        "p99 ≤ 3×",
        alone.p99 <= 3.0 * sqlite.p99,
    )
    lists, events = alone.lists / sqlite.lists, alone.events / sqlite.events
    yield Figure(
        f"{what}: lists",
        f"{alone.lists:,.0f}/s, {lists:.2f}× SQLite's; {alone.work:.2f} ms of processor time each, "
        f"{alone.work / sqlite.work:.2f}× SQLite's",
        "≥ 0.6×",
        lists >= 0.6,
    )
    yield Figure(
        f"{what}: feedback, batches of {BATCH}",
        f"{alone.events:,.0f} events/s, {events:.2f}× SQLite's",
        "≥ 0.5×",
        events >= 0.5,
    )


def in_sum(size: int, ours: Speed, alone: Speed, sqlite: Speed) -> Figure:
    """Return what some servers do together, each asked for any query."""
    more = ours.lists / alone.lists
    wanted = size == 3
    return Figure(
        f"{size} servers on PostgreSQL, in sum, any query to any server: lists",
        f"{more:.2f}× one server's, {ours.lists / sqlite.lists:.2f}× SQLite's; feedback "
        f"{ours.events / alone.events:.2f}× and {ours.events / sqlite.events:.2f}×; processor time "
        f"of a list {ours.work / alone.work:.2f}× one server's; p50 and p99 at "
        f"{RATE}/s {ours.p50:.2f} ms and {ours.p99:.2f} ms, {ours.p99 / sqlite.p99:.2f}× SQLite's",
        "lists ≥ 1.0×, p99 ≤ 3×" if wanted else "–",
        not wanted or (more >= 1.0 and ours.p99 <= 3.0 * sqlite.p99),
    )


def routing(servers: Sequence[Server], alone: Speed) -> Iterator[Figure]:
    """Yield what it brings to send the same query to the same server, and what one query does."""
    size = len(servers)
    spread = routed(servers, lambda _: anything())
    kept = routed(servers, lambda number: rank(random.randrange(number, QUERIES, size)))
    hot = routed(servers, lambda _: rank(0))
    yield Figure(
        f"{size} servers, {QUERIES} queries: lists made before news of another server came",
        f"{spread.stale:.0%} at random, {kept.stale:.1%} routed by query, {hot.stale:.0%} if all "
        "ask for one query",
        "–",
        True,
    )
    yield Figure(
        f"{size} servers, lists in sum: routed by query, and of one query alone",
        f"{kept.lists / alone.lists:.2f}× and {hot.lists / alone.lists:.2f}× one server's",
        "–",
        True,
    )


def routed(servers: Sequence[Server], message: Callable[[int], bytes]) -> Routed:
    """Ask servers for lists, and them what they had not heard of."""
    for server in servers:
        ask_all(server.port, [rank(number) for number in range(QUERIES)])
    before = counted(servers)
    rate = list_rate(servers, message)
    lists, stale = (now - then for now, then in zip(counted(servers), before, strict=True))
    return Routed(rate, stale / lists)


def counted(servers: Sequence[Server]) -> tuple[float, float]:
    """Return how many lists servers made, and how often a write told them that they were behind."""
    lists = stale = 0.0
    for server in servers:
        with urllib.request.urlopen(f"{server.address}/metrics") as page:
            values = dict(line.rsplit(" ", 1) for line in page.read().decode().splitlines())
        lists += float(values["ebrank_rankings_total"])
        stale += float(values["ebrank_stale_total"])
    return lists, stale


def kills() -> Figure:
    """Kill servers and the database."""
    with folder_on_disk() as folder, postgres() as database:
        servers = fleet.fleet(folder, database.url(), 3)
        try:
            fleet.put_items(servers[0])
            outcome = asyncio.run(fleet.survive(database, servers, KILLS))
        finally:
            for server in servers:
                server.stop()
        asyncio.run(fleet.check(database.url(), outcome))
    return Figure(
        f"3 servers: {outcome.kills[0]} kills of servers, {outcome.kills[1]} immediate stops of "
        "the database",
        f"{len(outcome.acknowledged):,} acknowledged clicks, none lost, none counted twice",
        "none",
        True,
    )


if __name__ == "__main__":
    print_figures(figures())
