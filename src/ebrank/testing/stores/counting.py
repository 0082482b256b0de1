"""Checks of what lists and events add to the counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ebrank.evidence.slots import SLOTS, slot_of
from ebrank.service.store.base import Store
from ebrank.service.store.counting import ALREADY_COUNTED, ID_SEEN, as_written
from ebrank.service.store.records import EventEntry, NewItem, Operation, RankingEntry, Written
from ebrank.testing.histories import counts, event, first_shown, new_items, ranking
from ebrank.testing.stores.checking import (
    Counts,
    Stores,
    counts_of,
    equal,
    log_of,
    refused,
    state_of,
    statuses_of,
)


async def served_lists(store: Store) -> None:
    """A served list counts an impression of each item at its rank."""
    await store.items.put("q", new_items(*"abcd"), 1.0)
    statuses = await statuses_of(store, [ranking("r1", "cab", time=9.0)])
    equal("what was written", statuses, ["accepted"])
    await store.log.write([ranking("r2", "ca", time=10.0)])
    await store.log.write([ranking("r3", "d", time=11.0, counted=False)])
    state = await state_of(store)
    expected = {"a": {(0, 2): 2}, "b": {(0, 3): 1}, "c": {(0, 1): 2}, "d": {}}
    equal("the counts", counts(state), expected)
    equal("first_shown", first_shown(state), {"a": 9.0, "b": 9.0, "c": 9.0, "d": None})


async def long_lists(store: Store) -> None:
    """Deep ranks count in bands, as `ebrank.evidence.slots` has them."""
    names = [f"i{number}" for number in range(400)]
    await store.items.put("q", [NewItem(name, (1.0,)) for name in names], 1.0)
    ranks = [1, 10, 11, 15, 16, 25, 26, 50, 51, 100, 101, 300, 301, 400]
    clicks = [
        EventEntry(f"e{rank}", "r", "q", names[rank - 1], "click", rank, 1, False, 3.0, 3.0)
        for rank in ranks
    ]
    await store.log.write([RankingEntry("r", "q", 2.0, 0, tuple(names)), *clicks])
    expected = np.zeros((400, 2, SLOTS), np.int32)
    for rank in range(1, 401):
        expected[rank - 1, 0, slot_of(rank)] = 1
        expected[rank - 1, 1, slot_of(rank)] = rank in ranks
    actual = (await state_of(store)).counts
    assert np.array_equal(actual, expected), "counts at deep ranks are wrong"
    await store.log.roll_up(10.0)
    snapshot = await store.items.snapshot("q")
    assert snapshot is not None, "the query is unknown"
    assert np.array_equal(snapshot.counts, expected), "the snapshot at deep ranks is wrong"


async def pages(store: Store) -> None:
    """A page counts at its ranks, and only what its user has not seen before."""
    await store.items.put("q", new_items(*"abcd"), 1.0)
    first = ranking("r1", "ab", time=5.0)
    second = ranking("r2", "cd", time=6.0, offset=9, continues="r1")
    again = ranking("r3", "bda", time=7.0, continues="r1", seen=(2, 0, 1))
    bot = ranking("r4", "abcd", time=8.0, counted=False, bot=True)
    ignored = replace(event("e1", bot, "a", time=9.0), outcome=0, bot=True)
    log: list[Operation] = [first, second, again, bot, ignored]
    await store.log.write(log)
    equal("the log", await log_of(store), log)
    expected = {
        "a": {(0, 1): 1},
        "b": {(0, 2): 1},
        "c": {(0, 10): 1},
        "d": {(0, 11): 1, (0, 2): 1},
    }
    for rolled_up in (False, True):
        if rolled_up:
            await store.log.roll_up(1000.0)
            equal("the snapshot", counts(await store.items.snapshot("q")), expected)
        state = await state_of(store)
        equal("the counts", counts(state), expected)
        equal("first_shown", first_shown(state), {"a": 5.0, "b": 5.0, "c": 6.0, "d": 6.0})


async def all_or_nothing(stores: Stores) -> None:
    """What cannot be stored leaves nothing."""
    first = ranking("r1", "ab")
    bad: dict[str, list[Operation]] = {
        "an unknown item": [ranking("r2", "ax")],
        "an unknown query": [ranking("r2", "a", query="nothing")],
        "an id that is taken": [ranking("r1", "a")],
        "an id given twice": [ranking("r2", "a"), ranking("r2", "b")],
        "an unknown item of an event": [event("e2", ranking("r1", "ax"), "x")],
    }
    for operations in bad.values():
        async with stores.new() as store:
            await store.items.put("q", new_items(*"ab"), 1.0)
            await store.log.write([first])
            good: list[Operation] = [ranking("r9", "ba"), event("e9", first, "a")]
            await refused(store, partial(store.log.write, [*good, *operations]))
            equal("the next event", await statuses_of(store, good[1:]), ["accepted"])


def accepted(outcome: int = 0, *, replaces: int = 0, shows: bool = False) -> Written:
    """Return what becomes of an event that is logged."""
    return Written("accepted", "", shows, outcome, replaces)


async def _counted(
    stores: Stores,
    lists: Sequence[RankingEntry],
    events: Sequence[tuple[EventEntry, Written]],
    expected: Counts,
) -> None:
    """Raise unless events become what they should, in one batch and one by one."""
    entries = [entry for entry, _ in events]
    log = [as_written(entry, result) for entry, result in events if result.status == "accepted"]
    for batches in ([entries], [[entry] for entry in entries]):
        async with stores.new() as store:
            await store.items.put("q", new_items(*lists[0].items), 1.0)
            await store.log.write(lists)
            commits = [await store.log.write(batch) for batch in batches]
            written = [result for commit in commits for result in commit.written]
            equal("what was written", written, [result for _, result in events])
            equal("the log", await log_of(store), [*lists, *log])
            equal("the counts", await counts_of(store), expected)
            equal("the same again", await statuses_of(store, entries), ["duplicate"] * len(entries))
            equal("the counts after that", await counts_of(store), expected)
            await store.log.roll_up(1000.0)
            equal("the snapshot", counts(await store.items.snapshot("q")), expected)


async def event_counts(stores: Stores) -> None:
    """Events count at the rank that was logged."""
    served, quiet = ranking("r1", "abc"), ranking("r2", "cba", counted=False)
    events = [
        (event("e1", served, "c"), accepted(1)),
        (event("e2", quiet, "a", "impression", shows=True), accepted(shows=True)),
        (event("e3", quiet, "b", shows=True), accepted(1, shows=True)),
        (event("e4", quiet, "c", "bookmark"), accepted()),
    ]
    expected = {
        "a": {(0, 1): 1, (0, 3): 1},
        "b": {(0, 2): 2, (1, 2): 1},
        "c": {(0, 3): 1, (1, 3): 1},
    }
    await _counted(stores, [served, quiet], events, expected)


async def negative_behavior(stores: Stores) -> None:
    """After a negative behavior an impression has no outcome, whatever comes before or after."""
    r1, r2, r3 = ranking("r1", "ab"), ranking("r2", "ab"), ranking("r3", "ab", counted=False)
    events = [
        (event("e1", r1, "a", "click"), accepted(1)),
        (event("e2", r1, "a", "purchase"), accepted(2, replaces=1)),
        (event("e3", r1, "a", "hide"), accepted(-1, replaces=2)),
        (event("e4", r1, "a", "return"), accepted()),
        (event("e5", r2, "a", "hide"), accepted(-1)),
        (event("e6", r2, "a", "click"), accepted()),
        (event("e7", r1, "b", "click"), accepted(1)),
        (event("e8", r2, "b", "bookmark"), accepted()),
        (event("e9", r2, "b", "return"), accepted(-1)),
        (event("f1", r3, "b", "hide", shows=True), accepted(-1, shows=True)),
        (event("f2", r3, "b", "click", shows=True), accepted()),
    ]
    expected = {"a": {(0, 1): 2}, "b": {(0, 2): 3, (1, 2): 1}}
    await _counted(stores, [r1, r2, r3], events, expected)


async def best_behavior(stores: Stores) -> None:
    """An impression's outcome is its best behavior, in whatever order they come."""
    r1, r2 = ranking("r1", "ab"), ranking("r2", "ab")
    events = [
        (event("e1", r1, "a", "click"), accepted(1)),
        (event("e2", r1, "a", "purchase"), accepted(2, replaces=1)),
        (event("e3", r2, "a", "purchase"), accepted(2)),
        (event("e4", r2, "a", "click"), accepted()),
        (event("e5", r1, "b", "impression"), accepted()),
        (event("e6", r1, "b", "click"), accepted(1)),
        (event("e7", r2, "b", "bookmark"), accepted()),
        (event("e8", r2, "b", "purchase"), accepted(2)),
    ]
    expected = {"a": {(0, 1): 2, (2, 1): 2}, "b": {(0, 2): 2, (1, 2): 1, (2, 2): 1}}
    await _counted(stores, [r1, r2], events, expected)


async def one_impression(stores: Stores) -> None:
    """An item of a list is shown once: by the first event that counts, not by a duplicate."""
    r1, r2 = ranking("r1", "abc", counted=False), ranking("r2", "abc", counted=False)
    events = [
        (event("e1", r1, "a", "impression", shows=True), accepted(shows=True)),
        (event("e2", r1, "a", "click", shows=True), accepted(1)),
        (event("e3", r1, "b", "click", shows=True), accepted(1, shows=True)),
        (event("e4", r1, "b", "impression", shows=True), accepted()),
        (event("e1", r1, "c", "impression", shows=True), Written("duplicate", ID_SEEN)),
        (event("e5", r1, "c", "click", shows=True), accepted(1, shows=True)),
        (event("e6", r2, "a", "bookmark"), accepted()),
        (event("e7", r2, "a", "click", shows=True), accepted(1, shows=True)),
    ]
    clicked = {rank: {(0, rank): 1, (1, rank): 1} for rank in (2, 3)}
    expected = {"a": {(0, 1): 2, (1, 1): 2}, "b": clicked[2], "c": clicked[3]}
    await _counted(stores, [r1, r2], events, expected)


async def duplicates(stores: Stores) -> None:
    """The same event, or the same type of event for an item of a list, counts once."""
    served = ranking("r1", "abc")
    events = [
        (event("e1", served, "a"), accepted(1)),
        (event("e1", served, "b"), Written("duplicate", ID_SEEN)),
        (event("e2", served, "a"), Written("duplicate", ALREADY_COUNTED)),
        (event("e3", served, "a", "impression"), accepted()),
    ]
    expected = {"a": {(0, 1): 1, (1, 1): 1}, "b": {(0, 2): 1}, "c": {(0, 3): 1}}
    await _counted(stores, [served], events, expected)


async def ids_of_other_queries(store: Store) -> None:
    """The same id in another query is another event."""
    for query in "qp":
        await store.items.put(query, new_items(*"abc"), 1.0)
        click = event("e1", ranking(f"r{query}", "abc", query=query), "a")
        equal("the id of an event", await statuses_of(store, [click]), ["accepted"])
