"""Any feedback, with restarts and little memory, is counted as a naive model counts it."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ebrank import BehaviorStats, Examination
from ebrank.service.engine import Engine
from ebrank.service.store.memory import MemoryStore
from tests.service.scenes import Clock, click, ids, items, ranked, settings, statuses

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
        self.engine = self.run(Engine.open(self.store, self.chosen, clock=Clock()))
        self.engine._queries.room = self.room

    @rule()
    def restart(self) -> None:
        self.run(self.engine.close())
        self.start()

    @rule(query=st.sampled_from(QUERIES))
    def rank(self, query: str) -> None:
        answer = self.run(ranked(self.engine, query, k=3))
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
