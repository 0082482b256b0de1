"""Training: a process that may be killed, and versions that only get better."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from unittest.mock import Mock

import msgspec
import numpy as np
import pytest

from ebrank import BehaviorStats, Examination
from ebrank.model.policy import model_file
from ebrank.model.policy.scaling import Scaling
from ebrank.service.api import Insights, ItemIn, ModelsResponse
from ebrank.service.core import models
from ebrank.service.core.problems import NotFound
from ebrank.service.learning import fitting as trainer
from ebrank.service.learning.fitting import TrainerError, TrainingJob, TrainingResult
from ebrank.service.store.sqlite import SqliteStore
from tests.service.scenes import BOTH, START, Scene, better, ids, items, played, settings, trainers

CURVE = Examination()(np.arange(1, 21))
QUICK = settings(training={"every_seconds": 0, "after_events": 0})


async def lived(engine: Scene, queries: int = 30, sessions: int = 10, count: int = 8) -> None:
    """Let users click what the first feature likes."""
    rng = np.random.default_rng(1)
    for query in range(queries):
        features, name = rng.random((count, 2)), f"q{query}"
        rows = [ItemIn(f"i{at}", row.tolist()) for at, row in enumerate(features)]
        await engine.put_items(name, rows)
        for _ in range(sessions):
            answer = await engine.ranked(name, k=min(count, 20))
            chosen = [
                item
                for p, item in zip(CURVE, ids(answer), strict=False)
                if rng.random() < p * features[int(item[1:]), 0]
            ]
            if chosen:
                await engine.clicked(answer, *chosen)


async def trained(engine: Scene) -> ModelsResponse:
    """Let a run end; return the versions then."""
    assert (await engine.train()).started
    await engine._training.finished()
    return await engine.models()


@pytest.mark.slow
@played(QUICK, on=SqliteStore)
async def test_a_model_is_fitted_in_a_process_of_its_own_and_goes_live(engine: Scene) -> None:
    await lived(engine)
    before = {item.id: item.alpha for item in (await engine.query("q0")).items}
    assert len(set(before.values())) == 1
    answer = await trained(engine)
    assert answer.active == 1
    assert "went live" in answer.training.outcome
    [version] = answer.models
    assert (version.active, version.activated) == (True, True)
    assert (version.validation_loss or 9.0) < (version.previous_loss or 0.0)
    view = await engine.query("q0")
    assert view.model == 1
    # α is the library's: the model file, per-query scaling, the prior
    state = await engine.store.items.load("q0")
    document = await engine.store.models.document(1)
    assert state is not None
    assert document is not None
    ranker = model_file.from_bytes(document, "model")
    assert ranker.scaling == Scaling("query")
    nobody = BehaviorStats.zeros(len(state.ids))
    expected = ranker.rank(state.features, nobody).candidates.prior_mean.tolist()
    assert [item.prior for item in view.items] == expected
    # and so it is of a few of the candidates, in whatever order they are named
    some = await engine.ranked("q0", items=["i7", "i2"], explain=True)
    prior = {item.id: item.prior for item in view.items}
    assert {item.id: item.prior for item in some.items} == {n: prior[n] for n in ("i2", "i7")}
    await engine.put_items("new", [ItemIn("bad", [0.0, 0.5]), ItemIn("good", [1.0, 0.5])])
    assert ids(await engine.ranked("new")) == ["good", "bad"]
    assert (await engine.activate(0)).active == 0
    assert {item.alpha for item in (await engine.query("q0")).items} == set(before.values())
    assert (await engine.activate(1)).active == await engine.store.models.active() == 1


@pytest.mark.parametrize("scaling", ["query", "global", "none"])
@played(lambda scaling: settings(features={"scaling": scaling}))
async def test_a_model_says_how_features_are_scaled(engine: Scene, scaling: str) -> None:
    await lived(engine)
    await trained(engine)
    ranker = model_file.from_bytes(await engine.store.models.document(1) or b"", "model")
    assert ranker.scaling is not None
    assert ranker.scaling.kind == scaling
    assert (ranker.scaling.low is not None) == (scaling == "global")


@played(QUICK)
async def test_a_run_on_no_evidence_changes_nothing(engine: Scene) -> None:
    """Neither before anybody clicked, nor a second time on the same clicks."""
    await engine.put_items("q", [ItemIn(f"i{at}", [at / 30, 0.5]) for at in range(30)])
    await engine.ranked(k=30)
    answer = await trained(engine)
    assert (answer.active, answer.models) == (0, [])
    assert answer.training.outcome == "no new version: users have done nothing that counts yet"
    assert answer.prior.state == "untrained"
    await lived(engine, queries=12)
    for _ in range(2):
        answer = await trained(engine)
        assert (answer.active, len(answer.models)) == (1, 1)
    assert answer.training.outcome == "no new version: nothing has changed since the last run"
    assert answer.prior.state == "live"
    await engine.activate(0)
    assert (await trained(engine)).active == 2, "compared with another version, it may go live"


@played(QUICK)
async def test_a_model_that_is_worse_stays_off(engine: Scene) -> None:
    await lived(engine)
    assert (await trained(engine)).active == 1
    await engine.close()
    later = await engine.opened(settings(ranking={"policy": "auto:ridge=1e6"}))  # uses no feature
    answer = await trained(later)
    assert answer.active == await engine.store.models.active() == 1
    worse = answer.models[1]
    assert not worse.activated
    assert "worse than" in worse.reason
    assert "stays off" in answer.training.outcome
    assert (worse.validation_loss or 0.0) > (worse.previous_loss or 9.0)
    assert (await later.activate(2)).active == 2  # unless somebody insists


@played()
async def test_too_little_to_learn_from_is_told(engine: Scene) -> None:
    assert "0 items were shown, 20 are needed" in (await trained(engine)).training.outcome
    await lived(engine, queries=1, sessions=1)
    answer = await trained(engine)
    assert "8 items were shown" in answer.training.outcome
    assert (answer.active, answer.models) == (0, [])


@played(QUICK)
async def test_one_query_is_enough_if_it_has_items(engine: Scene) -> None:
    """A feed has one query: then items, not queries, train or judge."""
    await lived(engine, queries=1, sessions=60, count=60)
    assert (await trained(engine)).active == 1


@pytest.mark.slow
@played(QUICK, on=SqliteStore)
async def test_a_killed_trainer_changes_nothing(engine: Scene) -> None:
    await lived(engine, queries=12)
    assert (await engine.train()).started
    assert not (await engine.train()).started
    assert await killed_trainer()
    await engine._training.finished()
    answer = await engine.models()
    assert "the trainer failed" in answer.training.outcome
    assert (answer.active, answer.models) == (0, [])
    await engine.ranked("q0")
    assert (await trained(engine)).active == 1


async def killed_trainer() -> bool:
    """Kill the trainer, which is the only child process that runs it."""
    for _ in range(500):
        for child in trainers():
            os.kill(child, signal.SIGKILL)
            return True
        await asyncio.sleep(0.01)
    return False


class Killed(BaseException):
    """The end of a process."""


@pytest.mark.slow
@played(QUICK, on=SqliteStore)
async def test_a_server_killed_between_adding_and_activating_has_a_model_to_serve(
    engine: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model and its going live are one transaction: what comes after may be lost."""
    await lived(engine, queries=12)
    fitted = await trainer.in_process(str(engine.store.url), TrainingJob(active=0))
    with monkeypatch.context() as patched:
        patched.setattr(models, "load", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            await engine._versions.adopt(fitted, against=0)
    await engine.close()
    assert (await (await engine.opened()).ranked("q0")).model == 1


@played(settings(training={"every_seconds": 500, "after_events": 2}))
async def test_training_starts_by_itself_after_events_or_time(engine: Scene) -> None:
    due = engine._training.due
    assert not due()
    engine.clock.now += 1000.0
    assert not due()  # nothing new to learn
    await engine.put_items("q", [ItemIn(f"i{n}", [float(n)]) for n in range(3)])
    answer = await engine.ranked()
    await engine.clicked(answer, "i0")
    assert due()
    engine._training.start(0)
    await engine._training.finished()
    assert not due()
    await engine.clicked(answer, "i1")
    assert (await engine.models()).training.next_events == 1
    assert not due()
    await engine.clicked(answer, "i2")
    assert due()


@played(settings(training={"every_seconds": 0, "after_events": 4, "after_growth": 0.5}))
async def test_runs_grow_rarer_as_more_is_known(engine: Scene) -> None:
    await engine.put_items("q", [ItemIn("a", [0.0]), ItemIn("b", [1.0])])
    needed = []
    for _ in range(4):
        needed.append(engine._training.out().next_events)
        for _ in range(needed[-1] or 0):
            await engine.clicked(await engine.ranked(), "a")
        assert engine._training.due()
        await trained(engine)
    assert needed == [4, 4, 4, 6]  # four, or half of those before: 4, 8, 12


@played(QUICK)
async def test_a_model_of_another_family_is_not_used(
    engine: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    await lived(engine)
    assert (await trained(engine)).active == 1
    await engine.close()
    training = {"every_seconds": 0, "after_events": 0}
    papers = await engine.opened(settings(ranking={"policy": "ebrank"}, training=training))
    said = "model 1 of the store is of the family shape"
    assert said in caplog.text
    prior = (await papers.insights()).prior
    assert (prior.state, prior.reason[: len(said)], prior.since) == ("unused", said, START)
    view = await papers.query("q0")
    assert all(item.prior == pytest.approx(1 / 6) for item in view.items)
    assert (await trained(papers)).active == 2
    assert len({item.prior for item in (await papers.query("q0")).items}) > 1


# --- which version goes live, and who decides ----------------------------------------------------


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
