"""The rules of feedback, on the in-memory store; every event is judged alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ebrank import BehaviorStats, Examination
from ebrank.service import api
from ebrank.service.api import EventIn
from ebrank.service.serving.lists import RankingIds, number_of, time_of
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from tests.service.faulty import FaultyStore
from tests.service.scenes import START, Clock, Scene, click, ids, items, played, settings, statuses


@played(count=3)
async def test_each_bad_event_is_rejected_alone_with_its_reason(engine: Scene) -> None:
    ranking = (await engine.ranked()).ranking_id
    long, guessed = "x" * 300, ranking[:-16] + "0" * 16  # of the same number, with another tag
    bad: dict[str, EventIn | api.Malformed] = {
        "unknown_ranking: ": EventIn("a", "nonsense", "i0", "click"),
        "unknown_ranking": EventIn("a", guessed, "i0", "click"),
        "unknown_item": EventIn("b", ranking, "i9", "click"),
        "unknown_type": EventIn("c", ranking, "i0", "hover"),
        "future": EventIn("d", ranking, "i0", "click", START + 301),
        "malformed: time": EventIn("e", ranking, "i0", "click", float("inf")),
        "too_long: event_id": EventIn(long, ranking, "i0", "click"),
        "too_long: item": EventIn("f", ranking, long, "click"),
        "malformed: event_id": EventIn("", ranking, "i0", "click"),
        "malformed: Expected": api.Malformed("Expected `object`"),
    }
    good = EventIn("good", ranking, "i0", "click", START + 299)
    answer = await engine.feedback([*bad.values(), good])
    assert (answer.accepted, answer.rejected) == (1, len(bad))
    for (reason, _), result in zip(bad.items(), answer.results, strict=False):
        assert result.status == "rejected"
        assert (result.reason or "").startswith(reason)
    assert [result.index for result in answer.results] == list(range(len(bad) + 1))
    assert answer.results[-1].reason is None


@pytest.mark.parametrize("user", [None, "ann"])
@played(settings(store={"retention_seconds": 100.0}), count=2)
async def test_events_of_old_rankings_have_expired_before_and_after_the_roll_up(
    engine: Scene, user: str | None
) -> None:
    """Those of a refresh with the first list: its event may be rolled up before a duplicate."""
    first = (await engine.ranked(user=user)).ranking_id
    engine.clock.now += 50.0
    again = (await engine.ranked(user=user)).ranking_id if user else first
    engine.clock.now += 49.0
    assert (await engine.feedback([click("e1", again, "i0")])).accepted == 1
    engine.clock.now += 2.0
    await engine._roll_up()  # the list stays: another server's clock may be behind
    assert await engine.store.log.ranking(first) is not None
    for rolled_up in (False, True):
        if rolled_up:
            engine.clock.now += 100.0
            await engine._roll_up()
            assert await engine.store.log.ranking(first) is None
            engine.resources.recent.pop(again)
        assert await engine.rejected(click(f"late{rolled_up}", again, "i1")) == ["expired"]
    view = (await engine.query("q")).items
    assert [(item.shown, item.clicks) for item in view] == [(1, 1), (1, 0)]


@played(count=1)
async def test_a_query_that_feedback_reads_is_known_from_then_on(engine: Scene) -> None:
    """Not from when the list was served: what is not stored is not known of that time."""
    answer = await engine.ranked()
    engine.clock.now += 500.0
    later = await engine.opened()
    assert await later.clicked(answer, "i0") == 1
    assert (await later._items.query("q", engine.clock.now + 9.0)).since == START + 500.0


@played(settings(examination={"curve": (1.0, 0.25)}), count=2)
async def test_the_curve_may_change_later(engine: Scene) -> None:
    """Counts are by rank: what they are worth is up to the curve of today."""
    answer = await engine.ranked()
    later = await engine.opened(settings(examination={"curve": (1.0, 0.5)}))
    second = ids(answer)[1]
    await later.clicked(answer, second)
    item = next(item for item in (await later.query("q")).items if item.id == second)
    assert (item.exposure, item.weighted_clicks) == (0.5, 2.0)


@played()
async def test_times_are_numbers_or_dates(engine: Scene) -> None:
    noon = datetime(2023, 11, 14, 12, tzinfo=UTC)
    await engine.put_items("q", items(3))
    ranking = (await engine.ranked()).ranking_id
    times: list[float | datetime | None] = [noon, 12.5, None]
    await engine.feedback(
        [EventIn(f"e{at}", ranking, f"i{at}", "click", time) for at, time in enumerate(times)]
    )
    logged = [entry.time for entry in await engine.events()]
    assert logged == [noon.timestamp(), 12.5, START]


@played(count=5)
async def test_recent_lists_are_bounded_by_their_bytes(engine: Scene) -> None:
    """Those forgotten are read from the log again."""
    cache = engine.resources.recent
    await engine.ranked(k=5)
    cache.room = 2 * cache.size
    lists = [(await engine.ranked(k=5)).ranking_id for _ in range(4)]
    assert len(cache) == 2
    answer = await engine.feedback([click(f"e{at}", name, "i0") for at, name in enumerate(lists)])
    assert answer.accepted == 4
    assert len(cache) == 2


@pytest.mark.parametrize("impressions", ["served", "confirmed"])
@played(lambda impressions: settings(events={"impressions": impressions}), on=FaultyStore, count=5)
async def test_a_batch_is_one_transaction_and_counts_whole_or_not_at_all(
    engine: Scene, impressions: str
) -> None:
    answer = await engine.ranked()
    batch = [
        click(f"{kind} {item}", answer.ranking_id, item, kind)
        for item in ids(answer)
        for kind in ("impression", "click")
    ]
    before, engine.store.writes = await engine.query("q"), 0
    engine.store.full = True
    with pytest.raises(StoreError):
        await engine.feedback(batch)
    assert await engine.query("q") == before
    engine.store.full = False
    assert (await engine.feedback(batch)).accepted == 10
    assert engine.store.writes == 2
    view = (await engine.query("q")).items
    assert {(item.shown, item.clicks) for item in view} == {(1, 1)}


def test_numbers_grow_whatever_the_clock_does() -> None:
    ids = RankingIds(after=1000.0)
    numbers = [number_of(ids.new(time)) or 0 for time in (1001.0, 1001.0, 500.0, 1002.0)]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 1000 * 1_000_000
    again = RankingIds(after=1002.0)
    assert (number_of(again.new(0.0)) or 0) > numbers[-1]


@pytest.mark.parametrize("name", ["", "7", "x-0123456789abcdef", "7-0123", "7-0123456789ABCDEF"])
def test_other_texts_are_no_names(name: str) -> None:
    assert number_of(name) is None
    assert time_of(name) is None


CURVE = (1.0, 0.0, 0.5)  # the second rank is never examined
QUERIES = ("q", "r")
EVENTS = st.tuples(
    st.integers(0, 12),  # an event's id: drawn again and again
    st.integers(-3, -1),  # one of the last lists
    st.sampled_from(["i0", "i1", "i2", "i3", "i9"]),
    st.sampled_from(["click", "click", "impression", "buy", "hover"]),
)


class Feedback(RuleBasedStateMachine):
    """The engine beside a model that keeps everything in sets."""

    @initialize(confirmed=st.booleans(), packs=st.booleans())
    def begin(self, confirmed: bool, packs: bool) -> None:
        self.runner = asyncio.Runner()
        self.store = MemoryStore()
        self.confirmed = confirmed
        self.room = 1000 if packs else 0  # one query at a time, the other packed or not there
        self.chosen = settings(
            examination={"curve": CURVE},
            events={"other": ["buy"], "impressions": "confirmed" if confirmed else "served"},
        )
        self.seen: set[tuple[str, str]] = set()
        self.counted: set[tuple[str, str, str]] = set()
        self.impressions: set[tuple[str, str]] = set()
        self.lists: list[tuple[str, str, list[str]]] = []
        self.shown: Counter[tuple[str, str]] = Counter()
        self.clicks: Counter[tuple[str, str]] = Counter()
        self.start()
        for query in QUERIES:
            self.run(self.engine.put_items(query, items(4)))
            self.rank(query)

    def run(self, call: Any) -> Any:  # noqa: ANN401 (whatever the call returns)
        return self.runner.run(call)

    def start(self) -> None:
        self.engine = self.run(Scene.open(self.store, self.chosen, clock=Clock()))
        self.engine._queries.room = self.room

    @rule()
    def restart(self) -> None:
        self.run(self.engine.close())
        self.start()

    @rule(query=st.sampled_from(QUERIES))
    def rank(self, query: str) -> None:
        answer = self.run(self.engine.ranked(query, k=3))
        self.lists.append((answer.ranking_id, query, ids(answer)))
        for p, item in zip(CURVE, ids(answer), strict=True):
            self.shown[query, item] += int(p > 0 and not self.confirmed)

    @rule(batch=st.lists(EVENTS, max_size=8))
    def feed(self, batch: list[tuple[int, int, str, str]]) -> None:
        events, expected = [], []
        for number, at, item, kind in batch:
            ranking, query, listed = self.lists[max(at, -len(self.lists))]
            events.append(click(f"e{number}", ranking, item, kind))
            expected.append(self.judged(f"e{number}", ranking, query, listed, item, kind))
        assert statuses(self.run(self.engine.feedback(events))) == expected

    def judged(
        self, event: str, ranking: str, query: str, listed: list[str], item: str, kind: str
    ) -> str:
        p = CURVE[listed.index(item)] if item in listed else 0.0
        if item not in listed or kind == "hover":
            return "rejected"
        if (query, event) in self.seen or (ranking, item, kind) in self.counted:
            return "duplicate"
        self.seen.add((query, event))
        self.counted.add((ranking, item, kind))
        self.clicks[query, item] += kind == "click" and p > 0
        if self.confirmed and kind != "buy" and p and (ranking, item) not in self.impressions:
            self.impressions.add((ranking, item))
            self.shown[query, item] += 1
        return "accepted"

    @invariant()
    def counters_are_those_of_the_model(self) -> None:
        if not hasattr(self, "engine"):
            return
        for query in QUERIES:
            view = self.run(self.engine.query(query))
            for item in view.items:
                assert item.shown == self.shown[query, item.id]
                assert item.clicks == self.clicks[query, item.id] <= item.shown
            state = self.run(self.store.items.load(query))
            sums = BehaviorStats(state.counts).sums(Examination(curve=CURVE))
            np.testing.assert_array_equal(
                [item.weighted_clicks for item in view.items], sums.weighted_clicks
            )
            np.testing.assert_array_equal([item.exposure for item in view.items], sums.exposure)

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.run(self.engine.close())
            self.runner.close()


TestFeedback = pytest.mark.slow(Feedback.TestCase)
TestFeedback.settings = hypothesis_settings(max_examples=25, stateful_step_count=12)
