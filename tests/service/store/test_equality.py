"""Random histories: what a store counts is a plain sum of its log.

The plain model below is as dumb as can be: it keeps the whole history for ever, and adds it up from
the start each time it is asked.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ebrank.evidence.behaviors import NEGATIVE
from ebrank.service.ops.replay import replay
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import EventEntry, NewItem, Operation, RankingEntry
from ebrank.testing.histories import BEHAVIORS, counts, event, first_shown
from tests.service.store.blocking import Blocking, run

pytestmark = pytest.mark.slow

ITEMS = "abcdef"
QUERIES = ("q", "p")


def plain_counts(history: list[Operation], query: str, item: str) -> dict[tuple[int, int], int]:
    """Return the counts of an item by outcome and rank, from the whole history."""
    outcomes: dict[tuple[str, int], int] = {}  # the best of each impression, by list and rank
    negated: set[tuple[str, int]] = set()
    shown: Counter[int] = Counter()
    for entry in history:
        if entry.query != query:
            continue
        if isinstance(entry, RankingEntry):
            if entry.counted and item in entry.items:
                shown[entry.items.index(item) + 1] += 1
        elif entry.item == item:
            shown[entry.rank] += entry.shows
            key = entry.ranking_id, entry.rank
            outcome = BEHAVIORS.get(entry.type, 0)
            outcomes[key] = max(outcomes.get(key, 0), outcome)
            if outcome == NEGATIVE:
                negated.add(key)
    counts = Counter({(0, rank): count for rank, count in shown.items() if count})
    kept = (key for key, outcome in outcomes.items() if outcome and key not in negated)
    counts.update((outcomes[key], key[1]) for key in kept)
    return dict(counts)


def plain_first(history: list[Operation], query: str, item: str) -> float | None:
    """Return when an item was first shown, from the whole history."""
    for entry in history:
        if isinstance(entry, RankingEntry):
            if entry.query == query and entry.counted and item in entry.items:
                return entry.time
        elif entry.query == query and entry.shows and entry.item == item:
            return entry.received
    return None


class Histories(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.store = Blocking(MemoryStore())
        self.history: list[Operation] = []
        self.rankings: list[RankingEntry] = []
        self.seen: set[tuple[str, ...]] = set()
        self.shown: set[tuple[str, ...]] = set()
        self.time = 100.0
        for query in QUERIES:
            self.store.items.put(query, [NewItem(name, (0.5,)) for name in ITEMS], self.time)

    def write(self, entries: list[Operation]) -> list[str]:
        return [one.status for one in self.store.log.write(entries).written]

    @rule(query=st.sampled_from(QUERIES), name=st.sampled_from(ITEMS))
    def withdraw(self, query: str, name: str) -> None:
        self.store.items.withdraw(query, name, self.time)

    @rule(
        query=st.sampled_from(QUERIES),
        order=st.permutations(ITEMS),
        length=st.integers(1, 4),
        counted=st.booleans(),
    )
    def rank(self, query: str, order: list[str], length: int, counted: bool) -> None:
        self.time += 1.0
        name, items = f"r{len(self.rankings)}", tuple(order[:length])
        entry = RankingEntry(name, query, self.time, 0, items, counted)
        assert self.write([entry]) == ["accepted"]
        self.history.append(entry)
        self.rankings.append(entry)

    def event(self, number: int, which: int, place: int, kind: str) -> EventEntry | None:
        """Return the event that an engine would log, None if it would reject it."""
        of = self.rankings[which % len(self.rankings)]
        place %= len(of.items)
        if self.store.log.ranking(of.id) is None:
            return None
        shows = kind != "bookmark" and not of.counted
        self.time += 0.25
        return event(f"e{number}", of, of.items[place], kind, shows=shows, time=self.time)

    @precondition(lambda self: self.rankings)
    @rule(
        number=st.integers(0, 40),
        which=st.integers(0, 9),
        place=st.integers(0, 3),
        kind=st.sampled_from([*BEHAVIORS, "impression", "bookmark"]),
    )
    def feedback(self, number: int, which: int, place: int, kind: str) -> None:
        entry = self.event(number, which, place, kind)
        if entry is None:
            return
        slot = (entry.ranking_id, entry.item, entry.type)
        new = not self.seen & {slot, (entry.query, entry.event_id)}
        assert self.write([entry, entry]) == (["accepted"] if new else ["duplicate"]) + [
            "duplicate"
        ]
        if new:
            self.seen |= {slot, (entry.query, entry.event_id)}
            shown = entry.shows and slot[:2] not in self.shown
            self.history.append(replace(entry, shows=shown))
            if shown:
                self.shown.add(slot[:2])

    @rule(ago=st.floats(0.0, 10.0))
    def roll_up(self, ago: float) -> None:
        self.store.log.roll_up(self.time - ago)
        for entry in self.history[: len(self.history) - self.store.log.length()]:
            if isinstance(entry, EventEntry):  # only its id may come again; its ranking has gone
                self.seen.discard((entry.query, entry.event_id))
        for entry in self.store.log.entries():
            if isinstance(entry, EventEntry):
                self.seen.add((entry.query, entry.event_id))

    @invariant()
    def counters_are_the_sum_of_the_history(self) -> None:
        for query in QUERIES:
            state = self.store.items.load(query)
            plain = {name: plain_counts(self.history, query, name) for name in ITEMS}
            assert counts(state) == plain
            times = {name: plain_first(self.history, query, name) for name in ITEMS}
            assert first_shown(state) == times
        assert run(replay(self.store.wrapped)).differences == []


Histories.TestCase.settings = settings(max_examples=15, stateful_step_count=25)
test_histories = Histories.TestCase
