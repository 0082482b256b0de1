"""Roll-ups in portions: interrupted between any two, counters are still snapshot plus log."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from ebrank.service.ops.replay import replay
from ebrank.service.store import log as rollup
from ebrank.service.store.base import StoreError
from ebrank.service.store.records import Minute, NewItem, RankingEntry, RolledUp
from ebrank.service.store.sqlite import SqliteStore
from ebrank.testing.histories import bits, event, fill, ranking
from tests.service.store.blocking import Blocking, run


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roll up as a server does; other tests leave the pauses out."""
    monkeypatch.setattr(rollup, "PAUSE", 9.0)


@pytest.mark.parametrize("portions", range(5))
def test_an_interrupted_roll_up_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portions: int
) -> None:
    store = Blocking(SqliteStore(tmp_path))
    log = run(fill(store.wrapped))
    current = bits(store.items.load("q"))
    portions_of(monkeypatch, 2)
    move, left = rollup._moved, iter(range(portions))

    async def die_after_some(*given: Any, **named: Any) -> RolledUp:  # noqa: ANN401
        if next(left, None) is None:
            raise ZeroDivisionError
        return await move(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(rollup, "_moved", die_after_some)
        if portions < 4:
            with pytest.raises(ZeroDivisionError):
                store.log.roll_up(1000.0)
        else:
            assert store.log.roll_up(1000.0) == RolledUp(3, 5)
    store.close()
    store = Blocking(SqliteStore(tmp_path))
    assert store.log.entries() == log[2 * portions :]
    assert run(replay(store.wrapped)).equal
    store.log.roll_up(1000.0)
    assert store.log.entries() == []
    assert bits(store.items.snapshot("q")) == bits(store.items.load("q")) == current
    store.close()


def portions_of(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Roll up so many entries at a time."""
    monkeypatch.setattr(rollup, "FIRST_PORTION", size)
    monkeypatch.setattr(rollup, "next_portion", lambda portion, took: size)


def test_others_write_between_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path)
    run(fill(store))
    portions_of(monkeypatch, 1)

    async def session() -> None:
        rolling_up = asyncio.create_task(store.log.roll_up(90.0))
        written = 0
        while not rolling_up.done():
            served = ranking(f"new-{written}", "abc", time=100.0)
            clicked = event(f"of-{served.id}", served, "a", time=100.0)
            await store.log.write([served, clicked])
            written += 1
            await asyncio.sleep(0)
        assert await rolling_up == RolledUp(3, 5)
        assert written > 8
        assert len([entry async for entry in store.log.entries()]) == 2 * written
        assert (await replay(store)).equal
        await store.close()

    run(session())


def test_closing_waits_for_a_portion_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path)
    log = run(fill(store))
    portions_of(monkeypatch, 1)

    async def session() -> None:
        rolling_up = asyncio.create_task(store.log.roll_up(1000.0))
        await asyncio.sleep(0)
        await store.close()
        with pytest.raises(StoreError, match="the store is closed"):
            await rolling_up

    run(session())
    again = Blocking(SqliteStore(tmp_path))
    assert again.log.entries() == log[1:]
    assert run(replay(again.wrapped)).equal
    again.close()


@pytest.mark.slow
def test_a_backlog_is_rolled_up_in_short_portions_with_pauses(tmp_path: Path) -> None:
    """Whoever writes meanwhile hardly waits: the loop is free nine tenths of the time."""
    store = SqliteStore(tmp_path)
    items = tuple(f"i{at}" for at in range(10))

    async def session() -> tuple[RolledUp, list[float]]:
        await store.items.put("q", [NewItem(item, (1.0,)) for item in items], 0.0)
        for number in range(0, 5000, 500):
            await store.log.write(
                [RankingEntry(f"r{number + at}", "q", 1.0, 0, items) for at in range(500)]
            )
        turns = [time.thread_time()]
        rolling_up = asyncio.create_task(store.log.roll_up(1000.0))
        while not rolling_up.done():
            await asyncio.sleep(0)
            turns.append(time.thread_time())
        await store.close()
        return await rolling_up, turns

    rolled_up, turns = run(session())
    assert rolled_up == RolledUp(5000, 0)
    portions = [later - turn for turn, later in itertools.pairwise(turns) if later - turn > 1e-4]
    assert len(portions) >= 25
    assert statistics.median(portions) < 0.02  # the first ones include what a start costs


def test_many_old_minutes_are_dropped_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollup, "PAUSE", 9.0)  # long enough to look in between
    store = SqliteStore(tmp_path)

    async def session() -> None:
        minutes = [Minute(60.0 * at, {"rankings": 1.0}) for at in range(35)]
        await store.meta.set({}, minutes)
        rolling_up = asyncio.create_task(store.log.roll_up(0.0, minutes_before=60.0 * 30))
        left = {35}
        while not rolling_up.done():
            await asyncio.sleep(0)
            left.add(len(await store.meta.minutes(0.0)))
        assert {5, 35} < left <= {35, 25, 15, 5}  # a busy machine may miss a moment
        await store.close()

    run(session())
