"""Which version goes live, and who decides."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from ebrank.service.engine import Engine
from ebrank.service.fitting import Fitted, Job
from ebrank.service.store.memory import MemoryStore
from tests.service.scenes import better, play


@pytest.mark.parametrize("problem", [OSError("fork failed"), msgspec.DecodeError("cut short")])
def test_a_run_that_fails_in_whatever_way_is_told_and_the_next_may_do(
    problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(engine: Engine) -> None:
        results: list[Exception | Fitted] = [better(), problem]

        async def run(job: Job) -> Fitted:
            result = results.pop()
            if isinstance(result, Exception):
                raise result
            return result

        engine._training._run = run
        await engine.train()
        await engine._training.finished()
        training = (await engine.models()).training
        assert (training.running, training.finished is None) == (False, False)
        expected = f"the run failed: {type(problem).__name__}: {problem}"
        assert training.outcome == expected
        await engine.train()
        await engine._training.finished()
        assert engine.version == 1

    play(scene)
    assert "Traceback" in caplog.text


def test_a_run_does_not_undo_what_somebody_decided_meanwhile() -> None:
    store = MemoryStore()

    async def scene(engine: Engine) -> None:
        decided = asyncio.Event()
        judged_against = []

        async def run(job: Job) -> Fitted:
            judged_against.append(job.active)
            await decided.wait()
            return better()

        engine._training._run = run
        for roll_back in (False, True):
            decided.clear()
            await engine.train()
            await asyncio.sleep(0)
            if roll_back:
                await engine.activate(0)
            decided.set()
            await engine._training.finished()
        assert judged_against == [0, 1]
        answer = await engine.models()
        assert answer.active == store.active_model() == engine.version == 0
        first, second = answer.models
        assert (first.activated, second.activated) == (True, False)
        assert second.reason == "it is better; but version 0 was made active during the run"
        assert answer.training.outcome == f"version 2 stays off: {second.reason}"
        assert (await engine.activate(2)).active == 2

    play(scene, store=store)
