"""Checks of the log, what it adds to counts, its roll-up, and its restoration elsewhere.

Random histories (`whole`) hold the rules of behaviors and duplicates to those of `MemoryStore`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import numpy as np

from ebrank.evidence.slots import SLOTS, slot_of
from ebrank.service.core.live import LiveQuery
from ebrank.service.ops.replay import replay
from ebrank.service.store.base import Store
from ebrank.service.store.counting import ACCEPTED, change_of
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import (
    EventEntry,
    Minute,
    NewItem,
    Operation,
    RankingEntry,
    RolledUp,
)
from tests.service.histories import contents, counts, event, fill, first_shown, new_items, ranking
from tests.service.store.checking import (
    Stores,
    counts_of,
    log_of,
    refused,
    state_of,
    statuses_of,
)


async def test_long_lists(store: Store) -> None:
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
    assert np.array_equal(actual, expected)
    await store.log.roll_up(10.0)
    snapshot = await store.items.snapshot("q")
    assert snapshot is not None
    assert np.array_equal(snapshot.counts, expected)


async def test_all_or_nothing(stores: Stores) -> None:
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
            assert await statuses_of(store, good[1:]) == ["accepted"]


async def test_long_log(store: Store) -> None:
    """A log of thousands of entries is read in its order."""
    await store.items.put("q", new_items(*"abc"), 1.0)
    log: list[Operation] = []
    for number in range(900):
        served = ranking(f"r{number}", "abc", time=10.0 + number)
        log += [served, event(f"e{number}", served, "b", time=10.0 + number)]
        if number % 3 == 0:
            log.append(event(f"f{number}", served, "c", time=10.0 + number))
    for begin in range(0, len(log), 500):
        await store.log.write(log[begin : begin + 500])
        await store.log.write([event("e0", ranking("r0", "abc"), "b")])  # a duplicate
    assert await log_of(store) == log
    rolled_up = await store.log.roll_up(10.0 + 700)
    assert rolled_up == RolledUp(700, 700 + 234)
    rest = log[700 + 700 + 234 :]
    assert await log_of(store) == rest


async def test_roll_up(stores: Stores) -> None:
    """A roll-up moves the head of the log, up to the first younger entry, to the snapshot."""
    for before in (5.0, 10.5, 20.0, 20.5, 40.5, 55.0, 1000.0):
        async with stores.new() as store:
            log = await fill(store)
            await store.meta.set({}, [Minute(0.0, {"clicks": 1.0}), Minute(60.0, {"clicks": 2.0})])
            length, whole = await store.log.length(), await contents(store)
            assert length >= len(log)
            assert whole["log"] == log
            assert await store.log.ranking("r2") == log[2]
            times = [op.received if isinstance(op, EventEntry) else op.time for op in log]
            old = [entry for entry, time in zip(log, times, strict=True) if time < before]
            events = sum(isinstance(entry, EventEntry) for entry in old)
            expected = RolledUp(len(old) - events, events)
            assert await store.log.roll_up(before) == expected
            assert await store.log.roll_up(before) == RolledUp(0, 0)
            after = await contents(store)
            assert after["log"] == log[len(old) :]
            assert after["current"] == whole["current"]
            assert after["last"] == whole["last"]
            starts = [start for start, _ in after["minutes"]]
            assert starts == [start for start in (0.0, 60.0) if start >= before]
            assert (await replay(store)).differences == []
            gone = await store.log.ranking("r1") is None
            assert gone == (before > 10.0)


async def test_roll_up_stops(store: Store) -> None:
    """A roll-up stops at the first younger entry, whatever comes after it."""
    await store.items.put("q", new_items("a"), 1.0)
    entries = [ranking(f"r{time}", "a", time=time) for time in (5.0, 9.0, 5.5)]
    await store.log.write(entries)
    assert await store.log.roll_up(9.0) == RolledUp(1, 0)
    assert await log_of(store) == entries[1:]


async def test_after_roll_up(store: Store) -> None:
    """The log goes on after all was rolled up, and an event's ranking may have left it."""
    log = await fill(store)
    await store.log.roll_up(1000.0)
    first, again = log[0], ranking("r7", "ab", time=100.0)
    assert isinstance(first, RankingEntry)
    orphan = event("e1", first, "b", "bookmark", time=101.0)
    assert await statuses_of(store, [again, orphan]) == ["accepted"] * 2
    assert await log_of(store) == [again, orphan]


async def test_restored(store: Store) -> None:
    """A history is restored: a snapshot, then the log."""
    origin = MemoryStore()
    await fill(origin)
    await origin.log.roll_up(30.5)
    snapshots = [await origin.items.snapshot(query) for query in await origin.items.queries()]
    states = [state for state in snapshots if state is not None]
    await store.items.restore(states, await origin.log.last_time())
    for state in states:
        await refused(store, partial(store.items.restore, [state], 99.0))
        loaded = await store.items.load(state.query)
        assert loaded is not None
        assert loaded.version == 1
    await store.log.write([entry async for entry in origin.log.entries()])
    rows = [NewItem(name, tuple(row)) async for name, row in origin.catalog.entries()]
    await store.catalog.put(rows, 1.0)
    assert await contents(store) == await contents(origin)


async def test_restored_upgrades(stores: Stores) -> None:
    """An event says what it replaces, if that was rolled up before its log was restored."""
    shown = ranking("r1", "ab", time=5.0)
    log: list[Operation] = [
        shown,
        event("e1", shown, "a", "click", time=6.0),
        event("e2", shown, "a", "purchase", time=7.0),
        event("e3", shown, "a", "hide", time=8.0),
    ]
    for before in (6.5, 7.5):
        origin = MemoryStore()
        await origin.items.put("q", new_items(*"ab"), 1.0)
        await origin.log.write(log)
        await origin.log.roll_up(before)
        async with stores.new() as store:
            state = await origin.items.snapshot("q")
            assert state is not None
            await store.items.restore([state], 8.0)
            await store.log.write([entry async for entry in origin.log.entries()])
            assert await contents(store) == await contents(origin)


async def test_at_once(store: Store) -> None:
    """Tasks that write, read and roll up at once lose and double nothing."""
    await store.items.put("q", new_items(*"abc"), 1.0)

    async def work(worker: int) -> None:
        for number in range(20):
            shown = ranking(f"r{worker}-{number}", "abc", time=10.0)
            await store.log.write([shown, event(f"e{worker}-{number}", shown, "b", time=10.0)])
            await (store.log.roll_up(11.0) if number % 10 == 5 else store.flush())
            await store.items.load("q")

    await asyncio.gather(*(work(worker) for worker in range(4)))
    expected = {"a": {(0, 1): 80}, "b": {(0, 2): 80, (1, 2): 80}, "c": {(0, 3): 80}}
    assert await counts_of(store) == expected
    state = await state_of(store)
    assert state.version == 81
    await store.log.roll_up(11.0)
    snapshot = counts(await store.items.snapshot("q"))
    assert snapshot == await counts_of(store)


# --- what a write says about those of other servers ----------------------------------------------


async def test_news(store: Store) -> None:
    """A write may say what others have counted since a version; that, and no more, is new."""
    await store.items.put("q", new_items(*"abcd"), 1.0)
    await store.items.put("p", new_items("a"), 1.0)
    ours = await state_of(store)
    alone = await store.log.write([ranking("r0", "d")], remembered=lambda _: ours.version)
    assert alone.news == {}
    ours = await state_of(store)
    shown = ranking("r1", "ab")
    await store.log.write([shown, event("e1", shown, "b")])
    last = ranking("r2", "ca")
    commit = await store.log.write([last], remembered=lambda _: ours.version)
    now = await state_of(store)
    assert commit.versions == {"q": now.version}
    for query, missed in commit.news.items():
        assert query == "q"
        caught_up = LiveQuery.read(ours, seed=0, since=0.0)
        assert missed.since == ours.version
        caught_up.catch_up(now.version - 1, missed)
        caught_up.add(change_of(last, ACCEPTED, [2, 0], ()))
        assert caught_up.counts.tolist() == now.counts.tolist()
        assert first_shown(caught_up.state) == first_shown(now)
    for change in (
        lambda: store.items.put("q", new_items("e"), 9.0),
        lambda: store.items.withdraw("q", "e", 9.0),
        lambda: store.deletions.item("e", "gone", "digest", 9.0),
    ):
        before = (await state_of(store)).version
        await change()
        await store.log.write([replace(shown, id=f"r{before}a")])
        later = [replace(shown, id=f"r{before}b"), ranking(f"r{before}c", "a", query="p")]
        remembered = {"q": before, "p": None}
        commit = await store.log.write(later, remembered=remembered.__getitem__)
        assert commit.news == {}


async def test_incarnations(store: Store) -> None:
    """A write based on what was read in another incarnation is refused, and leaves nothing."""
    await store.items.put("q", new_items(*"ab"), 1.0)
    now = store.incarnation
    await store.log.write([ranking("r1", "ab")], incarnation=now)
    await refused(store, lambda: store.log.write([ranking("r2", "ab")], incarnation=now + 1))
    assert store.incarnation == now
