from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ebrank
from ebrank.service import api
from ebrank.service.api import ItemIn
from ebrank.service.engine import Engine
from ebrank.service.store.base import Store, StoreError
from ebrank.service.store.memory import MemoryStore
from tests.service.faulty import FaultyStore
from tests.service.scenes import (
    BOTH,
    START,
    Clock,
    Opened,
    click,
    clicked,
    ids,
    items,
    lists_of,
    played,
    ranked,
    settings,
)

P = 1.0 / np.log2(np.arange(2, 12))


@played(settings(insights={"new_seconds": 50.0}), start=START - START % 60, count=2)
async def test_minutes_tell_new_items_from_old_ones(engine: Engine, clock: Clock) -> None:
    clock.now += 100.0
    await engine.put_items("q", [ItemIn("new", [0.0, 0.0])])
    answer = await ranked(engine)
    await clicked(engine, answer, "new", "i0")
    clock.now += 60.0
    await ranked(engine, k=1)
    view = await engine.insights()
    first, second = view.buckets
    assert second.start - first.start == 60.0
    assert (first.rankings, first.clicks, first.clicks_new, first.clicks_old) == (1, 2, 1, 1)
    place = ids(answer).index("new")
    assert first.exposure_new == pytest.approx(P[place])
    assert first.exposure_old == pytest.approx(P[:3].sum() - P[place])
    assert (second.exposure_new, second.exposure_old) == (0.0, 1.0)
    assert 0 < (first.latency_p50_ms or 0) <= (first.latency_p99_ms or 0)
    assert view.totals == api.Totals(rankings=2, events=2, clicks=2, items=3, queries=1, found=0)
    assert view.shadow is None


@played(start=START - START % 3600)
async def test_totals_minutes_and_times_survive_a_restart(
    engine: Engine, clock: Clock, opened: Opened
) -> None:
    """The last feedback before it is known to the minute."""
    began = clock.now
    assert (await engine.insights()).first_item is None
    await engine.put_items("q", items(2))
    clock.now += 100.0
    await engine.put_items("r", items(2))
    answer = await ranked(engine)
    clock.now += 1710.0
    await clicked(engine, answer, "i0")
    await engine.close()
    clock.now += 100.0
    later = await opened()
    await ranked(later)
    view = await later.insights()
    assert view.first_item == began
    assert (view.totals.rankings, view.totals.items, view.totals.queries) == (2, 4, 2)
    assert sum(minute.rankings for minute in view.buckets) == 2
    for hours in (1, 24, 168):
        assert (await later.insights(hours)).feedback.last == began + 1800.0


@played(
    settings(ranking={"k": 1, "policy": "ebrank:epsilon=100"}, insights={"refresh_seconds": 0.0})
)
async def test_exploration_has_a_cost_and_finds_something_that_stays_found(
    engine: Engine, store: MemoryStore, clock: Clock
) -> None:
    """An old item is known to be fair; a newcomer gets its chance, and users love it."""
    await engine.put_items("q", [ItemIn("old", [0.0])])
    for number in range(40):
        answer = await ranked(engine)
        if number % 3 == 0:
            await clicked(engine, answer, "old")
    clock.now += 10.0
    await engine.put_items("q", [ItemIn("new", [0.0])])
    clock.now += 5.0
    answer = await ranked(engine)
    assert ids(answer) == ["new"]
    before = (await engine.insights()).exploration
    assert (before.explored, before.found) == (1, 0)
    assert before.cost == pytest.approx((14 + 1) / (40 + 1 + 5) - 1 / 6)
    for _ in range(30):
        if "new" in ids(answer):
            await clicked(engine, answer, "new")
        clock.now += 1.0
        answer = await ranked(engine)
    after = await engine.insights()
    assert after.exploration.found == 1
    assert after.exploration.explored >= 1
    costs = [entry.cost for entry in await lists_of(store)]
    assert after.exploration.cost == pytest.approx(sum(costs))
    shown, earned = after.waiting.first_shown, after.waiting.top_k
    assert (shown.items, shown.happened, shown.seconds) == (2, 2, [0.0, 5.0])
    assert (earned.items, earned.happened, earned.seconds[0]) == (2, 2, 0.0)
    assert earned.seconds[1] > 5.0
    assert earned.still_waiting == [0.5, 0.0]
    [found] = after.found
    assert (found.query, found.item, found.rank_by_relevance) == ("q", "new", 1)
    assert 0 < found.clicks <= found.shown
    await engine.withdraw("q", "new")
    clock.now += 1.0
    withdrawn = await engine.insights()
    assert withdrawn.found == []
    assert after.totals.found == withdrawn.totals.found == 1
    assert sum(bucket.found for bucket in withdrawn.buckets) == withdrawn.exploration.found == 1


@played(on=FaultyStore, count=2)
async def test_sums_the_store_does_not_take_are_kept(engine: Engine, store: FaultyStore) -> None:
    await ranked(engine)
    store.full = True
    with pytest.raises(StoreError):
        await engine._activity.save()
    store.full = False
    assert (await engine.insights()).buckets[0].rankings == 1


@played(count=2)
async def test_feedback_that_does_not_count_is_counted_with_its_reason(
    engine: Engine, clock: Clock
) -> None:
    assert (await engine.insights()).feedback == api.FeedbackOut(0, 0, {}, None)
    listed = (await ranked(engine)).ranking_id
    good, bad = click("a", listed, "i0"), click("b", listed, "i9")
    await engine.feedback([good, good, bad, bad, click("c", "nowhere", "i0")])
    clock.now += 7.0
    view = await engine.insights()
    reasons = {"unknown_item": 2, "unknown_ranking": 1}
    assert view.feedback == api.FeedbackOut(1, 1, reasons, START)
    [bucket] = view.buckets
    assert (bucket.events, bucket.duplicate, bucket.rejected, bucket.shown) == (1, 1, 3, 2)


@played()
async def test_answers_are_counted_by_route_and_what_the_page_asks_itself_is_not(
    engine: Engine,
) -> None:
    for route, status in (
        ("/v1/rank", 200),
        ("/v1/rank", 404),
        ("/v1/feedback", 500),
        ("/v1/insights", 200),
        ("/v1/insights", 503),
        ("/readyz", 503),  # while it starts
        ("/readyz", 200),
        ("", 404),
    ):
        engine.answered(route, status)
    view = await engine.insights()
    assert view.routes == [
        api.RouteOut("/v1/feedback", 1, 0, 1),
        api.RouteOut("/v1/insights", 1, 0, 1),
        api.RouteOut("/v1/rank", 2, 1, 0),
        api.RouteOut("", 1, 1, 0),
    ]
    [bucket] = view.buckets
    assert (bucket.refused, bucket.failed) == (2, 2)


@played(start=START - START % 86400, count=2)
async def test_sums_of_a_day_come_in_wider_buckets_and_are_kept_for_a_while(
    engine: Engine, clock: Clock
) -> None:
    for _ in range(3):
        await ranked(engine)
        clock.now += 7200.0
    hour, day, week = [await engine.insights(hours) for hours in (1, 24, 168)]
    assert (hour.bucket_seconds, day.bucket_seconds, week.bucket_seconds) == (60, 600, 3600)
    assert sum(bucket.rankings for bucket in hour.buckets) == 0
    assert [bucket.rankings for bucket in day.buckets] == [1, 1, 1]
    assert all(bucket.start % 600 == 0 for bucket in day.buckets)
    await ranked(engine)
    assert (await engine.insights(24)).buckets == day.buckets
    clock.now += 60.0
    assert len((await engine.insights(24)).buckets) == 4


@played(settings(insights={"bucket_seconds": 2.0}), start=START - START % 3600, count=2)
async def test_short_buckets_grow_with_the_time_they_show(engine: Engine, clock: Clock) -> None:
    for seconds, width in ((10.0, 2.0), (600.0, 5.0), (1800.0, 15.0)):
        clock.now += seconds
        assert (await engine.insights()).bucket_seconds == width


@played(settings(ranking={"policy": "ebrank:epsilon=7"}), on=BOTH, count=2)
async def test_the_overview_describes_the_server(
    engine: Engine, store: Store, tmp_path: Path
) -> None:
    await engine.start()
    await ranked(engine)
    view = await engine.insights()
    assert [bucket.starts for bucket in view.buckets] == [1]
    system = view.system
    assert (system.version, system.started) == (ebrank.__version__, START)
    assert system.policy.startswith("ebrank:")
    assert "epsilon=7" in system.policy
    if isinstance(store, MemoryStore):
        assert (system.store_bytes, system.free_bytes, system.log_entries) == (None, None, None)
    else:
        files = sum(file.stat().st_size for file in (tmp_path / "store").iterdir())
        assert 0 < (system.store_bytes or 0) <= files + 2**20
        assert (system.free_bytes or 0) > 0
        assert system.log_entries == 1
