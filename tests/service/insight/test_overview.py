from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ebrank
from ebrank.service import api
from ebrank.service.api import ItemIn
from ebrank.service.engine import Engine
from ebrank.service.store import open as open_store
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import RankingEntry
from tests.service.faulty import FaultyStore
from tests.service.scenes import START, Clock, click, ids, items, play, played, ranked, settings
from tests.service.store.blocking import run

P = 1.0 / np.log2(np.arange(2, 12))


def test_minutes_tell_new_items_from_old_ones() -> None:
    clock = Clock(START - START % 60)

    async def scene(engine: Engine) -> tuple[api.Insights, list[str]]:
        await engine.put_items("q", items(2))
        clock.now += 100.0
        await engine.put_items("q", [ItemIn("new", [0.0, 0.0])])
        answer = await ranked(engine)
        await engine.feedback(
            [click("a", answer.ranking_id, "new"), click("b", answer.ranking_id, "i0")]
        )
        clock.now += 60.0
        await ranked(engine, k=1)
        return await engine.insights(), ids(answer)

    told, listed = play(scene, settings(insights={"new_seconds": 50.0}), clock=clock)
    first, second = told.buckets
    assert second.start - first.start == 60.0
    assert (first.rankings, first.clicks, first.clicks_new, first.clicks_old) == (1, 2, 1, 1)
    place = listed.index("new")
    assert first.exposure_new == pytest.approx(P[place])
    assert first.exposure_old == pytest.approx(P[:3].sum() - P[place])
    assert (second.exposure_new, second.exposure_old) == (0.0, 1.0)
    assert first.latency_p50_ms is not None
    assert first.latency_p99_ms is not None
    assert 0 < first.latency_p50_ms <= first.latency_p99_ms
    assert told.totals == api.Totals(rankings=2, events=2, clicks=2, items=3, queries=1, found=0)
    assert told.shadow is None


def test_the_time_of_the_first_item_is_kept() -> None:
    store, clock = MemoryStore(), Clock()

    async def first(engine: Engine) -> float | None:
        before = (await engine.insights()).first_item
        for name in ("a", "b"):
            await engine.put_items(name, items(2))
            clock.now += 100.0
        return before

    async def second(engine: Engine) -> float | None:
        return (await engine.insights()).first_item

    assert play(first, store=store, clock=clock) is None
    assert play(second, store=store, clock=clock) == START


def test_totals_and_minutes_survive_a_restart() -> None:
    store, clock = MemoryStore(), Clock()

    async def first(engine: Engine) -> None:
        await engine.put_items("q", items(2))
        await ranked(engine)

    async def second(engine: Engine) -> api.Insights:
        await ranked(engine)
        return await engine.insights()

    play(first, store=store, clock=clock)
    told = play(second, store=store, clock=clock)
    assert (told.totals.rankings, told.totals.items, told.totals.queries) == (2, 2, 1)
    assert [minute.rankings for minute in told.buckets] == [2]


def test_exploration_has_a_cost_and_finds_something() -> None:
    """An old item is known to be fair; a newcomer gets its chance, and users love it."""
    store, clock = MemoryStore(), Clock()

    async def scene(engine: Engine) -> tuple[api.Insights, api.Insights]:
        await engine.put_items("q", [ItemIn("old", [0.0])])
        for number in range(40):
            answer = await ranked(engine)
            if number % 3 == 0:
                await engine.feedback([click(f"o{number}", answer.ranking_id, "old")])
        clock.now += 10.0
        await engine.put_items("q", [ItemIn("new", [0.0])])
        clock.now += 5.0
        answer = await ranked(engine)
        assert ids(answer) == ["new"]
        before = await engine.insights()
        for number in range(30):
            if "new" in ids(answer):
                await engine.feedback([click(f"n{number}", answer.ranking_id, "new")])
            clock.now += 1.0
            answer = await ranked(engine)
        return before, await engine.insights()

    chosen = settings(
        ranking={"k": 1, "policy": "ebrank:epsilon=100"}, insights={"refresh_seconds": 0.0}
    )
    before, after = play(scene, chosen, store=store, clock=clock)
    assert (before.exploration.explored, before.exploration.found) == (1, 0)
    old = (14 + 1) / (40 + 1 + 5)
    assert before.exploration.cost == pytest.approx(old - 1 / 6)
    assert after.exploration.found == 1
    assert after.exploration.explored >= 1
    costs = [entry.cost for entry in run(store.log.entries()) if isinstance(entry, RankingEntry)]
    assert after.exploration.cost == pytest.approx(sum(costs))
    shown, earned = after.waiting.first_shown, after.waiting.top_k
    assert (shown.items, shown.happened, shown.seconds) == (2, 2, [0.0, 5.0])
    assert (earned.items, earned.happened) == (2, 2)
    assert earned.seconds[0] == 0.0
    assert earned.seconds[1] > 5.0
    assert earned.still_waiting == [0.5, 0.0]


@played(on=FaultyStore, count=2)
async def test_sums_the_store_does_not_take_are_kept(engine: Engine, store: FaultyStore) -> None:
    await ranked(engine)
    store.full = True
    with pytest.raises(StoreError):
        await engine._activity.save()
    store.full = False
    assert (await engine.insights()).buckets[0].rankings == 1


def test_what_was_found_stays_found() -> None:
    """An item that exploration showed first is liked, stands in its list, and is withdrawn."""
    clock = Clock()

    async def scene(engine: Engine) -> tuple[api.Insights, api.Insights]:
        await engine.put_items("q", [ItemIn("old", [0.0])])
        for number in range(40):
            answer = await ranked(engine)
            if number % 3 == 0:
                await engine.feedback([click(f"o{number}", answer.ranking_id, "old")])
        await engine.put_items("q", [ItemIn("new", [0.0])])
        for number in range(30):
            clock.now += 1.0
            answer = await ranked(engine)
            if "new" in ids(answer):
                await engine.feedback([click(f"n{number}", answer.ranking_id, "new")])
        before = await engine.insights()
        await engine.withdraw("q", "new")
        clock.now += 1.0
        return before, await engine.insights()

    chosen = settings(
        ranking={"k": 1, "policy": "ebrank:epsilon=100"}, insights={"refresh_seconds": 0.0}
    )
    before, after = play(scene, chosen, clock=clock)
    [found] = before.found
    assert (found.query, found.item, found.rank_by_relevance) == ("q", "new", 1)
    assert 0 < found.clicks <= found.shown
    assert after.found == []
    assert before.totals.found == after.totals.found == 1
    assert sum(bucket.found for bucket in after.buckets) == after.exploration.found == 1


def test_feedback_that_does_not_count_is_counted_with_its_reason() -> None:
    clock = Clock()

    async def scene(engine: Engine) -> api.Insights:
        await engine.put_items("q", items(2))
        assert (await engine.insights()).feedback == api.FeedbackOut(0, 0, {}, None)
        listed = (await ranked(engine)).ranking_id
        known, unknown = click("a", listed, "i0"), click("b", listed, "i9")
        await engine.feedback([known, known, unknown, unknown, click("c", "nowhere", "i0")])
        clock.now += 7.0
        return await engine.insights()

    told = play(scene, clock=clock)
    rejected = {"unknown_item": 2, "unknown_ranking": 1}
    assert told.feedback == api.FeedbackOut(1, 1, rejected, START)
    [bucket] = told.buckets
    assert (bucket.events, bucket.duplicate, bucket.rejected, bucket.shown) == (1, 1, 3, 2)


def test_the_last_feedback_before_a_restart_is_known_to_the_minute() -> None:
    store, clock = MemoryStore(), Clock(START - START % 3600)

    async def first(engine: Engine) -> None:
        await engine.put_items("q", items(2))
        listed = (await ranked(engine)).ranking_id
        clock.now += 1810.0
        await engine.feedback([click("a", listed, "i0")])

    async def second(engine: Engine) -> list[float | None]:
        return [(await engine.insights(hours)).feedback.last for hours in (1, 24, 168)]

    play(first, store=store, clock=clock)
    began = clock.now - 1810.0
    clock.now += 100.0
    assert play(second, store=store, clock=clock) == [began + 1800.0] * 3


def test_answers_are_counted_by_route_and_what_the_page_asks_itself_is_not() -> None:
    async def scene(engine: Engine) -> api.Insights:
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
        return await engine.insights()

    told = play(scene)
    assert told.routes == [
        api.RouteOut("/v1/feedback", 1, 0, 1),
        api.RouteOut("/v1/insights", 1, 0, 1),
        api.RouteOut("/v1/rank", 2, 1, 0),
        api.RouteOut("", 1, 1, 0),
    ]
    [bucket] = told.buckets
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


def test_short_buckets_grow_with_the_time_they_show() -> None:
    clock = Clock(START - START % 3600)

    async def scene(engine: Engine) -> list[float]:
        await engine.put_items("q", items(2))
        widths = []
        for seconds in (10.0, 600.0, 1800.0):
            clock.now += seconds
            widths.append((await engine.insights()).bucket_seconds)
        return widths

    assert play(scene, settings(insights={"bucket_seconds": 2.0}), clock=clock) == [2.0, 5.0, 15.0]


def test_the_overview_describes_the_server(tmp_path: Path) -> None:
    clock = Clock()

    async def scene(engine: Engine) -> api.SystemOut:
        await engine.put_items("q", items(2))
        await ranked(engine)
        return (await engine.insights()).system

    chosen = settings(ranking={"policy": "ebrank:epsilon=7"})
    memory = play(scene, chosen, clock=clock)
    assert memory.version == ebrank.__version__
    assert memory.policy.startswith("ebrank:")
    assert "epsilon=7" in memory.policy
    assert memory.started == START
    assert (memory.store_bytes, memory.free_bytes, memory.log_entries) == (None, None, None)

    async def on_disk() -> api.SystemOut:
        async with open_store(str(tmp_path / "store")) as store:
            engine = await Engine.open(store, chosen, clock=clock, timer=clock)
            try:
                return await scene(engine)
            finally:
                await engine.close()

    disk = run(on_disk())
    files = sum(file.stat().st_size for file in (tmp_path / "store").iterdir())
    assert disk.store_bytes is not None
    assert 0 < disk.store_bytes <= files + 2**20
    assert (disk.free_bytes or 0) > 0
    assert disk.log_entries == 1


def test_a_start_is_marked() -> None:
    clock = Clock(START - START % 60)

    async def scene(engine: Engine) -> api.Insights:
        await engine.start()
        return await engine.insights()

    assert [bucket.starts for bucket in play(scene, clock=clock).buckets] == [1]
