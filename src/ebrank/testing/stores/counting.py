"""Checks of what lists and events add to the counts.

Random histories (`whole`) hold the rules of behaviors and duplicates to those of `MemoryStore`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ebrank.evidence.slots import SLOTS, slot_of
from ebrank.service.store.base import Store
from ebrank.service.store.records import EventEntry, NewItem, Operation, RankingEntry
from ebrank.testing.histories import counts, event, first_shown, new_items, ranking
from ebrank.testing.stores.checking import Stores, equal, log_of, refused, state_of, statuses_of


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
    expected = {"a": {(0, 1): 1}, "b": {(0, 2): 1}, "c": {(0, 10): 1}, "d": {(0, 11): 1, (0, 2): 1}}
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
