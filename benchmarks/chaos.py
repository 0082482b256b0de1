"""What must survive: a server that is killed again and again under load, and a long day.

`python -m benchmarks.chaos` ends a real server with SIGKILL at random moments while users rank and
click, old entries are rolled up and priors are trained; `--kills 200` does it for longer. Every
click is then sent again: one that was acknowledged must be a duplicate, and in the end each counts
exactly once, in the counters and in the replayed log.
`python -m benchmarks.chaos --soak` serves for ten minutes with a short memory: neither the process
nor its files may grow.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ebrank
from benchmarks.figure import Figure, folder_on_disk, print_figures
from benchmarks.http_load import click, open_loop, rank, request
from benchmarks.service import QUIET, put, resident_bytes
from ebrank.client import Retries, ServiceError
from ebrank.client.calls import event
from ebrank.service.api import EventIn
from ebrank.service.store.sqlite.database import LIMIT_PAGES
from tests.serving import Server, serving

KILLS = 50
BUSY = """
[store]
retention_seconds = 60
roll_up_seconds = 0.2
[training]
after_events = 20
after_growth = 0
min_rows = 1
every_seconds = 0
[models]
keep = 5
"""
"""Settings under which roll-ups, training and pruning go on all the time."""
LONG_LIFE, LONG_SECONDS = 10, 6.0
"""Every tenth life lasts longer, so that some runs of the trainer come to their end."""
WORKERS = 4
QUERIES = [f"tea {number}" for number in range(30)]
CLICKED = 0.5
"""Which items are clicked does not matter, but that not all are: the prior learns from it."""
ITEMS = {f"item {place}": [float(place), 1.0] for place in range(20)}
SOAK_SECONDS = 600.0
SHORT = QUIET + "[store]\nretention_seconds = 20\nroll_up_seconds = 5\n"
GROWTH = 1.1


@dataclass
class Sent:
    """Clicks of one life of a server."""

    acknowledged: list[EventIn] = field(default_factory=list)
    unanswered: list[EventIn] = field(default_factory=list)


def figures(kills: int = KILLS) -> Iterator[Figure]:
    with folder_on_disk() as folder:
        yield killed(folder / "store", kills)


def killed(folder: Path, kills: int) -> Figure:
    """Kill a server many times and count what became of every click."""
    rng = random.Random(1)
    sent, clicks, acknowledged, lost = Sent(), 0, 0, 0
    for life in range(kills + 1):
        with serving(folder, config=BUSY) as server:
            lost += again(server.address, sent)
            if life == kills:
                stored, version = stored_clicks(server.address)
                break
            sent = Sent()
            users = [
                threading.Thread(target=use, args=(server.address, sent)) for _ in range(WORKERS)
            ]
            for user in users:
                user.start()
            longer = 0.0 if life % LONG_LIFE else LONG_SECONDS
            time.sleep(rng.uniform(0.05, 1.0) + longer)
            server.process.send_signal(signal.SIGKILL)
            for user in users:
                user.join()
        clicks += len(sent.acknowledged) + len(sent.unanswered)
        acknowledged += len(sent.acknowledged)
    proofs = [
        subprocess.run(
            [sys.executable, "-m", "ebrank", verb, str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        for verb in ("replay", "check")
    ]
    good = lost == 0 and stored == clicks and not any(proof.returncode for proof in proofs)
    said = "; ".join((proof.stdout or proof.stderr).strip() for proof in proofs)
    return Figure(
        f"SIGKILL {kills} times, under load, roll-ups and training",
        f"{acknowledged:,} clicks acknowledged, {lost} lost; {clicks:,} sent, {stored:,} counted; "
        f"{version} models trained; {said}",
        "none lost, none twice, replay equal",
        good and version > 0,
    )


def use(address: str, sent: Sent) -> None:
    """Rank and click until the server is gone."""
    with ebrank.Client(address, retries=Retries(attempts=1)) as client:
        pending: list[EventIn] = []
        try:
            for query in QUERIES:
                client.put_items(query, ITEMS)
            while True:
                served = client.rank(random.choice(QUERIES), k=5)
                liked = [item.id for item in served.items if random.random() < CLICKED]
                pending = [event(served, item, "click") for item in liked]
                told = client.feedback(pending)
                if told.accepted != len(pending):
                    raise AssertionError(f"refused: {told}")
                sent.acknowledged += pending
                pending = []
        except ServiceError:
            sent.unanswered += pending


def again(address: str, sent: Sent) -> int:
    """Send all clicks of the last life once more; return how many acknowledged ones were lost.

    A click that got no answer may have been counted or not; either way it is counted now.
    """
    lost = 0
    with ebrank.Client(address, timeout=60) as client:
        for first in range(0, len(sent.acknowledged), 1000):
            batch = sent.acknowledged[first : first + 1000]
            lost += len(batch) - client.feedback(batch).duplicate
        if sent.unanswered:
            told = client.feedback(sent.unanswered)
            assert told.rejected == 0, told
    return lost


def stored_clicks(address: str) -> tuple[int, int]:
    """Return how many clicks are in the counters, and the newest version of the prior."""
    with ebrank.Client(address, timeout=60) as client:
        newest = max((model.version for model in client.models().models), default=0)
        return sum(item.clicks for name in QUERIES for item in client.query(name).items), newest


def soak(seconds: float) -> Iterator[Figure]:
    """Serve for a long time with a short memory, and watch what grows."""
    with folder_on_disk() as folder, serving(folder / "store", config=SHORT) as server:
        put(server, candidates=100)
        users, samples = Users(), []
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            load = open_loop(server.port, users.message, 100, 5.0, users.answered)
            samples.append(Sample.of(server, time.monotonic() - began))
            print(f"{samples[-1]}, p99 {load.percentile(0.99):.1f} ms", file=sys.stderr)
        code, errors = server.stop()
    what = f"{seconds:.0f} s at 100/s, retention 20 s"
    yield growth(f"{what}: memory", [one.memory for one in samples])
    yield growth(f"{what}: database", [one.database for one in samples])
    # It keeps the length of the worst rush, and is used again from its start.
    longest, limit = max(one.wal for one in samples), LIMIT_PAGES * 4096
    yield Figure(
        f"{what}: longest write-ahead log",
        f"{longest / 1e6:.1f} MB",
        f"≤ {limit / 1e6:.1f} MB, the store's limit",
        longest <= limit,
    )
    yield Figure("then SIGTERM", f"exit {code} {errors}".strip(), "exit 0", code == 0)


@dataclass(frozen=True)
class Sample:
    """What a server takes at a time, in bytes."""

    seconds: float
    memory: int
    database: int
    wal: int

    @classmethod
    def of(cls, server: Server, seconds: float) -> Sample:
        """Look at a server."""
        sizes = [(server.folder / name).stat().st_size for name in ("log.db", "log.db-wal")]
        return cls(seconds, resident_bytes(server), *sizes)


def growth(what: str, sizes: list[int]) -> Figure:
    """Return the most of the second half over the most of the first fifth."""
    before, after = max(sizes[: len(sizes) // 5 + 1]), max(sizes[len(sizes) // 2 :])
    return Figure(
        f"{what}, second half / first fifth",
        f"{after / before:.2f} ({before / 1e6:.1f} MB → {after / 1e6:.1f} MB)",
        f"≤ {GROWTH:g}",
        after <= GROWTH * before,
    )


class Users:
    """Nine lists, then the clicks on the first item of each."""

    def __init__(self) -> None:
        self._served: list[dict[str, Any]] = []

    def message(self, number: int) -> bytes:
        """Return the request of a number."""
        if number % 10 or not self._served:
            return rank(number)
        clicks = [click(served, served["items"][0]) for served in self._served]
        self._served = []
        return request("POST", "/v1/feedback", {"events": clicks})

    def answered(self, number: int, body: bytes) -> None:
        """Remember a list; see that clicks are accepted."""
        told = json.loads(body)
        if "ranking_id" in told:
            self._served.append(told)
        elif told["rejected"] or told["duplicate"]:
            raise AssertionError(told)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--seconds", type=float, default=SOAK_SECONDS)
    options = parser.parse_args()
    print_figures(soak(options.seconds) if options.soak else figures(options.kills))
