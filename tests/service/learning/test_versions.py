"""Which version goes live, and who decides."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import msgspec
import pytest

from ebrank.service.api import ModelsResponse
from ebrank.service.core.problems import NotFound
from ebrank.service.engine import Engine
from ebrank.service.learning.fitting import TrainerError, TrainingJob, TrainingResult
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.sqlite import SqliteStore
from tests.service.scenes import START, Clock, better, click, ids, items, play, ranked, settings
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
    answer = await ranked(engine)
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


def worse() -> TrainingResult:
    return msgspec.structs.replace(better(), better=False, reason="it is worse")


async def adopted(engine: Engine, *results: TrainingResult) -> None:
    """Let runs end with these results."""
    for result in results:

        async def run(job: TrainingJob, result: TrainingResult = result) -> TrainingResult:
            return result

        engine._training._run = run
        await engine.train()
        await engine._training.finished()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_old_versions_are_forgotten_but_not_the_active_one(tmp_path: Path, kind: str) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "store")

    async def scene(engine: Engine) -> None:
        await adopted(engine, better(), better(), *[worse()] * 5)
        kept = [model.version for model in (await engine.models()).models]
        assert kept == [1, 2, 5, 6, 7], "the newest, the active one, and the one before it"
        assert engine.version == 2
        await engine.activate(1)
        await adopted(engine, better())
        kept = [model.version for model in (await engine.models()).models]
        assert kept == [2, 6, 7, 8]
        with pytest.raises(NotFound, match="no model 1"):
            await engine.activate(1)

    play(scene, settings(models={"keep": 3}), store=store)
    blocking.run(store.close())


def test_versions_of_a_longer_memory_are_forgotten_at_the_start() -> None:
    store = MemoryStore()

    async def long(engine: Engine) -> None:
        await adopted(engine, better(), *[worse()] * 30)
        assert len((await engine.models()).models) == 31
        shown = [model.version for model in (await engine.insights()).models]
        assert shown == [1, *range(12, 32)]

    async def short(engine: Engine) -> None:
        assert [model.version for model in (await engine.models()).models] == [1, 30, 31]
        await adopted(engine, worse())
        assert [model.version for model in (await engine.models()).models] == [1, 31, 32]

    play(long, store=store)
    play(short, settings(models={"keep": 2}), store=store)


def test_a_prior_that_stays_off_says_why_and_since_when() -> None:
    store, clock = MemoryStore(), Clock()

    async def prior(engine: Engine) -> tuple[str, str, float | None]:
        answer = (await engine.insights()).prior
        assert answer == (await engine.models()).prior
        return answer.state, answer.reason, answer.since

    async def scene(engine: Engine) -> None:
        assert await prior(engine) == ("untrained", "no run yet", None)
        await adopted(engine, better())
        assert await prior(engine) == ("live", "it is better", START)
        clock.now += 10.0
        await adopted(engine, worse())
        clock.now += 10.0
        await adopted(engine, worse())
        assert await prior(engine) == ("refused", "it is worse", START + 10.0)

    async def later(engine: Engine) -> None:
        assert await prior(engine) == ("refused", "it is worse", START + 10.0)

        async def fails(job: TrainingJob) -> TrainingResult:
            raise TrainerError("the trainer failed: no memory")

        engine._training._run = fails
        for _ in range(2):
            clock.now += 10.0
            await engine.train()
            await engine._training.finished()
        since = START + 1010.0
        assert await prior(engine) == ("failing", "the trainer failed: no memory", since)
        await adopted(engine, better())
        assert (await prior(engine))[0] == "live"

    chosen = settings(ranking={"policy": "ebrank"})
    play(scene, chosen, store=store, clock=clock)
    clock.now = START + 1000.0
    play(later, chosen, store=store, clock=clock)


def test_a_prior_replaced_by_hand_says_so_until_the_newest_is_live() -> None:
    store, clock = MemoryStore(), Clock()

    async def scene(engine: Engine) -> None:
        await adopted(engine, better(), better(), better())
        assert (await engine.models()).prior.state == "live"
        clock.now += 10.0
        for older in (1, 0):
            prior = (await engine.activate(older)).prior
            reason = f"version {older} was made active by hand instead"
            assert (prior.state, prior.reason, prior.since) == ("refused", reason, START + 10.0)
            clock.now += 10.0
        prior = (await engine.activate(3)).prior
        assert (prior.state, prior.reason, prior.since) == ("live", "it is better", clock.now)
        await engine.activate(2)

    async def later(engine: Engine) -> None:
        prior = (await engine.models()).prior
        reason = "version 2 was made active by hand instead"
        assert (prior.state, prior.reason, prior.since) == ("refused", reason, START + 30.0)
        await adopted(engine, worse())
        prior = (await engine.models()).prior
        assert (prior.state, prior.reason, prior.since) == ("refused", "it is worse", START + 30.0)
        await adopted(engine, better())
        assert (await engine.models()).prior.state == "live"

    chosen = settings(ranking={"policy": "ebrank"})
    play(scene, chosen, store=store, clock=clock)
    clock.now += 10.0
    play(later, chosen, store=store, clock=clock)


@pytest.mark.slow
def test_a_trainer_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(3))
        began = time.monotonic()
        await engine.train()
        await engine._training.finished()
        assert time.monotonic() - began < 20.0
        answer = await engine.models()
        assert answer.training.outcome.startswith("the trainer was ended after 0.05 seconds")
        assert (answer.prior.state, answer.models) == ("failing", [])

    play(scene, settings(training={"max_seconds": 0.05}), store=store)
    blocking.run(store.close())
    children = [
        child
        for task in Path(f"/proc/{os.getpid()}/task").iterdir()
        for child in (task / "children").read_text().split()
        if b"learning.trainer" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    assert children == []
