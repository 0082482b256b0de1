"""Roll-ups in portions: interrupted between any two, counters are still snapshot plus log."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ebrank.service.ops.replay import replay
from ebrank.service.store.records import RolledUp
from ebrank.service.store.sqlite import SqliteStore, rollup
from ebrank.testing.histories import bits, event, fill, ranking
from tests.service.store.blocking import Blocking, run


@pytest.mark.parametrize("portions", range(5))
def test_an_interrupted_roll_up_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portions: int
) -> None:
    store = Blocking(SqliteStore(tmp_path))
    log = run(fill(store.wrapped))
    current = bits(store.items.load("q"))
    monkeypatch.setattr(rollup, "PORTION", 2)
    move, left = rollup._move, iter(range(portions))

    def die_after_some(*given: Any, **named: Any) -> RolledUp:  # noqa: ANN401
        if next(left, None) is None:
            raise ZeroDivisionError
        return move(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(rollup, "_move", die_after_some)
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


def test_others_write_between_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path)
    run(fill(store))
    monkeypatch.setattr(rollup, "PORTION", 1)
    fold, numbers = rollup._fold, iter(range(100))

    async def session() -> None:
        loop = asyncio.get_running_loop()

        def write_and_fold(*given: Any) -> None:  # noqa: ANN401
            served = ranking(f"new-{next(numbers)}", "abc", time=100.0)
            clicked = event(f"of-{served.id}", served, "a", time=100.0)
            asyncio.run_coroutine_threadsafe(store.log.write([served, clicked]), loop).result(10)
            fold(*given)

        monkeypatch.setattr(rollup, "_fold", write_and_fold)
        assert await store.log.roll_up(90.0) == RolledUp(3, 5)
        assert len([entry async for entry in store.log.entries()]) == 16
        assert (await replay(store)).equal
        await store.close()

    run(session())


def test_closing_waits_for_a_portion_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path)
    log = run(fill(store))
    monkeypatch.setattr(rollup, "PORTION", 1)
    fold, began = rollup._fold, threading.Event()

    def slow(*given: Any) -> None:  # noqa: ANN401
        began.set()
        time.sleep(0.1)
        fold(*given)

    monkeypatch.setattr(rollup, "_fold", slow)

    async def session() -> None:
        rolling_up = asyncio.create_task(store.log.roll_up(1000.0))
        await asyncio.to_thread(began.wait, 10)
        await store.close()
        assert await rolling_up == RolledUp(1, 0)

    run(session())
    again = Blocking(SqliteStore(tmp_path))
    assert again.log.entries() == log[1:]
    assert run(replay(again.wrapped)).equal
    again.close()
