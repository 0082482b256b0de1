"""Checks of a whole store: opened again, undamaged, and like the one in memory."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from ebrank.evidence.behaviors import SHOWN
from ebrank.service.store.base import Store, StoreError
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import (
    EventEntry,
    Minute,
    ModelRecord,
    Operation,
    RankingEntry,
    Wanted,
)
from tests.service.histories import BEHAVIORS, bits, contents, event, fill, new_items, ranking
from tests.service.store.checking import Stores, everything, state_of, statuses_of

USERS = ("ann", "bob")


async def test_opened_again(stores: Stores) -> None:
    """A store that was closed holds what it held, and goes on."""
    if not stores.keeps:
        return
    async with stores.named("again") as store:
        log = await fill(store)
        await store.log.roll_up(30.5)
        await store.models.add(ModelRecord(1, 5.0, 10, None, None, True), b"one")
        await store.meta.set({"key": "value"}, [Minute(60.0, {"clicks": 1.0})])
        before = await contents(store)
        state = await store.items.load("q")
    async with stores.named("again") as store:
        assert await contents(store) == before
        loaded = await store.items.load("q")
        assert state is not None
        assert loaded is not None
        assert loaded.version == state.version
        assert await statuses_of(store, log[-1:]) == ["duplicate"]
        assert await statuses_of(store, [ranking("new", "abc")]) == ["accepted"]


async def test_sound(stores: Stores) -> None:
    """A store that nobody damaged has no faults, and was last changed in the past, if ever."""
    began = time.time()
    async with stores.named("sound") as store:
        assert store.touched is None or store.touched <= began + 1.0
        await fill(store)
        assert await store.faults() == []
        await store.log.roll_up(30.5)
        assert await store.faults() == []
    if stores.keeps:
        async with stores.named("sound") as store:
            assert await store.faults() == []


async def test_random_histories(stores: Stores) -> None:
    """Random histories make the same of a store as of the one in memory."""
    for seed in range(6):
        async with _twins(stores) as (store, memory):
            chance, lists = random.Random(seed), list[RankingEntry]()
            for turn in range(80):
                call = _random_call(chance, float(turn + 10), lists)
                done = [await _outcome(call, twin) for twin in (store, memory)]
                assert done[0] == done[1], f"turn {turn} of history {seed}"
            assert await everything(store) == await everything(memory)


async def _outcome(call: Callable[[Store], Awaitable[object]], store: Store) -> object:
    """Return what a call returns and the time of the latest write, or that the store refuses it."""
    try:
        return await call(store), await store.log.last_time()
    except StoreError:
        return "refused"


async def test_forgetting(stores: Stores) -> None:
    """Counters fade from epoch to epoch by the same bits for all, whenever a roll-up comes."""
    for seed, roll_ups in enumerate((False, True, True)):
        async with _twins(stores) as (store, memory):
            chance, lists, epoch = random.Random(seed), list[RankingEntry](), 0
            for turn in range(40):
                epoch += chance.choice([0, 0, 0, 1, 1, 5])
                entries = _random_entries(chance, float(turn + 10), lists, epoch)
                written = (await store.log.write(entries)).written
                assert written == (await memory.log.write(entries)).written
                if roll_ups and turn % 7 == 6:
                    await store.log.roll_up(float(turn))
            for query in "pq":
                state, truth = await state_of(store, query), await state_of(memory, query)
                assert bits(state) == bits(truth)
                most = state.counts[:, SHOWN] - state.counts[:, SHOWN + 1 :].sum(axis=1)
                assert state.counts.min() >= 0
                assert most.min() >= 0
            await store.log.roll_up(1000.0)
            for query in "pq":
                rolled = bits(await store.items.snapshot(query))
                assert rolled == bits(await state_of(memory, query))


@asynccontextmanager
async def _twins(stores: Stores) -> AsyncIterator[tuple[Store, Store]]:
    """Open a store with two queries, and one in memory with the same."""
    async with stores.new() as store:
        both = store, MemoryStore()
        for twin in both:
            for query in "qp":
                await twin.items.put(query, new_items(*"abcdef"), 1.0)
        yield both


def _random_call(
    chance: random.Random, time: float, lists: list[RankingEntry]
) -> Callable[[Store], Awaitable[object]]:
    """Return something to do with a store; `lists` are those that events may cite."""
    query, order = chance.choice("qp"), "".join(chance.sample("abcdef", chance.randint(1, 4)))
    weights = {"put": 3, "withdraw": 2, "share": 2, "model": 1, "roll up": 2, "delete": 1, "log": 9}
    [kind] = chance.choices([*weights], [*weights.values()])
    items = new_items(*order, width=chance.randint(0, 3))
    if kind == "put":
        return lambda store: store.items.put(query, items, time)
    if kind == "share":
        return lambda store: store.catalog.put(items, time)
    if kind == "withdraw":
        return lambda store: store.items.withdraw(query, order[0], time)
    if kind == "model":
        record = ModelRecord(int(time), time, 1, None, None, activated=chance.random() < 0.7)
        return lambda store: store.models.add(record, order.encode())
    if kind == "delete":
        return _random_deletion(chance, time, query, order[0])
    if kind == "roll up":
        before = time - chance.uniform(0.0, 30.0)
        lists[:] = [served for served in lists if served.time >= before]
        return lambda store: store.log.roll_up(before)
    entries = _random_entries(chance, time, lists, most=3)
    return lambda store: store.log.write(entries)


def _random_deletion(
    chance: random.Random, time: float, query: str, item: str
) -> Callable[[Store], Awaitable[object]]:
    kind, user = chance.choice(["query", "item", "user", "retraction"]), chance.choice(USERS)
    digest = f"{kind} of {time}"
    if kind == "query":
        return lambda store: store.deletions.query(query, digest, time)
    if kind == "item":
        return lambda store: store.deletions.item(item, f"gone {time}", digest, time)
    if kind == "user":
        return lambda store: store.deletions.user(user, digest, time)

    async def retracted(store: Store) -> object:
        plan = await store.deletions.retractable(Wanted(user=user))
        proof, queries = await store.deletions.retract(Wanted(user=user), digest, time)
        return plan, proof, sorted(queries)

    return retracted


def _random_entries(
    chance: random.Random, time: float, lists: list[RankingEntry], epoch: int = 0, most: int = 20
) -> list[Operation]:
    """Return lists of an epoch, and events about these and others.

    In a later epoch the ids of events are new: a store forgets those that it has rolled up.
    """
    new: list[RankingEntry] = []
    for number in range(chance.randint(0, most // 2)):
        order = "".join(chance.sample("abcdef", chance.randint(1, 4)))
        name, user = f"r{time} {number}", USERS[number % 2]
        served = ranking(name, order, query=chance.choice("qp"), time=time, user=user)
        seen = tuple(chance.choice([0, 5]) for _ in order) if chance.random() < 0.3 else ()
        counted, offset = chance.random() < 0.6, chance.choice([0, 0, 3, 10, 290])
        new.append(replace(served, counted=counted, offset=offset, seen=seen))
    lists += new
    events: list[EventEntry] = []
    for number, served in enumerate(chance.sample(lists[-40:], min(len(lists[-40:]), most))):
        name = f"e{time} {number}" if epoch else f"e{chance.randrange(40)}"
        kind = chance.choice([*BEHAVIORS, "click", "impression", "bookmark"])
        shows = not served.counted and kind != "bookmark"
        item = chance.choice(served.items)
        events.append(event(name, served, item, kind, shows=shows, time=time))
    entries: list[Operation] = [*new, *events]
    return [replace(entry, epoch=epoch) for entry in entries]
