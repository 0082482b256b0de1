"""Flushes that requests share, and chores that outlive trouble."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from ebrank import EBRanker
from ebrank.evidence import kernels as evidence_kernels
from ebrank.kernels import min_max
from ebrank.model import scoring
from ebrank.model.policy.scaling import Scaling
from ebrank.model.prior.learners import minimization
from ebrank.service.api import ItemIn
from ebrank.service.core.background import Flusher, Housekeeping
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from tests.service.scenes import DAY, Clock, Scene, add_model, items, linear_state, played, settings


class SlowDisk(MemoryStore):
    """A store whose flushes wait for a sign, and do what they are told."""

    def __init__(self, effect: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.flushes = 0
        self.began, self.sign = asyncio.Semaphore(0), asyncio.Semaphore(0)
        self.effect = effect

    async def flush(self) -> None:
        self.flushes += 1
        self.began.release()
        await self.sign.acquire()
        self.effect()


def waiting(flusher: Flusher, count: int) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(flusher.flushed()) for _ in range(count)]


async def test_waiting_requests_share_one_flush() -> None:
    store = SlowDisk()
    flusher = Flusher(store)
    [first] = waiting(flusher, 1)
    await store.began.acquire()
    others = waiting(flusher, 8)
    await asyncio.sleep(0)
    assert flusher.waiting == 8
    store.sign.release()
    await first
    await store.began.acquire()
    assert not any(task.done() for task in others), "they came after it began"
    store.sign.release()
    await asyncio.gather(*others)
    assert (store.flushes, flusher.waiting) == (2, 0)
    await flusher.close()


async def test_a_failed_flush_is_told_to_all_who_wait_for_it() -> None:
    problems: list[Exception] = [StoreError("the disk failed")]

    def fail_once() -> None:
        if problems:
            raise problems.pop()

    store = SlowDisk(fail_once)
    flusher = Flusher(store)
    failed = waiting(flusher, 3)
    store.sign.release()
    outcomes = await asyncio.gather(*failed, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreError] * 3
    assert store.flushes == 1
    later = waiting(flusher, 1)  # it goes on
    store.sign.release()
    await later[0]
    await flusher.close()


async def test_a_canceled_request_does_not_cancel_others() -> None:
    store = SlowDisk()
    flusher = Flusher(store)
    first, second = waiting(flusher, 2)
    await store.began.acquire()
    first.cancel()  # while its flush is under way
    gone, other = waiting(flusher, 2)
    await asyncio.sleep(0)
    gone.cancel()
    store.sign.release()
    store.sign.release()
    await asyncio.gather(second, other)
    assert first.cancelled()
    assert gone.cancelled()
    await flusher.close()


async def test_a_failed_flush_that_nobody_waits_for_is_not_reported_by_the_loop() -> None:
    def fail() -> None:
        raise StoreError("the disk failed")

    store, reported = SlowDisk(fail), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda loop, told: reported.append(told))
    flusher = Flusher(store)
    [left] = waiting(flusher, 1)
    await store.began.acquire()
    left.cancel()
    store.sign.release()
    await flusher.close()
    await asyncio.sleep(0)
    gc.collect()
    assert store.flushes == 1
    assert not reported


async def test_flushes_are_measured() -> None:
    flusher = Flusher(MemoryStore())
    await flusher.flushed()
    await asyncio.gather(*waiting(flusher, 2))
    assert len(flusher.took) == 2
    await flusher.close()


async def test_closing_flushes_for_those_who_wait_and_takes_nothing_more() -> None:
    store = SlowDisk()
    flusher = Flusher(store)
    tasks = waiting(flusher, 3)
    await asyncio.sleep(0)
    store.sign.release()
    await flusher.close()
    await asyncio.sleep(0)
    assert all(task.done() and task.exception() is None for task in tasks)
    with pytest.raises(StoreError, match="shutting down"):
        await flusher.flushed()
    assert store.flushes == 1


async def test_chores_are_done_by_the_clock_and_outlive_whatever_they_raise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each kind of failure is said once, and again if it comes back after a turn that went well."""
    turns, clock = list[int](), Clock()
    failures: dict[int, Exception] = {
        0: RuntimeError("a bug"),
        1: RuntimeError("a bug"),
        2: StoreError("the disk is full"),
        3: RuntimeError("a bug"),
        5: RuntimeError("a bug"),  # it went well in between
    }

    async def chore() -> None:
        turns.append(len(turns))
        if turns[-1] in failures:
            raise failures[turns[-1]]

    chores = Housekeeping(clock, tick=0.001)
    chores.add(1.0, chore)
    await asyncio.sleep(0.02)
    assert not turns, "the clock stands still"
    while len(turns) < 7:
        clock.now += 1.0
        await asyncio.sleep(0.002)
    await chores.close()
    clock.now += 10.0
    await asyncio.sleep(0.02)
    assert len(turns) == 7
    bug = "a background task failed; it will be retried"
    assert [record.message for record in caplog.records] == [bug, "the disk is full", bug]
    assert caplog.text.count("RuntimeError: a bug") == 2


@played(
    settings(
        store={"retention_seconds": 100.0, "roll_up_seconds": 1.0}, training={"after_events": 1}
    )
)
async def test_the_engine_rolls_up_saves_and_trains_by_itself(engine: Scene) -> None:
    engine._chores = Housekeeping(engine._timer, tick=0.01)
    await engine.start()
    await engine.put_items("q", items(3))
    await engine.clicked(await engine.ranked(), "i0")
    engine.clock.now += 201.0
    async with asyncio.timeout(60):
        while await engine.store.log.length() or await engine.store.meta.get("totals") is None:
            await asyncio.sleep(0.01)
        while (await engine.models()).training.finished is None:
            await asyncio.sleep(0.01)
    assert "needed" in (await engine.models()).training.outcome


@played(settings(features={"missing": "mean"}, ranking={"policy": "ebrank"}))
async def test_nothing_is_compiled_inside_a_request(engine: Scene) -> None:
    """What `start` warms up is all that ranking with a trained model calls."""
    ranker = EBRanker("ebrank", scaling=Scaling("query"))
    ranker.state_ = linear_state(1.0, -1.0)
    await add_model(engine.store, ranker, features=())
    kernels: list[Any] = [
        min_max._scale,
        minimization.write_scores,
        scoring.write_scores,
        evidence_kernels.write_sums,
    ]
    later = await engine.opened()
    await later.start()
    await later.warm_up()
    compiled = [len(kernel.signatures) for kernel in kernels]
    assert all(compiled)
    await later.put_items("q", [ItemIn("a", [1, 2]), ItemIn("b", [0.5, None])])
    assert (await later.ranked(explain=True)).model == 1
    await later.query("q")
    await later.insights()
    assert compiled == [len(kernel.signatures) for kernel in kernels]


@played(settings(store={"retention_seconds": 100.0}), count=3)
async def test_the_dashboards_week_outlasts_a_short_retention(engine: Scene) -> None:
    await engine.ranked()
    await engine._activity.save()
    for days, minutes in ((6, 1), (1.1, 0)):
        engine.clock.now += days * DAY
        await engine._roll_up()
        assert len(await engine.store.meta.minutes(0.0)) == minutes
    assert await engine.store.log.length() == 0
