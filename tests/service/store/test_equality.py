"""Random histories: the SQLite store, the one in memory and a plain sum of the log are one.

Floats are compared bit for bit. The plain model below is as dumb as can be: it keeps the whole
history for ever, and adds it up from the start each time it is asked.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from ebrank.behavior import BehaviorStats
from ebrank.examination import Examination
from ebrank.service.records import EventEntry, NewItem, Operation, RankingEntry
from ebrank.service.replay import replay
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.sqlite import SqliteStore
from tests.service.store.samples import contents, sums, write

pytestmark = pytest.mark.slow

ITEMS = "abcdef"
QUERIES = ("q", "p")
chances = st.sampled_from([0.1, 0.3, 1 / 3, 0.6309297535714574, 1.0, 0.0])


def plain_sums(history: list[Operation], query: str, item: str) -> tuple[object, ...]:
    """Return n, c, C, E and the first impression of an item, from the whole history."""
    n, c, weighted, exposure, first = 0, 0, 0.0, 0.0, None
    for entry in history:
        if entry.query != query:
            continue
        if isinstance(entry, RankingEntry):
            p = dict(zip(entry.items, entry.examination, strict=True)).get(item, 0.0)
            seen, clicked, time = entry.counted and p > 0, False, entry.time
        else:
            p = entry.examination if entry.item == item else 0.0
            seen, clicked, time = entry.shows and p > 0, entry.type == "click", entry.received
        if seen:
            n, exposure, first = n + 1, exposure + p, time if first is None else first
        if clicked and p > 0:
            c, weighted = c + 1, weighted + 1 / p
    return n, c, weighted, exposure, first


class Histories(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "store"
        self.disk, self.memory = SqliteStore(self.path), MemoryStore()
        self.history: list[Operation] = []
        self.rankings: list[RankingEntry] = []
        self.seen: set[tuple[str, ...]] = set()
        self.shown: set[tuple[str, ...]] = set()
        self.time = 100.0
        for query in QUERIES:
            self.put(query, [NewItem(name, (0.5,)) for name in ITEMS])

    def put(self, query: str, items: list[NewItem]) -> None:
        for store in (self.disk, self.memory):
            store.put_items(query, items, self.time)

    def write(self, entries: list[Operation]) -> list[str]:
        written = write(self.disk, entries)
        assert written == write(self.memory, entries)
        return [one.status for one in written]

    @rule(query=st.sampled_from(QUERIES), name=st.sampled_from(ITEMS), value=st.floats(width=32))
    def change(self, query: str, name: str, value: float) -> None:
        self.put(query, [NewItem(name, (value,))])

    @rule(query=st.sampled_from(QUERIES), name=st.sampled_from(ITEMS))
    def withdraw(self, query: str, name: str) -> None:
        told = [store.withdraw(query, name, self.time) for store in (self.disk, self.memory)]
        assert told[0] == told[1]

    @rule(
        query=st.sampled_from(QUERIES),
        order=st.permutations(ITEMS),
        curve=st.lists(chances, min_size=1, max_size=4),
        counted=st.booleans(),
    )
    def rank(self, query: str, order: list[str], curve: list[float], counted: bool) -> None:
        self.time += 1.0
        name, items = f"r{len(self.rankings)}", tuple(order[: len(curve)])
        entry = RankingEntry(name, query, self.time, 0, items, tuple(curve), counted)
        assert self.write([entry]) == ["accepted"]
        self.history.append(entry)
        self.rankings.append(entry)

    def event(self, number: int, which: int, place: int, kind: str) -> EventEntry | None:
        """Return the event that an engine would log, None if it would reject it."""
        of = self.rankings[which % len(self.rankings)]
        place %= len(of.items)
        p, item = of.examination[place], of.items[place]
        if self.memory.ranking(of.id) is None or (kind == "click" and p == 0.0):
            return None
        shows = kind != "bookmark" and p > 0.0 and not of.counted
        self.time += 0.25
        return EventEntry(
            f"e{number}", of.id, of.query, item, kind, place + 1, p, shows, 1.0, self.time
        )

    @precondition(lambda self: self.rankings)
    @rule(
        number=st.integers(0, 40),
        which=st.integers(0, 9),
        place=st.integers(0, 3),
        kind=st.sampled_from(["click", "impression", "bookmark"]),
    )
    def feedback(self, number: int, which: int, place: int, kind: str) -> None:
        entry = self.event(number, which, place, kind)
        if entry is None:
            return
        slot = (entry.ranking_id, entry.item, entry.type)
        new = not self.seen & {slot, (entry.event_id,)}
        assert self.write([entry, entry]) == (["accepted"] if new else ["duplicate"]) + [
            "duplicate"
        ]
        if new:
            self.seen |= {slot, (entry.event_id,)}
            shown = entry.shows and slot[:2] not in self.shown
            self.history.append(replace(entry, shows=shown))
            if shown:
                self.shown.add(slot[:2])

    @rule(ago=st.floats(0.0, 10.0))
    def roll_up(self, ago: float) -> None:
        rolled = [store.roll_up(self.time - ago) for store in (self.disk, self.memory)]
        assert rolled[0] == rolled[1]
        for entry in self.history[: len(self.history) - len(list(self.memory.log()))]:
            if isinstance(entry, EventEntry):  # only its id may come again; its ranking has gone
                self.seen.discard((entry.event_id,))
        for event in (one for one in self.memory.log() if isinstance(one, EventEntry)):
            self.seen.add((event.event_id,))

    @rule()
    def reopen(self) -> None:
        self.disk.close()
        self.disk = SqliteStore(self.path)

    @invariant()
    def all_are_one(self) -> None:
        assert contents(self.disk) == contents(self.memory)
        for query in QUERIES:
            plain = {name: plain_sums(self.history, query, name) for name in ITEMS}
            assert sums(self.disk.load(query)) == plain
        for store in (self.disk, self.memory):
            assert replay(store).differences == []

    def teardown(self) -> None:
        self.disk.close()
        self.folder.cleanup()


Histories.TestCase.settings = settings(max_examples=25, stateful_step_count=25)
test_histories = Histories.TestCase


@settings(max_examples=50)
@given(
    sessions=st.lists(
        st.tuples(
            st.permutations(range(6)),
            st.lists(chances, min_size=1, max_size=5),
            st.lists(st.booleans(), min_size=5, max_size=5),
        ),
        max_size=12,
    )
)
def test_a_log_adds_up_to_what_the_library_records(
    sessions: list[tuple[list[int], list[float], list[bool]]],
) -> None:
    store, stats = MemoryStore(), BehaviorStats.zeros(6)
    store.put_items("q", [NewItem(name, ()) for name in ITEMS], 1.0)
    for number, (order, curve, marks) in enumerate(sessions):
        shown = order[: len(curve)]
        clicked = [mark and p > 0.0 for mark, p in zip(marks, curve, strict=False)]
        stats.record(shown, clicked, Examination(curve=tuple(curve)))
        items = tuple(ITEMS[place] for place in shown)
        write(store, [RankingEntry(f"r{number}", "q", 2.0, 0, items, tuple(curve))])
        for rank in np.flatnonzero(clicked).tolist():
            name = f"{number}-{rank}"
            p = curve[rank]
            write(
                store,
                [
                    EventEntry(
                        name, f"r{number}", "q", items[rank], "click", rank + 1, p, False, 3.0, 3.0
                    )
                ],
            )
    state = store.load("q")
    assert state is not None
    for field, expected in stats.to_arrays().items():
        assert getattr(state.stats, field).tobytes() == expected.tobytes(), field
