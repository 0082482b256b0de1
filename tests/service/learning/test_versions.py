"""Which version goes live, and who decides."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from ebrank.service.api import ModelsResponse, RankRequest
from ebrank.service.core.engine import Engine
from ebrank.service.learning.fitting import TrainingJob, TrainingResult
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.sqlite import SqliteStore
from tests.service.scenes import Clock, better, click, ids, items, play, settings
from tests.service.store import blocking


@pytest.mark.parametrize("problem", [OSError("fork failed"), msgspec.DecodeError("cut short")])
def test_a_run_that_fails_in_whatever_way_is_told_and_the_next_may_do(
    problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(engine: Engine) -> None:
        results: list[Exception | TrainingResult] = [better(), problem]

        async def run(job: TrainingJob) -> TrainingResult:
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

        async def run(job: TrainingJob) -> TrainingResult:
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
        assert answer.active == await store.models.active() == engine.version == 0
        first, second = answer.models
        assert (first.activated, second.activated) == (True, False)
        assert second.reason == "it is better; but version 0 was made active during the run"
        assert answer.training.outcome == f"version 2 stays off: {second.reason}"
        assert (await engine.activate(2)).active == 2

    play(scene, store=store)


async def ran(engine: Engine, *, asked: bool) -> ModelsResponse:
    """Return the versions after a run that somebody asked for, or that started by itself."""

    async def run(job: TrainingJob) -> TrainingResult:
        return better()

    engine._training._run = run
    if asked:
        await engine.train()
    else:
        await engine._train_if_due()
    assert engine._training.running
    await engine._training.finished()
    return await engine.models()


async def clicked(engine: Engine, name: str) -> None:
    """Let an event happen that makes a run due."""
    await engine.put_items("q", items(2, width=1))
    answer = await engine.rank(RankRequest("q"))
    await engine.feedback([click(name, answer.ranking_id, ids(answer)[0])])


def test_a_version_chosen_by_hand_stays_until_somebody_says_otherwise(tmp_path: Path) -> None:
    chosen, clock = settings(training={"after_events": 1}), Clock()

    async def rolled_back(engine: Engine) -> None:
        await ran(engine, asked=True)
        assert not (await engine.models()).pinned
        answer = await engine.activate(0)
        assert (answer.active, answer.pinned) == (0, True)

    async def by_itself(engine: Engine) -> None:
        assert (await engine.models()).pinned
        await clicked(engine, "a")
        answer = await ran(engine, asked=False)
        assert (answer.active, answer.pinned, len(answer.models)) == (0, True, 2)
        kept = answer.models[1]
        assert not kept.activated
        assert kept.reason == "it is better; but version 0 was made active by hand and is pinned"
        assert answer.training.outcome == f"version 2 stays off: {kept.reason}"

    async def asked(engine: Engine) -> None:
        answer = await ran(engine, asked=True)
        assert (answer.active, answer.pinned) == (3, False)
        await engine.activate(1)
        assert (await engine.activate(3)).pinned is False  # the newest

    async def free(engine: Engine) -> None:
        assert not (await engine.models()).pinned
        await clicked(engine, "b")
        assert (await ran(engine, asked=False)).active == 4

    for scene in (rolled_back, by_itself, asked, free):  # each after a restart
        store = SqliteStore(tmp_path)
        play(scene, chosen, store=store, clock=clock)
        blocking.run(store.close())
