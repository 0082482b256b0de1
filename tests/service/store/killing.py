"""A process that writes until it is killed, and the proof that it kept its word.

The child writes rankings and events through the committer, and prints the name of an event when it
is on disk; some events it sends twice, and it rolls up. The parent kills it at a random moment, and
looks: everything that was printed must be in the log or, if old, in the snapshot.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ebrank.service.core.committer import Committer
from ebrank.service.ops.replay import replay
from ebrank.service.store.records import EventEntry, Operation, RankingEntry
from ebrank.service.store.sqlite import SqliteStore
from tests.service.store.samples import event, new_items, ranking

PROJECT = Path(__file__).parents[3]
ROUND_SECONDS = 0.3
LETTERS = "abcdefgh"


@dataclass(frozen=True)
class Outcome:
    """How many events were acknowledged by killed processes, and how many were counted in all."""

    acknowledged: int
    counted: int


def kill_again_and_again(folder: Path, rounds: int, seed: int = 1) -> Outcome:
    """Kill a writer many times on one store; raise if it lost or doubled anything."""
    chance = random.Random(seed)
    acknowledged: set[str] = set()
    for number in range(rounds):
        acknowledged |= _one_life(folder, number, chance.uniform(0.0, ROUND_SECONDS))
        store = SqliteStore(folder)
        try:
            counted = _check(store, acknowledged)
        finally:
            store.close()
    return Outcome(len(acknowledged), counted)


def _one_life(folder: Path, number: int, seconds: float) -> set[str]:
    """Return the events that a process acknowledged before it was killed."""
    command = [sys.executable, "-m", "tests.service.store.killing", str(folder), str(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=PROJECT) as child:
        assert child.stdout is not None
        first = child.stdout.readline()  # it is at work from here on
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        lines = (first + child.stdout.read()).decode().splitlines(keepends=True)
        assert child.wait(timeout=10) == -signal.SIGKILL
    return {line.strip() for line in lines if line.endswith("\n")}


def _check(store: SqliteStore, acknowledged: set[str]) -> int:
    """Return how many events were counted, rolled up or not; all acknowledged ones must be."""
    report = replay(store)
    assert report.equal, report.differences
    events = [entry.event_id for entry in store.log() if isinstance(entry, EventEntry)]
    assert len(set(events)) == len(events), "an event stands in the log twice"
    snapshot, state = store.snapshot("q"), store.load("q")
    assert snapshot is not None
    assert state is not None
    # All events are clicks; those rolled up are known by number only, and were written in order.
    counted = int(state.stats.clicks.sum())
    assert counted == int(snapshot.stats.clicks.sum()) + len(events)
    oldest = store.meta("oldest") or ""
    missing = {name for name in acknowledged if name >= oldest} - set(events)
    assert not missing, f"acknowledged, and lost: {sorted(missing)[:3]}"
    assert counted >= len(acknowledged), "acknowledged events were lost"
    return counted


def _write_for_ever(folder: Path, number: int) -> None:
    store = SqliteStore(folder)
    store.put_items("q", new_items(*LETTERS), 1.0)
    committer = Committer(store)
    chance, clock, turn = random.Random(number), store.last_time(), 0
    while True:
        turn += 1
        clock += 1.0
        name = f"{number:03}-{turn:08}"
        served = _served(name, chance, clock)
        clicks: list[Operation] = [
            event(f"{name}-{item}", served, item, time=clock) for item in served.items[:3]
        ]
        committer.submit([served], flush=False)
        commit = committer.submit(clicks + clicks[:1], flush=True)
        assert [one.status for one in commit.written] == ["accepted"] * 3 + ["duplicate"]
        commit.on_disk.result()
        lines = "".join(f"{one.event_id}\n" for one in clicks if isinstance(one, EventEntry))
        os.write(1, lines.encode())
        if turn % 50 == 0:
            store.set_meta("oldest", f"{number:03}-{max(turn - 20, 0):08}-")
            store.roll_up(clock - 20.5)


def _served(name: str, chance: random.Random, clock: float) -> RankingEntry:
    order = "".join(chance.sample(LETTERS, 3))
    return ranking(f"r{name}", order, time=clock)


if __name__ == "__main__":
    _write_for_ever(Path(sys.argv[1]), int(sys.argv[2]))
