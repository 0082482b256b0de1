"""Which version goes live, and who decides."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest

from ebrank.service.api import Insights, ModelsResponse
from ebrank.service.core.problems import NotFound
from ebrank.service.learning.fitting import TrainerError, TrainingJob, TrainingResult
from ebrank.service.store.sqlite import SqliteStore
from tests.service.scenes import BOTH, START, Scene, better, ids, items, played, settings, trainers


def worse() -> TrainingResult:
    return msgspec.structs.replace(better(), better=False, reason="it is worse")


async def runs(engine: Scene, *results: TrainingResult | Exception) -> ModelsResponse:
    """Let runs end with these results; return the versions then."""
    for result in results:

        async def run(
            job: TrainingJob, result: TrainingResult | Exception = result
        ) -> TrainingResult:
            if isinstance(result, Exception):
                raise result
            return result

        engine._training._run = run
        await engine.train()
        await engine._training.finished()
    return await engine.models()


def prior_of(answer: ModelsResponse | Insights) -> tuple[str, str, float | None]:
    return answer.prior.state, answer.prior.reason, answer.prior.since


@pytest.mark.parametrize("problem", [OSError("fork failed"), msgspec.DecodeError("cut short")])
@played()
async def test_a_run_that_fails_in_whatever_way_is_told_and_the_next_may_do(
    engine: Scene, problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    training = (await runs(engine, problem)).training
    assert training.finished is not None
    assert not training.running
    assert training.outcome == f"the run failed: {type(problem).__name__}: {problem}"
    assert "Traceback" in caplog.text
    assert (await runs(engine, better())).active == 1


@played()
async def test_a_run_does_not_undo_what_somebody_decided_meanwhile(engine: Scene) -> None:
    decided, judged_against = asyncio.Event(), list[int]()

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
    assert answer.active == await engine.store.models.active() == engine.version == 0
    first, second = answer.models
    assert (first.activated, second.activated) == (True, False)
    assert second.reason == "it is better; but version 0 was made active during the run"
    assert answer.training.outcome == f"version 2 stays off: {second.reason}"
    assert (await engine.activate(2)).active == 2


@played(settings(training={"after_events": 1}), on=SqliteStore)
async def test_a_version_chosen_by_hand_stays_until_somebody_says_otherwise(engine: Scene) -> None:
    async def run_by_itself(engine: Scene) -> ModelsResponse:
        await engine.put_items("q", items(2, width=1))
        answer = await engine.ranked()
        await engine.clicked(answer, ids(answer)[0])
        await engine._train_if_due()
        assert engine._training.running
        await engine._training.finished()
        return await engine.models()

    async def restarted(engine: Scene) -> Scene:
        run = engine._training._run
        await engine.close()
        later = await engine.opened()
        later._training._run = run
        return later

    assert not (await runs(engine, better())).pinned
    answer = await engine.activate(0)
    assert (answer.active, answer.pinned) == (0, True)
    engine = await restarted(engine)
    answer = await run_by_itself(engine)
    assert (answer.active, answer.pinned, len(answer.models)) == (0, True, 2)
    kept = answer.models[1]
    assert not kept.activated
    assert kept.reason == "it is better; but version 0 was made active by hand and is pinned"
    assert answer.training.outcome == f"version 2 stays off: {kept.reason}"
    engine = await restarted(engine)
    answer = await runs(engine, better())
    assert (answer.active, answer.pinned) == (3, False)
    await engine.activate(1)
    assert (await engine.activate(3)).pinned is False  # the newest
    engine = await restarted(engine)
    assert not (await engine.models()).pinned
    assert (await run_by_itself(engine)).active == 4


def kept(answer: ModelsResponse | Insights) -> list[int]:
    return [model.version for model in answer.models]


@played(settings(models={"keep": 3}), on=BOTH)
async def test_old_versions_are_forgotten_but_not_the_active_one(engine: Scene) -> None:
    answer = await runs(engine, better(), better(), *[worse()] * 5)
    assert kept(answer) == [1, 2, 5, 6, 7], "the newest, the active one, and the one before it"
    assert answer.active == 2
    await engine.activate(1)
    assert kept(await runs(engine, better())) == [2, 6, 7, 8]
    with pytest.raises(NotFound, match="no model 1"):
        await engine.activate(1)


@played()
async def test_versions_of_a_longer_memory_are_forgotten_at_the_start(engine: Scene) -> None:
    assert len((await runs(engine, better(), *[worse()] * 30)).models) == 31
    assert kept(await engine.insights()) == [1, *range(12, 32)]
    await engine.close()
    later = await engine.opened(settings(models={"keep": 2}))
    assert kept(await later.models()) == [1, 30, 31]
    assert kept(await runs(later, worse())) == [1, 31, 32]


@played(settings(ranking={"policy": "ebrank"}))
async def test_a_prior_that_stays_off_says_why_and_since_when(engine: Scene) -> None:
    assert prior_of(await engine.models()) == ("untrained", "no run yet", None)
    assert prior_of(await runs(engine, better())) == ("live", "it is better", START)
    refused = "refused", "it is worse", START + 10.0
    for _ in range(2):
        engine.clock.now += 10.0
        assert prior_of(await runs(engine, worse())) == refused
    assert prior_of(await engine.insights()) == refused
    await engine.close()
    engine.clock.now = START + 1010.0
    later = await engine.opened()
    assert prior_of(await later.models()) == refused
    problem = TrainerError("the trainer failed: no memory")
    for _ in range(2):
        assert prior_of(await runs(later, problem)) == ("failing", str(problem), START + 1010.0)
        engine.clock.now += 10.0
    assert (await runs(later, better())).prior.state == "live"


@played(settings(ranking={"policy": "ebrank"}))
async def test_a_prior_replaced_by_hand_says_so_until_the_newest_is_live(engine: Scene) -> None:
    assert (await runs(engine, better(), better(), better())).prior.state == "live"
    engine.clock.now += 10.0
    for older in (1, 0):
        reason = f"version {older} was made active by hand instead"
        assert prior_of(await engine.activate(older)) == ("refused", reason, START + 10.0)
        engine.clock.now += 10.0
    assert prior_of(await engine.activate(3)) == ("live", "it is better", engine.clock.now)
    await engine.activate(2)
    await engine.close()
    engine.clock.now += 10.0
    later = await engine.opened()
    reason = "version 2 was made active by hand instead"
    assert prior_of(await later.models()) == ("refused", reason, START + 30.0)
    assert prior_of(await runs(later, worse())) == ("refused", "it is worse", START + 30.0)
    assert (await runs(later, better())).prior.state == "live"


@pytest.mark.slow
@played(settings(training={"max_seconds": 0.05}), on=SqliteStore, count=3)
async def test_a_trainer_that_takes_too_long_is_ended(engine: Scene) -> None:
    began = time.monotonic()
    await engine.train()
    await engine._training.finished()
    assert time.monotonic() - began < 20.0
    answer = await engine.models()
    assert answer.training.outcome.startswith("the trainer was ended after 0.05 seconds")
    assert (answer.prior.state, answer.models) == ("failing", [])
    assert trainers() == []
