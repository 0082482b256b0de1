from __future__ import annotations

import numpy as np
import pytest

from ebrank.service import api
from ebrank.service.api import ItemIn
from ebrank.service.engine import Engine
from ebrank.service.insight.survey import Survey, calibration, waiting
from tests.service.scenes import Clock, clicked, ids, items, played, ranked, settings


@played(settings(ranking={"k": 2, "policy": "ebrank:bonus=none"}), count=5)
async def test_the_buried_are_those_that_promise_much_and_are_little_shown(
    engine: Engine,
) -> None:
    for _ in range(3):  # two are liked at first sight, the others never seen
        await clicked(engine, await ranked(engine, k=2, explore=False))
    view, insights = await engine.query("q"), await engine.insights()
    unseen = {item.id for item in view.items if item.shown == 0}
    assert len(unseen) == 3
    assert set(view.most_buried) == unseen
    assert [(each.query, each.item) for each in insights.buried] == [
        ("q", name) for name in view.most_buried
    ]
    assert all(each.prior == pytest.approx(1 / 6) for each in insights.buried)
    assert len(view.most_promising) == 5
    highest = max(view.items, key=lambda item: item.interval[1])
    assert view.most_promising[0] == highest.id


@played(settings(insights={"refresh_seconds": 5.0}), count=2)
async def test_costly_figures_are_kept_for_a_while(engine: Engine, clock: Clock) -> None:
    await ranked(engine)
    first = await engine.insights()
    clock.now += 4.0
    await engine.put_items("r", items(2))
    assert (await engine.insights()).waiting == first.waiting
    clock.now += 2.0
    assert (await engine.insights()).waiting != first.waiting


def test_calibration_compares_bins_of_predictions_with_click_rates() -> None:
    found = Survey(
        predicted=[np.array([0.3, 0.1]), np.array([0.2] * 18)],
        clicks=[np.array([3.0, 1.0]), np.zeros(18)],
        exposure=[np.array([4.0, 2.0]), np.ones(18)],
    )
    bins = calibration(found)
    assert [one.rows for one in bins] == [2] * 10
    assert bins[0].predicted == pytest.approx(0.15)
    assert bins[0].observed == pytest.approx(1 / 3)
    assert bins[-1].observed == pytest.approx(3 / 5)
    assert calibration(Survey()) == []


def test_items_still_waiting_count_as_waiting() -> None:
    told = waiting([np.array([[1.0, np.nan, 3.0], [5.0, 2.0, 5.0]])])
    assert (told.items, told.happened, told.median) == (3, 2, 3.0)
    assert told.seconds == [1.0, 3.0]
    assert told.still_waiting == pytest.approx([2 / 3, 0.0])
    nobody = waiting([])
    assert (nobody.items, nobody.median, nobody.seconds) == (0, None, [])
    many = waiting([np.stack([np.arange(1000.0), np.full(1000, 2000.0)])])
    assert len(many.seconds) <= 200
    assert (many.seconds[0], many.seconds[-1]) == (0.0, 999.0)


@played(settings(insights={"new_seconds": 50.0}), count=5)
async def test_coverage_and_the_queries_asked_most(engine: Engine, clock: Clock) -> None:
    await engine.put_items("r", items(2))
    clock.now += 60.0
    await engine.put_items("r", [ItemIn("new", [0.0, 0.0])])
    for query in ("r", "q", "r"):
        answer = await ranked(engine, query, k=2, explore=False)
    await clicked(engine, answer, ids(answer)[0])
    view = await engine.insights()
    shown = view.coverage.shown
    assert view.coverage == api.Coverage(queries=2, candidates=8, shown=shown, clicked=1, new=1)
    assert 4 <= shown <= 5
    assert view.top_queries == [
        api.TopQuery("r", candidates=3, lists=2, shown=4, clicks=1),
        api.TopQuery("q", candidates=5, lists=1, shown=2, clicks=0),
    ]
