"""Experiments: who gets which arm, what its lists earn, and what is not compared."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebrank.addons.exposures import exposures
from ebrank.service.api import (
    ChangeExperimentRequest,
    ExperimentOut,
    RankResponse,
    StartExperimentRequest,
)
from ebrank.service.core import experiments
from ebrank.service.core.experiments import CELLS, dealt
from ebrank.service.core.models import fitted_parts
from ebrank.service.core.problems import NotFound, Problem
from ebrank.service.insight.readout import readout
from ebrank.service.store.base import StoreError
from ebrank.service.store.records import ArmSums
from ebrank.service.store.sqlite import SqliteStore
from ebrank.statistics.sequential import Moments, difference
from tests.service.scenes import DAY, Scene, better, click, ids, items, played, settings

QUERIES = [f"q{number}" for number in range(60)]
ORDER = [f"i{at}" for at in range(6)]
THREE = {"own": "own", "auto": "auto", "greedy": "auto:bonus=none"}
TWO = {"a": "auto", "b": "auto:bonus=none"}
ALL_A: dict[str, Any] = {"arms": TWO, "shares": {"a": 0.99999, "b": 0.00001}}
"""An experiment in which every query is in the arm `a`."""


async def learned(engine: Scene) -> None:
    """Let a training run begin and end."""
    await engine.train()
    await engine._training.finished()


async def liked(engine: Scene) -> None:
    for _ in range(30):
        await engine.clicked(await engine.ranked(), "i0")


async def filled(engine: Scene) -> None:
    for query in QUERIES:
        await engine.put_items(query, items(6))


async def started(engine: Scene, **given: Any) -> ExperimentOut:  # noqa: ANN401 (any field)
    return await engine.start_experiment(
        StartExperimentRequest(**{"name": "t", "arms": THREE} | given)
    )


def arm_of(answer: RankResponse) -> str:
    return answer.arm if isinstance(answer.arm, str) else ""


def test_a_ramp_moves_no_more_cells_than_it_must() -> None:
    rng = np.random.default_rng(1)
    cells = [""] * CELLS
    for _ in range(30):
        names = list("abcd")[: rng.integers(1, 5)]
        shares = dict(zip(names, rng.dirichlet(np.ones(len(names))) * rng.random(), strict=True))
        after = dealt(cells, shares)
        wanted = {arm: round(share * CELLS) for arm, share in shares.items()}
        assert {arm: after.count(arm) for arm in shares} == wanted
        before = Counter(cells)
        stayed = Counter(old for old, new in zip(cells, after, strict=True) if old == new)
        for arm in shares:
            assert stayed[arm] == min(before[arm], wanted[arm])
        cells = after


@played()
async def test_each_query_has_an_arm_and_every_list_and_click_counts_there(engine: Scene) -> None:
    await filled(engine)
    await started(engine)
    assert arm_of(await engine.ranked("q0")) == "", "the caller has no order of its own"
    arms, lists, clicks = dict[str, str](), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    rng = np.random.default_rng(5)
    for turn in range(600):
        query = QUERIES[rng.integers(60)]
        answer = await engine.ranked(query, items=ORDER, k=3)
        arm = arms.setdefault(query, arm_of(answer))
        assert arm_of(answer) == arm, "a query stays in its arm"
        if arm == "t:own":
            assert ids(answer) == ORDER[:3]
        name = arm.partition(":")[2]
        lists[name, query] += 1
        if turn % 3 == 0:
            clicks[name, query] += await engine.clicked(answer, ids(answer)[0])
    assert {entry.arm for entry in (await engine.lists())[1:]} == {"t:own", "t:auto", "t:greedy"}
    shown, moments = await engine.experiment("t"), {}
    for each in shown.arms:
        mine = [key for key in lists if key[0] == each.name]
        of = moments[each.name] = Moments.of(
            [clicks[key] for key in mine], [lists[key] for key in mine]
        )
        assert (each.lists, each.units) == (of.weight, of.units)
        assert each.clicks.value == pytest.approx(of.mean)
    estimate, low, _ = difference(moments["auto"], moments["own"])
    compared = shown.arms[1].difference["clicks"]
    assert compared.value == pytest.approx(estimate)
    assert (compared.low is None) == (low == -np.inf)
    assert any("30 effective units" in note for note in shown.notes) == (low == -np.inf)
    rows = await exposures(engine.store, "t")
    assert len(rows) == 600
    assert sum(row.clicks for row in rows) == clicks.total()
    assert await engine.replays()


@played(settings(events={"behaviors": ["click=0.25", "purchase"], "negative": ["hide"]}))
async def test_outcomes_are_weighted_and_what_is_new_is_found_once(engine: Scene) -> None:
    await engine.put_items("q", items(4))
    await started(engine, **ALL_A)

    async def figures() -> list[float | None]:
        arm = (await engine.experiment("t")).arms[0]
        return [arm.clicks.value, arm.outcome.value, arm.found.value]

    answer = await engine.ranked()
    first, second = ids(answer)[:2]
    await engine.clicked(answer, first)
    assert await figures() == [1.0, 0.25, 1.0]
    await engine.feedback([click("p", answer.ranking_id, first, "purchase")])
    assert await figures() == [1.0, 1.0, 1.0]
    await engine.feedback([click("h", answer.ranking_id, first, "hide")])
    assert await figures() == [0.0, 0.0, 1.0]
    engine.clock.now += 2 * DAY
    later = await engine.ranked()
    await engine.clicked(later, second)
    assert await figures() == [0.5, 0.125, 0.5], "no longer new"


@played(settings(ranking={"window": 60.0, "k": 2}), count=6)
async def test_a_list_and_its_pages_count_once(engine: Scene) -> None:
    await started(engine, unit="user", arms={"a": "auto", "b": "ebrank"})
    assert arm_of(await engine.ranked()) == "", "nobody's list"
    first = await engine.ranked(user="ann")
    for offset in (0, 2):
        page = await engine.ranked(user="ann", offset=offset)
        assert arm_of(page) == arm_of(first)
    await engine.clicked(page, ids(page)[0])
    shown = await engine.experiment("t")
    assert sum(arm.lists for arm in shown.arms) == 1
    assert sum(arm.units for arm in shown.arms) == 1
    assert [arm.clicks.value for arm in shown.arms if arm.lists] == [1.0]
    assert any("list the same queries" in note for note in shown.notes)


def test_an_experiment_is_not_changed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "MOST_STRETCHES", 3)
    text = experiments.started("{}", StartExperimentRequest("t", TWO), 0.0)
    for share in (0.4, 0.3):
        request = ChangeExperimentRequest(dict.fromkeys(TWO, share))
        text = experiments.changed(text, "t", request, 1.0)
    assert experiments.changed(text, "t", request, 1.0) == text, "nothing changes"
    with pytest.raises(Problem, match="changed 2 times"):
        experiments.changed(text, "t", ChangeExperimentRequest(dict.fromkeys(TWO, 0.5)), 1.0)


def test_experiments_of_an_earlier_version_are_read() -> None:
    text = experiments.started("{}", StartExperimentRequest("t", TWO), 0.0)
    old = text[:-1].replace('"unit":"query"', '"unit":"query","evidence":"apart"')
    by_caller = old[1:].replace('"t"', '"u"').replace('"unit":"query"', '"unit":"caller"')
    assert experiments.read(f"{old},{by_caller}}}") == experiments.read(text)
    arms = ["t:a", "t:a:2", "u:a", "t:interleaved"]
    policies = [experiments.policy_of(arm, experiments.read(text)) for arm in arms]
    assert policies == ["auto", "", "", ""]


@pytest.mark.parametrize("lost", [0.0, 0.05])
def test_lost_lists_are_seen_where_every_cell_has_some(lost: float) -> None:
    request = StartExperimentRequest("t", {"a": "auto", "b": "ebrank"}, unit="user")
    experiment = experiments.read(experiments.started("{}", request, 0.0))["t"]
    lists = np.random.default_rng(8).poisson(50.0, CELLS)
    kept = {"a": 1.0, "b": 1.0 - lost}
    sums = [
        ArmSums("t", 1, arm, cell, round(number * kept[arm]), 10, 10.0, 0)
        for cell, (arm, number) in enumerate(zip(experiment.stretch.cells, lists, strict=True))
    ]
    shown = readout(experiment, sums, waits=False)
    assert [arm.units for arm in shown.arms] == [CELLS // 2] * 2, "which says nothing"
    assert shown.sample_ratio_p is not None
    assert (shown.sample_ratio_p < 0.01) == bool(lost)
    assert any("shares of units or lists" in note for note in shown.notes) == bool(lost)


@played(settings(ranking={"exploration_budget": 0.1, "window": 60.0}), count=4)
async def test_an_arm_of_the_callers_order_alone_takes_all_and_teaches(engine: Scene) -> None:
    """It looks before it leaps: users see what they would have seen, and the store learns."""
    await started(engine, arms={"look": "own"})
    order = ["i3", "i1", "i0"]
    for number in range(20):
        answer = await engine.ranked(items=order, explain=True)
        assert (ids(answer), arm_of(answer)) == (order, "t:look")
        assert not any(item.explored for item in answer.items), "it is not our exploration"
        await engine.clicked(answer, "i0")
        page = await engine.ranked(items=[*order, "i2"], k=2, offset=2, user=f"u{number}")
        assert (ids(page), [item.rank for item in page.items]) == (["i0", "i2"], [3, 4])
        again = await engine.ranked(items=[*order, "i2"], k=4, user=f"u{number}")
        assert ids(again) == [*order, "i2"], "what was seen counts once"
    assert (await engine.counts()) == {
        "i0": (40, 20), "i1": (40, 0), "i2": (20, 0), "i3": (40, 0),
    }  # fmt: skip
    told = await engine.insights()
    assert told.exploration.explored == told.exploration.cost == 0
    assert told.budget is not None
    assert (told.budget.lists, told.budget.held_out_lists) == (0, 0)
    [arm] = (await engine.experiment("t")).arms
    assert (arm.share, arm.lists, arm.difference) == (1.0, 40, {})
    await engine.stop_experiment("t")
    assert ids(await engine.ranked())[0] == "i0"
    assert await engine.replays()


@played()
async def test_only_comparable_stretches_are_read(engine: Scene) -> None:
    await filled(engine)
    await started(engine, shares=dict.fromkeys(THREE, 0.1))

    async def served() -> dict[str, str]:
        return {query: arm_of(await engine.ranked(query, items=ORDER)) for query in QUERIES}

    async def ramped(**given: Any) -> ExperimentOut:  # noqa: ANN401 (any field)
        return await engine.change_experiment("t", ChangeExperimentRequest(**given))

    before = await served()
    shown = await ramped(shares=dict.fromkeys(THREE, 0.3))
    assert shown.left_out == 0
    after = await served()
    moved = [query for query in QUERIES if before[query] and after[query] != before[query]]
    assert moved == []
    lists = [entry.arm for entry in await engine.lists()]
    assert any(arm and arm.endswith(":2") for arm in lists), "the log tells stretches apart"
    both = sum(map(bool, before.values())) + sum(map(bool, after.values()))
    assert sum(arm.lists for arm in (await engine.experiment("t")).arms) == both
    assert len(await exposures(engine.store, "t")) == both
    shown = await ramped(shares=dict.fromkeys(THREE, 0.3) | {"own": 0.1})
    assert (shown.left_out, sum(arm.lists for arm in shown.arms)) == (2, 0)
    assert await exposures(engine.store, "t") == [], "an arm's rows are of lists that are compared"
    assert any("2 of 3 stretches are left out" in note for note in shown.notes)
    other = dict(reversed((THREE | {"greedy": "ebrank"}).items()))
    shown = await ramped(arms=other, shares=dict(zip(other, (0.1, 0.2, 0.3), strict=True)))
    assert (shown.stretches, shown.left_out) == (4, 3)
    assert {arm.name: arm.share for arm in shown.arms} == dict(
        zip(THREE, (0.3, 0.2, 0.1), strict=True)
    )
    assert (await ramped(arms=THREE | {"greedy": "ebrank"})).stretches == 4, "nothing changed"


@played(settings(ranking={"policy": "ebrank"}, training={"min_rows": 1}), count=6)
async def test_an_arm_with_other_parts_waits_for_a_prior_of_its_own(engine: Scene) -> None:
    await liked(engine)
    await engine._adopt(better(1.0, 0.0, features=("p0", "p1")), 0)
    shown = await started(engine, arms={"a": "ebrank:bonus=none", "b": "auto"})
    assert shown.state == "waiting"
    assert arm_of(await engine.ranked()) == ""
    assert any("prior of its own" in note for note in shown.notes)
    assert engine._training.due(), "a run is asked for"
    assert (await engine.opened())._training.due(), "after a restart, too"
    await learned(engine)
    assert (await engine.experiment("t")).state == "running", (await engine.models()).training
    assert arm_of(await engine.ranked()) != ""
    rankers = [arm.ranker for arm in engine.resources.active.deployment.arms.values()]
    assert None not in [ranker.state_ for ranker in rankers]
    assert (rankers[0].policy.choices.bonus, rankers[1].policy.choices.family) == ("none", "shape")
    assert list(await engine.store.models.arms(engine.version)) == [fitted_parts("auto")]
    again = await engine.opened()
    assert again.resources.active.deployment.arms["b"].fit == fitted_parts("auto")


@played(settings(training={"min_rows": 1}), count=6)
async def test_an_arm_that_cannot_be_fitted_keeps_nobody_else_from_learning(
    engine: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)  # as if it were not installed
    await liked(engine)
    await engine._adopt(better(1.0, 0.0, features=("p0", "p1")), 0)
    await started(engine, arms={"a": "auto", "b": "auto:learner=trees"})
    await learned(engine)
    models = await engine.models()
    assert (models.active, models.prior.state) == (2, "live")
    assert "; the arm auto:learner=trees cannot be fitted (" in models.training.outcome
    assert "pip install" in models.training.outcome
    assert (await engine.experiment("t")).state == "waiting"


@pytest.fixture
def hopeful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A policy with a bonus of one's own."""
    code = """from dataclasses import dataclass
from ebrank.model.bonus import Bonus

@dataclass(frozen=True)
class Hopeful(Bonus):
    name, help = "hopeful", "Hopes."

    @staticmethod
    def value(spread):
        return 2.0 * spread
"""
    (tmp_path / "hopeful.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return "ebrank:bonus=hopeful:Hopeful"


@played(
    lambda hopeful: settings(ranking={"policy": hopeful}, training={"min_rows": 1}),
    count=6,
)
async def test_a_part_of_ones_own_locks_neither_arms_nor_other_settings_out(
    engine: Scene, hopeful: str
) -> None:
    await liked(engine)
    await learned(engine)
    arms = {"a": "ebrank", "b": "ebrank:bonus=none"}
    assert (await started(engine, arms=arms)).state == "running"
    again = await engine.opened()
    assert arm_of(await again.ranked()) in ("t:a", "t:b")
    assert again.resources.active.deployment.arms["a"].ranker.state_ is not None
    plain = await engine.opened(settings(ranking={"policy": "ebrank"}, training={"min_rows": 1}))
    prior = (await plain.models()).prior
    assert (prior.state, "does not name" in prior.reason) == ("unused", True)
    await learned(plain)
    assert ((await plain.models()).prior.state, plain.version) == ("live", 2)


@played(count=4)
async def test_an_arm_that_this_version_does_not_know_keeps_no_server_from_starting(
    engine: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    await started(engine, **ALL_A)

    def of_a_later_version(text: str) -> str:
        return text.replace('"auto"', '"auto:telepathy=7"')

    await engine.store.meta.change("experiments", of_a_later_version)
    again = await engine.opened()
    assert arm_of(await again.ranked()) == ""
    assert (await again.experiment("t")).state == "waiting"
    assert "arm a of experiment t: auto has no parameter 'telepathy'" in caplog.text
    assert (await again.train()).started


@played(count=4)
async def test_arms_are_those_of_the_last_change_whatever_takes_long(
    engine: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, compiled = threading.Event(), threading.Event()

    def slow(*_: object, whole: bool) -> None:
        begun.set()
        compiled.wait(10.0)

    with monkeypatch.context() as patched:
        patched.setattr("ebrank.service.core.models.warm_up", slow)
        start = asyncio.create_task(started(engine, **ALL_A))
        await asyncio.to_thread(begun.wait, 10.0)
        stop = asyncio.create_task(engine.stop_experiment("t"))
        await asyncio.wait([stop], timeout=0.2)
        compiled.set()
        await asyncio.gather(start, stop)
    assert arm_of(await engine.ranked()) == "", "it was stopped last"


@played(pair=True, count=4)
async def test_other_servers_follow_as_soon_as_they_can(
    engine: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await started(engine, **ALL_A)
    other, active = engine.other, engine.other.resources.active

    async def fails(version: int) -> Any:  # noqa: ANN401 (never returns)
        raise StoreError("no connection")

    with monkeypatch.context() as patched:
        patched.setattr(active, "load", fails)
        with pytest.raises(StoreError):
            await other._follow_experiments()
    await other._follow_experiments()
    assert arm_of(await other.ranked()) == arm_of(await engine.ranked()) == "t:a"
    await other._activity.save()
    assert (await engine.experiment("t")).arms[0].lists == 2
    early = await active.load(active.model.version)
    await engine.stop_experiment("t")
    await other._follow_experiments()
    assert arm_of(await other.ranked()) == ""
    active.use(early)  # a version that went live meanwhile
    await other._follow_experiments()
    assert arm_of(await other.ranked()) == ""


@played(count=4)
async def test_the_dashboard_adds_up_an_experiment_now_and_then(engine: Scene) -> None:
    async def shown() -> list[int]:
        experiment = (await engine.insights()).experiment
        return [] if experiment is None else [arm.lists for arm in experiment.arms]

    assert await shown() == []
    await started(engine, **ALL_A)
    assert await shown() == [0, 0]
    await engine.ranked()
    await engine._activity.save()
    assert await shown() == [0, 0], "every viewer asks every few seconds"
    engine.timer.now += 5.0
    assert await shown() == [1, 0]
    await engine.change_experiment("t", ChangeExperimentRequest(shares={"a": 0.5, "b": 0.5}))
    assert (await engine.insights()).experiment == await engine.experiment("t"), "at once"
    await engine.stop_experiment("t")
    assert await shown() == []


def test_what_cannot_be_compared_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(text: str, **given: Any) -> str:  # noqa: ANN401 (any field)
        request = StartExperimentRequest(**{"name": "t", "arms": THREE} | given)
        return experiments.started(text, request, 1.0)

    text = experiments.stopped(begun("{}", name="old"), "old", 2.0)
    for told, given in (
        ("an arm alone", {"arms": {"a": "auto"}}),
        ("for all traffic", {"arms": {"a": "own"}, "shares": {"a": 0.5}}),
        (r"arm a: .*nonsense", {"arms": {"a": "nonsense", "b": "auto"}}),
        ("parts of your own", {"arms": {"a": "ebrank:bonus=os:Path", "b": "auto"}}),
        ("a share for each arm", {"shares": {"own": 0.5}}),
        ("at most 1 together", {"shares": dict.fromkeys(THREE, 0.5)}),
        ("there is an experiment 'old' already", {"name": "old"}),
    ):
        with pytest.raises(Problem, match=told):
            begun(text, **given)
    with pytest.raises(Problem, match="has ended"):
        experiments.stopped(text, "old", 3.0)
    with pytest.raises(NotFound, match="there are old"):
        experiments.named(experiments.read(text), "t")
    with pytest.raises(Problem, match="'t' is running"):
        begun(begun(text), name="other")
    with pytest.raises(Problem, match="arms keep their names"):
        experiments.changed(begun(text), "t", ChangeExperimentRequest(arms=TWO), 2.0)
    monkeypatch.setattr(experiments, "MOST_EXPERIMENTS", 1)
    with pytest.raises(Problem, match="a store keeps 1 experiments"):
        begun(text)


@played(on=SqliteStore, count=3)
async def test_a_restart_goes_on_with_the_experiment(engine: Scene) -> None:
    await started(engine, **ALL_A)
    answer = await engine.ranked()
    await engine.close()
    later = await engine.opened()
    await later.clicked(answer, ids(answer)[0])
    arm = (await later.experiment("t")).arms[0]
    assert (arm.lists, arm.clicks.value) == (1, 1.0)
