"""What holds the server up: large calls, roll-ups, training, exports, backups, many queries.

Lists are asked for at a steady rate, first alone and then beside each of these. A process of its
own asks `/healthz` all the while, which does nothing: what it waits for is the event loop, and the
longest wait is told beside the figure of lists. On a shared machine both hold what other processes
do to them; each pair is the best of a few.

`python -m benchmarks.stalls NAME...` measures some: `large`, `rollup`, `readers`, `tail` and `soak`
are the usual ones; `million` lets a million queries pass through a server with little memory, and
`long-soak` serves a long tail of queries for 20 minutes.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from benchmarks.figure import Figure, folder_on_disk, print_figures, print_load
from benchmarks.http_load import Load, ask_all, closed_loop, open_loop, rank, request
from benchmarks.service import CONNECTIONS, FEATURES, QUIET, fill, put, resident_bytes, write_log
from ebrank.service.settings import LimitsSettings
from ebrank.service.store import open as open_store
from ebrank.service.store.records import NewItem
from tests.serving import Server, serving

SECONDS = 6.0
RATE = 300.0
TRIES = 3
LARGE = 10_000
BACKLOG = 110_000
WAL_BYTES = 256 * 10**6
PROBE_SECONDS = 0.002


# --- how long the loop is held ---------------------------------------------------------------


@dataclass
class Waits:
    """How long a request that does nothing took, in seconds, again and again."""

    seconds: Sequence[float] = field(default_factory=list)

    @property
    def worst(self) -> float:
        """The longest, in milliseconds."""
        return max(self.seconds, default=0.0) * 1e3


def _probe(port: int, results: Connection) -> None:
    message = request("GET", "/healthz")
    waits = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        results.send(None)
        while not results.poll():
            began = time.perf_counter()
            connection.sendall(message)
            connection.recv(65_536)
            waits.append(time.perf_counter() - began)
            time.sleep(PROBE_SECONDS)
    results.send(waits)


@contextmanager
def probing(port: int) -> Iterator[Waits]:
    """Ask for nothing from another process; the waits are there at the end."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_probe, args=(port, there))
    process.start()
    here.recv()
    waits = Waits()
    try:
        yield waits
    finally:
        here.send(None)
        waits.seconds = here.recv()
        process.join()


@dataclass(frozen=True)
class Beside:
    """Lists alone, lists beside something else, and the longest waits for the loop."""

    alone: Load
    beside: Load
    calm: float
    worst: float

    @property
    def ratio(self) -> float:
        """How much longer the slowest hundredth of lists took beside it."""
        return self.beside.percentile(0.99) / self.alone.percentile(0.99)


def beside(server: Server, work: Callable[[], object], tries: int = TRIES) -> Beside:
    """Return the calmest of a few pairs: lists alone, and beside work done again and again."""
    return min((_pair(server, work) for _ in range(tries)), key=lambda pair: pair.worst)


def _pair(server: Server, work: Callable[[], object]) -> Beside:
    with probing(server.port) as calm:
        alone = open_loop(server.port, rank, RATE, SECONDS)
    with probing(server.port) as waits, repeating(work):
        load = open_loop(server.port, rank, RATE, SECONDS)
    return Beside(alone, load, calm.worst, waits.worst)


@contextmanager
def repeating(work: Callable[[], object]) -> Iterator[None]:
    """Do something again and again in a process that yields to others, as if on another machine."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_repeat, args=(work, there))
    process.start()
    here.recv()
    try:
        yield
    finally:
        here.send(None)
        process.join()
    if process.exitcode:
        raise RuntimeError("what was to be done beside lists failed")


def _repeat(work: Callable[[], object], parent: Connection) -> None:
    os.nice(19)
    parent.send(None)
    while not parent.poll():
        work()


def figure(what: str, found: Beside, most_ms: float = 20.0) -> Figure:
    """Return the longest wait and the ratio of lists."""
    return Figure(
        f"{what}: worst delay of the loop; p99 of rank at 300/s against without",
        f"{found.worst:.0f} ms (without {found.calm:.0f} ms); {found.ratio:.2f}× "
        f"({found.alone.percentile(0.99):.1f} → {found.beside.percentile(0.99):.1f} ms)",
        f"≤ {most_ms:g} ms; ≤ 1.5×",
        found.worst <= most_ms and found.ratio <= 1.5,
    )


# --- what may hold it ------------------------------------------------------------------------


def large_body(seed: int = 1) -> bytes:
    """Return the request that puts ten thousand items."""
    rows = np.random.default_rng(seed).random((LARGE, FEATURES)).round(4).tolist()
    items = [{"id": f"item-{place:06d}", "features": row} for place, row in enumerate(rows)]
    return request("PUT", "/v1/queries/large/items", {"items": items})


def train(port: int) -> None:
    """Train once, and wait for the end."""
    ask_all(port, [request("POST", "/v1/train")])
    while json.loads(ask_all(port, [request("GET", "/v1/models")])[0])["training"]["running"]:
        time.sleep(0.1)


def run(*arguments: str) -> None:
    """Run a command; `{n}` in an argument is a new number."""
    filled = [argument.format(n=time.time_ns()) for argument in arguments]
    subprocess.run([sys.executable, "-m", "ebrank", *filled], check=True, capture_output=True)


def large_calls(folder: Path) -> Iterator[Figure]:
    """Put and read ten thousand items."""
    with serving(folder / "store", config=QUIET) as server:
        put(server, candidates=100)
        bodies = [large_body(seed) for seed in range(2)]
        ask_all(server.port, bodies[:1])
        ask = partial(ask_all, server.port, connections=1)
        yield figure("PUT of 10,000 items", beside(server, partial(ask, bodies)))
        read = request("GET", "/v1/queries/large")
        yield figure("GET of 10,000 items", beside(server, partial(ask, [read])))
        with probing(server.port) as waits:
            ask_all(server.port, [read] * 100, connections=100)
        yield Figure(
            "100 GETs of 10,000 items at once: worst delay of `/healthz`",
            f"{waits.worst:.0f} ms",
            "≤ 50 ms",
            waits.worst <= 50,
        )


def roll_up(folder: Path) -> Iterator[Figure]:
    """Roll up a backlog while lists are served."""
    found = []
    for number in range(TRIES):
        store = folder / str(number)
        fill(store, 50)
        write_log(store, BACKLOG)  # of a quarter of an hour ago
        config = QUIET + "[store]\nretention_seconds = 600\nroll_up_seconds = 3\n"
        quiet = QUIET + "[store]\nretention_seconds = 6000\n"
        with serving(store, config=quiet) as server, probing(server.port) as calm:
            alone = open_loop(server.port, rank, RATE, SECONDS)
        with serving(store, config=config) as server:
            before = entries(store)
            time.sleep(2.5)
            with probing(server.port) as waits:
                load = open_loop(server.port, rank, RATE, 2 * SECONDS)
            moved = before - entries(store)
        found.append((Beside(alone, load, calm.worst, waits.worst), moved))
    best, moved = min(found, key=lambda pair: pair[0].worst)
    told = figure(f"roll-up of {BACKLOG * 11 // 10:,} entries", best)
    rate = f"; {moved / (2 * SECONDS):,.0f} entries/s"
    yield Figure(told.what, told.measured + rate, told.target, told.met)


def entries(store: Path) -> int:
    """Return how many entries the log of a store holds."""
    import sqlite3

    connection = sqlite3.connect(f"file:{store / 'log.db'}?mode=ro", uri=True)
    try:
        [(count,)] = connection.execute(
            "SELECT (SELECT count(*) FROM rankings) + (SELECT count(*) FROM events)"
        )
        return int(count)
    finally:
        connection.close()


def readers(folder: Path) -> Iterator[Figure]:
    """Train, export and back up while lists are served; watch the write-ahead log."""
    fill(folder / "store", 1000)
    write_log(folder / "store", 100_000)
    with serving(folder / "store", config=QUIET) as server:
        copies = str(server.folder), str(folder / "copy-{n}")
        kinds = {
            "training on 100,000 items": partial(train, server.port),
            "export of 110,000 entries": partial(run, "export", *copies),
            "backup of the same": partial(run, "backup", *copies),
        }
        with watching(lambda: size(server.folder / "log.db-wal")) as sizes:
            for what, work in kinds.items():
                yield figure(what, beside(server, work))
    longest = max(sizes)
    yield Figure(
        "write-ahead log beside all of these, at its longest",
        f"{longest / 1e6:.0f} MB",
        f"≤ {WAL_BYTES / 1e6:.0f} MB",
        longest <= WAL_BYTES,
    )


@contextmanager
def watching(measure: Callable[[], int]) -> Iterator[list[int]]:
    """Measure something ten times a second."""
    found, stop = [measure()], threading.Event()

    def watch() -> None:
        while not stop.wait(0.1):
            found.append(measure())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()


def size(file: Path) -> int:
    """Return the bytes of a file, none if it is not there."""
    return file.stat().st_size if file.exists() else 0


# --- a long tail of queries ------------------------------------------------------------------


def fill_tail(store: Path, queries: int) -> None:
    """Store queries of one item each."""
    rows = [tuple(row) for row in np.random.default_rng(1).random((1000, FEATURES)).tolist()]

    async def session() -> None:
        async with open_store(str(store)) as opened:
            for number in range(queries):
                item = NewItem(f"item-{number:07d}", rows[number % len(rows)])
                await opened.items.put(f"query-{number}", [item], time.time())

    asyncio.run(session())


def many_queries(folder: Path, queries: int = 50_000, memory: str = "256 MB") -> Iterator[Figure]:
    """Ask for each of many queries of one item, and for some again, with little memory."""
    limit = LimitsSettings(memory=memory).memory_bytes()
    fill_tail(folder / "store", queries)
    config = QUIET + f'[limits]\nmemory = "{memory}"\n'
    with serving(folder / "store", config=config) as server:
        base = resident_bytes(server)
        with watching(lambda: resident_bytes(server)) as sizes:
            messages = (rank(number, queries) for number in range(queries))
            passed = closed_loop(server.port, messages, CONNECTIONS, 3600.0)
        yield Figure(
            f"memory after {len(passed.latencies):,} queries of one item, limit {memory}",
            f"{max(sizes) / 1e6:.0f} MB at most, {base / 1e6:.0f} MB at the start; "
            f"{passed.rate:,.0f} lists/s",
            "within 20 % of the limit, or less",
            max(sizes) <= 1.2 * limit,
        )
        tries = []
        for _ in range(TRIES):
            with probing(server.port) as waits:
                load = open_loop(server.port, lambda n: rank(n * 37, queries), RATE, SECONDS)
            tries.append((waits, load))
        waits, load = min(tries, key=lambda pair: pair[0].worst)
        yield Figure(
            "the same, queries long unused at 300/s: worst delay of the loop",
            f"{waits.worst:.0f} ms; p99 of rank {load.percentile(0.99):.1f} ms",
            "≤ 50 ms",
            waits.worst <= 50,
        )


def soak(folder: Path, minutes: float = 1.0) -> Iterator[Figure]:
    """Serve a long tail of queries, with feedback and roll-ups, and see what grows."""
    queries, users = 100_000, np.random.default_rng(1)
    fill_tail(folder / "store", queries)
    config = (
        QUIET
        + '[limits]\nmemory = "256 MB"\n'
        + "[store]\nretention_seconds = 20\nroll_up_seconds = 5\n"
    )
    asked = users.zipf(1.2, size=int(RATE * minutes * 60) + 1) % queries
    samples: list[tuple[int, int, int]] = []
    with serving(folder / "store", config=config) as server:
        store = server.folder

        def measure() -> int:
            files = size(store / "log.db"), size(store / "log.db-wal")
            samples.append((resident_bytes(server), *files))
            return 0

        with probing(server.port) as waits, watching(measure):
            load = open_loop(
                server.port, lambda n: rank(int(asked[n]), queries), RATE, minutes * 60
            )
    half = len(samples) // 2
    grown = [
        max(one[kind] for one in samples[half:])
        / max(one[kind] for one in samples[half // 2 : half])
        for kind in range(2)
    ]
    wal = max(one[2] for one in samples)
    yield Figure(
        f"{minutes:g} minutes of a long tail at 300/s: memory and database, second half over the "
        "quarter before; write-ahead log; worst delay of the loop",
        f"{grown[0]:.2f} ({samples[-1][0] / 1e6:.0f} MB), {grown[1]:.2f} "
        f"({samples[-1][1] / 1e6:.0f} MB); {wal / 1e6:.0f} MB; {waits.worst:.0f} ms "
        f"(p99 of rank {load.percentile(0.99):.1f} ms)",
        "≤ 1.1, ≤ 1.1; ≤ 256 MB; ≤ 50 ms",
        max(grown) <= 1.1 and wal <= WAL_BYTES and waits.worst <= 50,
    )


PARTS: dict[str, Callable[[Path], Iterator[Figure]]] = {
    "large": large_calls,
    "rollup": roll_up,
    "readers": readers,
    "tail": many_queries,
    "soak": soak,
    "million": lambda folder: many_queries(folder, 1_000_000, "512 MB"),
    "long-soak": lambda folder: soak(folder, 20.0),
}
USUAL = ("large", "rollup", "readers", "tail", "soak")


def figures(names: Sequence[str] = USUAL) -> Iterator[Figure]:
    """Measure the usual ones, or those named."""
    with folder_on_disk() as scratch:
        for part in names:
            folder = scratch / part
            folder.mkdir()
            yield from PARTS[part](folder)


if __name__ == "__main__":
    print_load()
    print_figures(figures(sys.argv[1:] or USUAL))
