"""Exploration within its share: a budget that holds at all times, and a guard that stops it."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

from ebrank import Examination
from ebrank.service.api import StartExperimentRequest
from ebrank.service.core.problems import NotFound
from ebrank.service.serving.stages.budget import GUARD, HELD_OUT, held_out, new_token
from tests.service.scenes import DAY, Scene, ids, played, settings

EXPLORES = {"policy": "ebrank:epsilon=1000,estimator=exposure", "k": 5}
SHARE = 0.05


async def visited(engine: Scene, lists: int) -> list[float]:
    """Serve lists to users who click everything; return what the day may have cost after each."""
    spent = []
    for _ in range(lists):
        answer = await engine.ranked()
        await engine.clicked(answer)
        spent.append(engine.stages.budget.out().spent)
    return spent


@played(settings(ranking={**EXPLORES, "exploration_budget": SHARE}), count=30)
async def test_the_budget_holds_after_every_list_and_is_used(engine: Scene) -> None:
    spent = await visited(engine, 300)
    assert max(spent) <= SHARE
    assert spent[-1] > 0.5 * SHARE
    budget = engine.stages.budget
    assert budget.refused > 100
    listed = await engine.lists()
    assert 0 < sum(any(entry.explored) for entry in listed) < 150
    cost, p = sum(entry.cost for entry in listed), Examination()(np.arange(1, 6))
    by_relevance = cost + sum(float(p @ entry.relevance) for entry in listed)
    assert 0.0 < cost < SHARE * by_relevance, "what it costs by what is believed is less"
    engine.clock.now += DAY  # what was not spent is gone
    assert (await visited(engine, 1)) == [0.0]


@played(settings(ranking=EXPLORES), count=30)
async def test_without_a_limit_nothing_changes_and_nothing_is_stored(engine: Scene) -> None:
    await visited(engine, 300)
    assert any(any(entry.explored) for entry in await engine.lists())
    assert (await engine.insights()).budget is None
    assert GUARD not in await engine.store.meta.all()
    with pytest.raises(NotFound, match=r"exploration_budget. is off"):
        await engine.resume_exploration()


@played(settings(ranking={**EXPLORES, "exploration_budget": SHARE, "window": 60.0}), count=30)
async def test_clicks_are_compared_by_the_draw_in_the_id(engine: Scene) -> None:
    expected = dict.fromkeys(
        (
            f"{arm} {name}"
            for arm in ("exploring", "held_out")
            for name in ("lists", "clicks", "squares")
        ),
        0,
    )
    for user in range(120):
        answer = await engine.ranked(user=str(user))
        again = await engine.ranked(user=str(user))  # a refresh of the same draw
        arm = "held_out" if held_out(answer.ranking_id) else "exploring"
        await engine.clicked(answer, ids(answer)[0])
        await engine.clicked(again, *ids(again)[:2])
        await engine.clicked(again, ids(again)[0])
        for name, number in (("lists", 1), ("clicks", 2), ("squares", 4)):
            expected[f"{arm} {name}"] += number
    await engine.stages.budget.save()
    assert json.loads(await engine.store.meta.get(GUARD)) == {
        k: v for k, v in expected.items() if v
    }
    for entry in await engine.lists():
        if entry.continues is None:  # a refresh shows what was there, as relevance changes
            assert not (held_out(entry.id) and any(entry.explored))


def test_lists_are_held_out_at_the_stated_share() -> None:
    drawn = sum(held_out(f"5c3f-{new_token()}") for _ in range(20_000))
    assert drawn == pytest.approx(HELD_OUT * 20_000, abs=160)


@played(settings(ranking={**EXPLORES, "exploration_budget": SHARE}), count=30, pair=True)
async def test_the_guard_stops_all_servers_until_somebody_resumes(
    engine: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    lost = {"exploring lists": 20_000, "exploring clicks": 8_000, "exploring squares": 8_000}
    kept = {"held_out lists": 5_000, "held_out clicks": 2_500, "held_out squares": 2_500}
    await engine.store.meta.add(GUARD, lost | kept)
    budget, other = engine.stages.budget, engine.other.stages.budget
    with caplog.at_level(logging.ERROR, "ebrank.service"):
        await budget.save()
    assert "it costs more than 5 % of clicks (0.4000 per list, 0.5000 without)" in caplog.text
    await other.save()
    shown = (await engine.insights()).budget
    assert shown is not None
    assert shown.stopped
    assert (shown.high or 0.0) < 0.0
    for each in (engine, engine.other, await engine.opened()):
        await visited(each, 40)
    assert not any(any(entry.explored) for entry in await engine.lists())
    assert not (await engine.resume_exploration()).stopped
    await other.save()
    await visited(engine.other, 100)
    assert any(any(entry.explored) for entry in await engine.lists())


@played(settings(ranking={**EXPLORES, "exploration_budget": SHARE}))
async def test_the_guard_lets_go_what_keeps_the_budget(engine: Scene) -> None:
    sums = {"exploring lists": 20_000, "exploring clicks": 9_600, "exploring squares": 9_600}
    kept = {"held_out lists": 5_000, "held_out clicks": 2_500, "held_out squares": 2_500}
    await engine.store.meta.add(GUARD, sums | kept)
    await engine.stages.budget.save()
    assert not engine.stages.budget.stopped


@played(settings(ranking={**EXPLORES, "exploration_budget": SHARE}), count=30)
async def test_clicks_on_lists_that_are_not_compared_do_not_count(engine: Scene) -> None:
    arms = {"own": "own", "greedy": "auto:bonus=none"}
    await engine.start_experiment(StartExperimentRequest("t", arms, unit="user"))
    for user in map(str, range(40)):
        answer = await engine.ranked(user=user, items=["i0", "i1", "i2"])
        if answer.arm == "t:own":
            engine.resources.recent.clear()  # as after a restart
            await engine.clicked(answer)
    await engine.stages.budget.save()
    sums = json.loads(await engine.store.meta.get(GUARD) or "{}")
    assert not sums.get("exploring clicks")
    assert not sums.get("held_out clicks")
