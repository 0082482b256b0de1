"""What the dashboard shows: sums of minutes, quantiles, and a survey of items."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import ebrank
from ebrank.service import api
from ebrank.service.api import ItemIn
from ebrank.service.insight.activity import latency_class, quantile
from ebrank.service.insight.survey import waiting
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from tests.service.scenes import BOTH, START, Scene, better, click, ids, items, played, settings

P = 1.0 / np.log2(np.arange(2, 12))


@played(settings(insights={"new_seconds": 50.0}), start=START - START % 60, count=2)
async def test_minutes_tell_new_items_from_old_ones(engine: Scene) -> None:
    engine.clock.now += 100.0
    await engine.put_items("q", [ItemIn("new", [0.0, 0.0])])
    answer = await engine.ranked()
    await engine.clicked(answer, "new", "i0")
    engine.clock.now += 60.0
    await engine.ranked(k=1)
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


@played(start=START - START % 3600)
async def test_totals_minutes_and_times_survive_a_restart(engine: Scene) -> None:
    """The last feedback before it is known to the minute."""
    began = engine.clock.now
    assert (await engine.insights()).first_item is None
    await engine.put_items("q", items(2))
    engine.clock.now += 100.0
    await engine.put_items("r", items(2))
    answer = await engine.ranked()
    engine.clock.now += 1710.0
    await engine.clicked(answer, "i0")
    await engine.close()
    engine.clock.now += 100.0
    later = await engine.opened()
    await later.ranked()
    view = await later.insights()
    assert view.first_item == began
    assert (view.totals.rankings, view.totals.items, view.totals.queries) == (2, 4, 2)
    assert sum(minute.rankings for minute in view.buckets) == 2
    for hours in (1, 24, 168):
        assert (await later.insights(api.InsightsRequest(hours))).feedback.last == began + 1800.0


@played(
    settings(ranking={"k": 1, "policy": "ebrank:epsilon=100"}, insights={"refresh_seconds": 0.0})
)
async def test_exploration_has_a_cost_and_finds_something_that_stays_found(engine: Scene) -> None:
    """An old item is known to be fair; a newcomer gets its chance, and users love it."""
    await engine.put_items("q", [ItemIn("old", [0.0])])
    for number in range(40):
        answer = await engine.ranked()
        if number % 3 == 0:
            await engine.clicked(answer, "old")
    engine.clock.now += 10.0
    await engine.put_items("q", [ItemIn("new", [0.0])])
    engine.clock.now += 5.0
    answer = await engine.ranked()
    assert ids(answer) == ["new"]
    before = (await engine.insights()).exploration
    assert (before.explored, before.found) == (1, 0)
    assert before.cost == pytest.approx((14 + 1) / (40 + 1 + 5) - 1 / 6)
    for _ in range(30):
        if "new" in ids(answer):
            await engine.clicked(answer, "new")
        engine.clock.now += 1.0
        answer = await engine.ranked()
    after = await engine.insights()
    assert after.exploration.found == 1
    assert after.exploration.explored >= 1
    costs = [entry.cost for entry in await engine.lists()]
    assert after.exploration.cost == pytest.approx(sum(costs))
    shown, listed = after.waiting.first_shown, after.waiting.top_k
    assert (shown.items, shown.happened, shown.seconds) == (2, 2, [0.0, 5.0])
    assert (listed.items, listed.happened, listed.seconds[0]) == (2, 2, 0.0)
    assert listed.seconds[1] > 5.0
    assert listed.still_waiting == [0.5, 0.0]
    [found] = after.found
    assert (found.query, found.item, found.rank_by_relevance) == ("q", "new", 1)
    assert 0 < found.clicks <= found.shown
    await engine.withdraw("q", "new")
    engine.clock.now += 1.0
    withdrawn = await engine.insights()
    assert withdrawn.found == []
    assert after.totals.found == withdrawn.totals.found == 1
    assert sum(bucket.found for bucket in withdrawn.buckets) == withdrawn.exploration.found == 1


@pytest.mark.parametrize("raised", [StoreError, asyncio.CancelledError])
@played(count=2)
async def test_sums_are_stored_once_whatever_becomes_of_a_save(
    engine: Scene, raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save that failed is lost; one that is given up is complete in the store, or lost."""
    stored = engine.store.meta.add

    async def ends(*given: object) -> None:
        if raised is asyncio.CancelledError:
            await stored(*given)
        raise raised

    await engine.start_experiment(api.StartExperimentRequest("t", {"own": "own"}))
    await engine.clicked(await engine.ranked(items=["i0"]), "i0")
    with monkeypatch.context() as patched:
        patched.setattr(engine.store.meta, "add", ends)
        with pytest.raises(raised):
            await engine._activity.save()
    await engine.ranked()
    view = await engine.insights()
    assert view.buckets[0].rankings == view.totals.rankings == 2
    [arm] = (await engine.experiment("t")).arms
    assert (arm.lists, arm.clicks.value) == (1, 1.0)


@played(count=2)
async def test_feedback_that_does_not_count_is_counted_with_its_reason(engine: Scene) -> None:
    assert (await engine.insights()).feedback == api.FeedbackOut(0, 0, {}, None)
    listed = (await engine.ranked()).ranking_id
    good, bad = click("a", listed, "i0"), click("b", listed, "i9")
    await engine.feedback([good, good, bad, bad, click("c", "nowhere", "i0")])
    engine.clock.now += 7.0
    view = await engine.insights()
    reasons = {"unknown_item": 2, "unknown_ranking": 1}
    assert view.feedback == api.FeedbackOut(1, 1, reasons, START)
    [bucket] = view.buckets
    assert (bucket.events, bucket.duplicate, bucket.rejected, bucket.shown) == (1, 1, 3, 2)


@played()
async def test_answers_are_counted_by_route_and_what_the_page_asks_itself_is_not(
    engine: Scene,
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
async def test_sums_of_a_day_come_in_wider_buckets_and_are_kept_for_a_while(engine: Scene) -> None:
    for _ in range(3):
        await engine.ranked()
        engine.clock.now += 7200.0
    hour, day, week = [await engine.insights(api.InsightsRequest(hours)) for hours in (1, 24, 168)]
    assert (hour.bucket_seconds, day.bucket_seconds, week.bucket_seconds) == (60, 600, 3600)
    assert sum(bucket.rankings for bucket in hour.buckets) == 0
    assert [bucket.rankings for bucket in day.buckets] == [1, 1, 1]
    assert all(bucket.start % 600 == 0 for bucket in day.buckets)
    await engine.ranked()
    assert (await engine.insights(api.InsightsRequest(24))).buckets == day.buckets
    engine.clock.now += 60.0
    assert len((await engine.insights(api.InsightsRequest(24))).buckets) == 4


@played(settings(ranking={"policy": "ebrank:epsilon=7"}), on=BOTH, count=2)
async def test_the_overview_describes_the_server(engine: Scene, tmp_path: Path) -> None:
    await engine.ranked()
    await engine.start()
    view = await engine.insights()
    assert [bucket.starts for bucket in view.buckets] == [1]
    system = view.system
    assert (system.version, system.started) == (ebrank.__version__, START)
    assert system.policy.startswith("ebrank:")
    assert "epsilon=7" in system.policy
    if isinstance(engine.store, MemoryStore):
        assert (system.store_bytes, system.free_bytes, system.log_entries) == (None, None, None)
    else:
        files = sum(file.stat().st_size for file in (tmp_path / "store").iterdir())
        assert 0 < (system.store_bytes or 0) <= files + 2**20
        assert (system.free_bytes or 0) > 0
        assert system.log_entries == 1


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_quantiles_are_right_within_a_class(share: float) -> None:
    seconds = np.random.default_rng(0).lognormal(-6, 0.5, size=2000)
    told = quantile(Counter(map(latency_class, seconds)), share)
    assert told == pytest.approx(np.quantile(seconds, share) * 1000, rel=0.15)
    extremes = Counter(map(latency_class, (0.0, 1e9)))
    assert quantile(extremes, 0.5) == pytest.approx(0.05)
    assert (quantile(extremes, 1.0) or 0.0) > 60_000
    assert quantile({}, share) is None


@played(settings(ranking={"k": 2, "policy": "ebrank:bonus=none"}), count=5)
async def test_the_buried_have_a_high_prior_and_are_little_shown(engine: Scene) -> None:
    for _ in range(3):  # two are liked at first sight, the others never seen
        await engine.clicked(await engine.ranked(k=2, explore=False))
    view, insights = await engine.query("q"), await engine.insights()
    unseen = {item.id for item in view.items if item.shown == 0}
    assert len(unseen) == 3
    assert set(view.most_buried) == unseen
    assert [(each.query, each.item) for each in insights.buried] == [
        ("q", name) for name in view.most_buried
    ]
    assert all(each.prior == pytest.approx(1 / 6) for each in insights.buried)


@played(settings(insights={"refresh_seconds": 5.0}), count=2)
async def test_costly_figures_are_kept_for_a_while(engine: Scene) -> None:
    await engine.ranked()
    first = await engine.insights()
    engine.clock.now += 4.0
    await engine.put_items("r", items(2))
    assert (await engine.insights()).waiting == first.waiting
    engine.clock.now += 2.0
    assert (await engine.insights()).waiting != first.waiting


@played(count=20)
async def test_calibration_weighs_items_by_what_their_exposure_can_tell(engine: Scene) -> None:
    assert (await engine.insights()).calibration == []
    for liked in ("i3", "i7", "i3"):
        await engine.clicked(await engine.ranked(k=20), liked)
    engine.clock.now += 60.0
    items = (await engine.query("q")).items
    evidence = np.array([item.exposure + item.alpha + item.beta for item in items])
    clicks = np.array([item.clicks for item in items]) / evidence
    exposure = np.array([item.exposure for item in items]) / evidence
    bins = (await engine.insights()).calibration
    for part, told in zip(np.array_split(np.arange(len(items)), 10), bins, strict=True):
        assert told.rows == len(part)
        assert told.predicted == pytest.approx(np.mean([items[at].prior for at in part]))
        assert told.observed == pytest.approx(clicks[part].sum() / exposure[part].sum())


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
async def test_coverage_and_the_queries_asked_most(engine: Scene) -> None:
    await engine.put_items("r", items(2))
    engine.clock.now += 60.0
    await engine.put_items("r", [ItemIn("new", [0.0, 0.0])])
    for query in ("r", "q", "r"):
        answer = await engine.ranked(query, k=2, explore=False)
    await engine.clicked(answer, ids(answer)[0])
    view = await engine.insights()
    shown = view.coverage.shown
    assert view.coverage == api.Coverage(queries=2, candidates=8, shown=shown, clicked=1, new=1)
    assert 4 <= shown <= 5
    assert view.top_queries == [
        api.TopQuery("r", candidates=3, lists=2, shown=4, clicks=1),
        api.TopQuery("q", candidates=5, lists=1, shown=2, clicks=0),
    ]


# --- trust -----------------------------------------------------------------------------------


UNSCALED = settings(
    ranking={"policy": "ebrank"},
    features={"scaling": "none"},
    insights={"refresh_seconds": 0.0},
)


async def trusted(engine: Scene, given: list[ItemIn], *weights: float) -> list[api.FeatureTrust]:
    """Return how features are trusted once a prior with these weights is live."""
    await engine.put_items("q", given)
    await engine.ranked()
    assert (await engine.insights()).features == [], "nothing was learned yet"
    keys = tuple(f"p{column}" for column in range(len(weights)))
    await engine._adopt(better(*weights, features=keys), against=0)
    engine.clock.now += 1.0
    return (await engine.insights()).features


THIRDS = [
    ItemIn(f"i{i}", {"stars": float(i % 2), "age": float(i), "color": float(i % 3)})
    for i in range(6)
]
EMBEDDED = [
    ItemIn(f"i{i}", {"price": float(i), **{f"bert_{j}": float(i == j) for j in range(8)}})
    for i in range(9)
]
NAMELESS = [ItemIn(f"i{i}", [0.0, float(i)]) for i in range(3)]


@pytest.mark.parametrize(
    ("given", "weights", "expected"),
    [
        (THIRDS, (3.0, -1.0, 0.0), {("age", 1): 0.532, ("stars", 1): 0.468, ("color", 1): 0.0}),
        (EMBEDDED, (1.0,) * 9, {("price", 1): 0.891, ("bert", 8): 0.109}),
        (NAMELESS, (1.0, 1.0), {("2", 1): 1.0, ("1", 1): 0.0}),
    ],
    ids=["by how far scores move", "an embedding is one", "by position"],
)
@played(UNSCALED, on=BOTH)
async def test_features_are_trusted_by_how_far_scores_move_with_them(
    engine: Scene,
    given: list[ItemIn],
    weights: tuple[float, ...],
    expected: dict[tuple[str, int], float],
) -> None:
    told = await trusted(engine, given, *weights)
    assert [(each.name, each.columns) for each in told] == [*expected]
    assert [each.share for each in told] == pytest.approx([*expected.values()], abs=1e-3)


@played(settings(insights={"bucket_seconds": 2.0}))
async def test_a_steady_rate_is_a_level_line(scene: Scene) -> None:
    """Bins of a chart are whole spans of the store, so that none has more of them."""
    await scene.put_items("q", items(3))
    for _ in range(450):
        scene.clock.now += 1.0
        await scene.ranked()
    seen = await scene.insights()
    assert seen.bucket_seconds > 2.0
    assert {bucket.rankings for bucket in seen.buckets[1:-1]} == {seen.bucket_seconds}
