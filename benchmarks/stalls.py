"""What holds the server up: large calls, roll-ups, training, exports, backups, many queries.

Lists are asked for at a steady rate, first alone and then beside each of these. A process of its
own asks `/healthz` all the while, which does nothing: what it waits for is the event loop, and the
longest wait is told beside the figure of lists. On a shared machine both hold what other processes
do to them; each pair is the best of a few.

`python -m benchmarks.stalls [NAME...]` measures some; `--million` lets a million queries pass
through, and `--soak MINUTES` serves a long tail of queries for so long.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from benchmarks.figure import Figure
from benchmarks.http_load import Load, ask_all, open_loop, request
from benchmarks.service import (
    FEATURES,
    QUIET,
    fill,
    put,
    rank,
    write_log,
)
from tests.serving import Server, serving

SECONDS = 6.0
RATE = 300.0
TRIES = 3
LARGE = 10_000
BACKLOG = 110_000
MEMORY = "512 MB"
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


def beside(server: Server, work: Callable[[threading.Event], None], tries: int = TRIES) -> Beside:
    """Return the calmest of a few pairs: lists alone, and beside work that ends when told to."""
    return min((_pair(server, work) for _ in range(tries)), key=lambda pair: pair.worst)


def _pair(server: Server, work: Callable[[threading.Event], None]) -> Beside:
    with probing(server.port) as calm:
        alone = open_loop(server.port, rank, RATE, SECONDS)
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,))
    with probing(server.port) as waits:
        thread.start()
        load = open_loop(server.port, rank, RATE, SECONDS)
        stop.set()
        thread.join()
    return Beside(alone, load, calm.worst, waits.worst)


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


def asking(server: Server, messages: Sequence[bytes], connections: int = 1) -> Callable[..., None]:
    """Return work that sends requests again and again."""

    def work(stop: threading.Event) -> None:
        while not stop.is_set():
            ask_all(server.port, messages, connections)

    return work


def running(*arguments: str) -> Callable[[threading.Event], None]:
    """Return work that runs a command again and again; `{n}` in an argument is a new number."""

    def work(stop: threading.Event) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            filled = [argument.format(n=f"{time.time_ns()}") for argument in arguments]
            command = ["nice", sys.executable, "-m", "ebrank", *filled]
            subprocess.run(command, check=True, capture_output=True)

    return work


def large_calls(folder: Path) -> Iterator[Figure]:
    """Put and read ten thousand items."""
    with serving(folder / "store", config=QUIET) as server:
        put(server, candidates=100)
        bodies = [large_body(seed) for seed in range(2)]
        ask_all(server.port, bodies[:1])
        yield figure("PUT of 10,000 items", beside(server, asking(server, bodies)))
        read = request("GET", "/v1/queries/large")
        yield figure("GET of 10,000 items", beside(server, asking(server, [read])))
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
    longest = 0
    with serving(folder / "store", config=QUIET) as server:
        wal = server.folder / "log.db-wal"
        train = request("POST", "/v1/train")
        kinds = {
            "training on 100,000 items": asking(server, [train]),
            "export of 110,000 entries": running(
                "export", str(server.folder), str(folder / "export-{n}")
            ),
            "backup of the same": running(
                "backup", str(server.folder), str(folder / "copy-{n}.db")
            ),
        }
        for what, work in kinds.items():
            yield figure(what, beside(server, work, tries=2))
            longest = max(longest, wal.stat().st_size)
        yield Figure(
            "write-ahead log beside all of these, at the end",
            f"{longest / 1e6:.0f} MB",
            f"≤ {WAL_BYTES / 1e6:.0f} MB",
            longest <= WAL_BYTES,
        )


PARTS: dict[str, Callable[[Path], Iterator[Figure]]] = {
    "large": large_calls,
    "rollup": roll_up,
    "readers": readers,
}


def figures(names: Sequence[str] = ()) -> Iterator[Figure]:
    """Measure all, or some."""
    with tempfile.TemporaryDirectory(dir=Path.cwd().parent) as name:
        for part in names or PARTS:
            folder = Path(name) / part
            folder.mkdir()
            yield from PARTS[part](folder)


def main(arguments: list[str]) -> None:
    """Print the figures one by one."""
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"others keep each core busy {busy:.1f} times over", file=sys.stderr)
    for one in figures(arguments):
        met = "met" if one.met else "MISSED"
        print(f"{one.what}: {one.measured}; target {one.target}: {met}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
