from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from ebrank.service.api import ItemIn, RankRequest
from ebrank.service.core import housekeeping
from ebrank.service.core.engine import Engine
from ebrank.service.core.housekeeping import Housekeeping
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from tests.service.scenes import Clock, click, items, linear_state, play, settings
from tests.service.store.blocking import run


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


def test_the_engine_rolls_up_saves_and_trains_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "TICK_SECONDS", 0.01)
    clock, store = Clock(), MemoryStore()

    async def scene(engine: Engine) -> None:
        engine._chores = Housekeeping(engine._timer, tick=0.01)
        await engine.start()
        await engine.put_items("q", items(3))
        answer = await engine.rank(RankRequest("q"))
        await engine.feedback([click("e", answer.ranking_id, "i0")])
        clock.now += 200.0
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
    from ebrank import EBRanker, model_file, scaling, scoring
    from ebrank.evidence import kernels as evidence_kernels
    from ebrank.features import Scaling
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


def test_the_dashboards_hour_outlasts_a_short_retention() -> None:
    clock, store = Clock(), MemoryStore()

    async def scene(engine: Engine) -> list[int]:
        await engine.put_items("q", items(3))
        await engine.rank(RankRequest("q"))
        await engine._activity.save()
        kept = []
        for seconds in (1800.0, 1900.0):
            clock.now += seconds
            await engine._roll_up()
            kept.append(len(await store.meta.minutes(0.0)))
        return kept

    chosen = settings(store={"retention_seconds": 100.0})
    assert play(scene, chosen, store=store, clock=clock) == [1, 0]
    assert run(store.log.length()) == 0
