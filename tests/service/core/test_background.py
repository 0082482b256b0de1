"""Flushes that requests share, and chores that outlive trouble."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ebrank.service.api import ItemIn, RankRequest
from ebrank.service.core import background
from ebrank.service.core.background import Flusher, Housekeeping
from ebrank.service.engine import Engine
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from tests.service.scenes import Clock, click, items, linear_state, play, settings
from tests.service.store.blocking import run


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


def played(scene: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scene(), timeout=20)

    asyncio.run(bounded())


def waiting(flusher: Flusher, count: int) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(flusher.flushed()) for _ in range(count)]


def test_waiting_requests_share_one_flush() -> None:
    async def scene() -> None:
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

    played(scene)


def test_a_failed_flush_is_told_to_all_who_wait_for_it() -> None:
    problems: list[Exception] = [StoreError("the disk failed")]

    def fail_once() -> None:
        if problems:
            raise problems.pop()

    async def scene() -> None:
        store = SlowDisk(fail_once)
        flusher = Flusher(store)
        failed = waiting(flusher, 3)
        store.sign.release()
        for told in await asyncio.gather(*failed, return_exceptions=True):
            assert isinstance(told, StoreError)
        assert store.flushes == 1
        later = waiting(flusher, 1)  # it goes on
        store.sign.release()
        await later[0]
        await flusher.close()

    played(scene)


def test_a_canceled_request_does_not_cancel_others() -> None:
    async def scene() -> None:
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

    played(scene)


def test_whoever_measures_flushes_cannot_make_one_fail(caplog: pytest.LogCaptureFixture) -> None:
    def fail(seconds: float) -> None:
        raise ZeroDivisionError

    async def scene() -> None:
        flusher = Flusher(MemoryStore())
        flusher.on_flush = fail
        await flusher.flushed()
        await flusher.close()

    played(scene)
    assert "ZeroDivisionError" in caplog.text


def test_flushes_are_measured() -> None:
    async def scene() -> None:
        flusher, measured = Flusher(MemoryStore()), list[float]()
        flusher.on_flush = measured.append
        await flusher.flushed()
        await flusher.flushed()
        assert len(measured) == 2
        assert all(seconds >= 0.0 for seconds in measured)
        await flusher.close()

    played(scene)


def test_closing_flushes_for_those_who_wait_and_takes_nothing_more() -> None:
    async def scene() -> None:
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

    played(scene)


def test_chores_are_done_by_the_clock_and_outlive_trouble(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, done = Clock(), []

    async def chore() -> None:
        done.append(clock.now)
        if len(done) == 1:
            raise StoreError("the disk is full")

    async def scene() -> None:
        chores = Housekeeping(clock, tick=0.001)
        chores.add(10.0, chore)
        for _ in range(3):
            await asyncio.sleep(0.02)
            before = len(done)
            clock.now += 10.0
            while len(done) == before:
                await asyncio.sleep(0.001)
        await chores.close()
        clock.now += 10.0
        await asyncio.sleep(0.02)

    with caplog.at_level(logging.WARNING):
        asyncio.run(asyncio.wait_for(scene(), timeout=10))
    assert len(done) == 3
    assert "the disk is full" in caplog.text


def test_a_chore_that_raises_anything_goes_on_and_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    turns: list[int] = []
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

    async def scene() -> None:
        clock = Clock()
        chores = Housekeeping(clock, tick=0.001)
        chores.add(1.0, chore)
        while len(turns) < 7:
            clock.now += 1.0
            await asyncio.sleep(0.002)
        await chores.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(asyncio.wait_for(scene(), timeout=10))
    said = [record.message for record in caplog.records]
    bug = "a background task failed; it will be retried"
    assert said == [bug, "the disk is full", bug]
    assert caplog.text.count("RuntimeError: a bug") == 2


def test_the_engine_rolls_up_saves_and_trains_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "TICK_SECONDS", 0.01)
    clock, store = Clock(), MemoryStore()

    async def scene(engine: Engine) -> None:
        engine._chores = Housekeeping(engine._timer, tick=0.01)
        await engine.start()
        await engine.put_items("q", items(3))
        answer = await engine.rank(RankRequest("q"))
        await engine.feedback([click("e", answer.ranking_id, "i0")])
        clock.now += 201.0
        while await store.log.length() or await store.meta.get("totals") is None:
            await asyncio.sleep(0.01)
        while (await engine.models()).training.finished is None:
            await asyncio.sleep(0.01)
        assert "needed" in (await engine.models()).training.outcome

    async def bounded(engine: Engine) -> None:
        await asyncio.wait_for(scene(engine), timeout=60)

    chosen = settings(
        store={"retention_seconds": 100.0, "roll_up_seconds": 1.0}, training={"after_events": 1}
    )
    play(bounded, chosen, store=store, clock=clock)


def test_nothing_is_compiled_inside_a_request() -> None:
    """What `start` warms up is all that ranking with a trained model calls."""
    from ebrank import EBRanker
    from ebrank.evidence import kernels as evidence_kernels
    from ebrank.kernels import min_max as scaling
    from ebrank.policy import model_file, scoring
    from ebrank.policy.scaling import Scaling
    from ebrank.priors.learners import linear_kernel
    from ebrank.service.store.records import ModelRecord

    store = MemoryStore()
    ranker = EBRanker(scaling=Scaling("query"))
    ranker.state_ = linear_state(1.0, -1.0)
    record = ModelRecord(1, 0.0, 10, 0.1, 0.2, activated=True)
    run(store.models.add(record, model_file.to_bytes(ranker)))
    kernels: list[Any] = [
        scaling._scale,
        linear_kernel.write_scores,
        scoring.write_scores,
        evidence_kernels.write_sums,
    ]

    async def scene(engine: Engine) -> None:
        await engine.start()
        compiled = [len(kernel.signatures) for kernel in kernels]
        assert all(compiled)
        await engine.put_items("q", [ItemIn("a", [1, 2]), ItemIn("b", [0.5, None])])
        answer = await engine.rank(RankRequest("q", explain=True))
        assert answer.model == 1
        await engine.query("q")
        await engine.insights()
        assert compiled == [len(kernel.signatures) for kernel in kernels]

    play(scene, settings(features={"missing": "mean"}), store=store)


def test_the_dashboards_week_outlasts_a_short_retention() -> None:
    clock, store = Clock(), MemoryStore()

    async def scene(engine: Engine) -> list[int]:
        await engine.put_items("q", items(3))
        await engine.rank(RankRequest("q"))
        await engine._activity.save()
        kept = []
        for seconds in (6 * 86400.0, 1.1 * 86400.0):
            clock.now += seconds
            await engine._roll_up()
            kept.append(len(await store.meta.minutes(0.0)))
        return kept

    chosen = settings(store={"retention_seconds": 100.0})
    assert play(scene, chosen, store=store, clock=clock) == [1, 0]
    assert run(store.log.length()) == 0
