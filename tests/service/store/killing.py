"""A process that writes until it is killed, and the proof that it kept its word.

The child writes rankings and events, and prints the name of an event when it is on disk; some
events it sends twice, and it rolls up. The parent kills it at a random moment, and looks:
everything that was printed must be in the log or, if old, in the snapshot.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ebrank.service.core.background import Flusher
from ebrank.service.ops.replay import replay
from ebrank.service.store import Store, open
from ebrank.service.store.records import EventEntry, Operation, RankingEntry
from tests.service.histories import event, new_items, ranking

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
        counted = asyncio.run(_check(folder, acknowledged))
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


async def _check(folder: Path, acknowledged: set[str]) -> int:
    """Return how many events were counted, rolled up or not; all acknowledged ones must be."""
    async with open(str(folder)) as store:
        return await _counted(store, acknowledged)


async def _counted(store: Store, acknowledged: set[str]) -> int:
    report = await replay(store)
    assert report.equal, report.differences
    entries = [entry async for entry in store.log.entries()]
    events = [entry.event_id for entry in entries if isinstance(entry, EventEntry)]
    assert len(set(events)) == len(events), "the log contains an event twice"
    snapshot, state = await store.items.snapshot("q"), await store.items.load("q")
    assert snapshot is not None
    assert state is not None
    # All events are clicks; those rolled up are known by number only, and were written in order.
    counted = int(state.counts[:, 1].sum())
    assert counted == int(snapshot.counts[:, 1].sum()) + len(events)
    oldest = await store.meta.get("oldest") or ""
    missing = {name for name in acknowledged if name >= oldest} - set(events)
    assert not missing, f"acknowledged, and lost: {sorted(missing)[:3]}"
    assert counted >= len(acknowledged), "acknowledged events were lost"
    return counted


async def _write_for_ever(folder: Path, number: int) -> None:
    async with open(str(folder)) as store:
        await store.items.put("q", new_items(*LETTERS), 1.0)
        flusher = Flusher(store)
        chance, clock, turn = random.Random(number), await store.log.last_time(), 0
        while True:
            turn += 1
            clock += 1.0
            name = f"{number:03}-{turn:08}"
            served = _served(name, chance, clock)
            clicks: list[Operation] = [
                event(f"{name}-{item}", served, item, time=clock) for item in served.items[:3]
            ]
            await store.log.write([served])
            written = (await store.log.write(clicks + clicks[:1])).written
            assert [one.status for one in written] == ["accepted"] * 3 + ["duplicate"]
            await flusher.flushed()
            lines = "".join(f"{one.event_id}\n" for one in clicks if isinstance(one, EventEntry))
            os.write(1, lines.encode())
            if turn % 50 == 0:
                await store.meta.set({"oldest": f"{number:03}-{max(turn - 20, 0):08}-"})
                await store.flush()
                await store.log.roll_up(clock - 20.5)


def _served(name: str, chance: random.Random, clock: float) -> RankingEntry:
    order = "".join(chance.sample(LETTERS, 3))
    return ranking(f"r{name}", order, time=clock)


if __name__ == "__main__":
    asyncio.run(_write_for_ever(Path(sys.argv[1]), int(sys.argv[2])))
