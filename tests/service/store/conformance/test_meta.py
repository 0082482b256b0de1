"""Checks of models, settings, sums, and the servers of a store."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial

from ebrank.service.store.base import CatalogChanged, Store
from ebrank.service.store.records import ArmSums, Minute, ModelRecord, NewItem
from tests.service.store.checking import refused


async def test_models(store: Store) -> None:
    """Models are kept, and one is active."""
    first = ModelRecord(1, 5.0, 10, None, 0.5, activated=True, reason="schedule")
    second = ModelRecord(2, 6.0, 20, 0.4, 0.3, False, "worse", ("p0", "s1"))
    await store.models.add(first, b"one")
    await store.models.add(second, b"two\0", {"auto": "own"})
    assert await store.models.all() == [first, second]
    documents = [await store.models.document(version) for version in (1, 2, 3)]
    assert documents == [b"one", b"two\0", None]
    assert [await store.models.arms(version) for version in (1, 2)] == [{}, {"auto": "own"}]
    assert await store.models.active() == 1
    await store.models.activate(2)
    assert await store.models.active() == 2
    assert await store.models.all() == [first, replace(second, activated=True)]
    await store.models.activate(0, meta={"pinned": "yes"})
    for version in (2, 0):
        record = ModelRecord(version, 1.0, 1, None, None, True)
        await refused(store, partial(store.models.add, record, b""))
    await refused(store, lambda: store.models.activate(9, meta={"pinned": "no"}))
    assert await store.models.active() == 0
    assert await store.meta.get("pinned") == "yes"
    await store.models.activate(2)
    await refused(store, lambda: store.models.remove([1, 2]))
    await store.models.remove([1, 7])
    assert [record.version for record in await store.models.all()] == [2]
    assert await store.models.document(1) is None


async def test_fenced_models(store: Store) -> None:
    """A version goes live only in place of the one it was compared with, which nobody pinned."""
    pinned = {"pinned": "yes"}

    async def added(version: int, instead_of: int) -> bool:
        record = ModelRecord(version, 5.0, 10, None, None, activated=True)
        return await store.models.add(record, b"x", instead_of=instead_of, unless=pinned)

    assert await added(1, instead_of=0)
    assert not (await added(2, instead_of=0))
    assert await store.models.active() == 1
    await store.models.activate(1, meta=pinned)
    assert not (await added(3, instead_of=1))
    await store.models.activate(1, meta={"pinned": "no"})
    assert await added(4, instead_of=1)
    assert await store.models.active() == 4
    went = [record.activated for record in await store.models.all()]
    assert went == [True, False, False, True]


async def test_settled(store: Store) -> None:
    """If several settle on a setting at the same time, the first decides."""
    await store.meta.set({"a": "1"})
    assert await store.meta.settle({"a": "2", "b": "3"}) == {"a": "1", "b": "3"}
    assert await store.meta.all() == {"a": "1", "b": "3"}
    calls = (store.meta.settle({"c": str(number)}) for number in range(5))
    answers = await asyncio.gather(*calls)
    assert {answer["c"] for answer in answers} == {await store.meta.get("c")}


async def test_one_is_elected(store: Store) -> None:
    """A server that is alone does all that one does for all, and goes on doing it."""
    jobs = [await store.elected(job) for job in ("train", "roll up", "train")]
    assert jobs == [True] * 3


async def test_settings(store: Store) -> None:
    """Settings are kept, alone or with what they belong to."""
    await store.meta.set({"features": "[1]", "a": ""})
    await store.meta.set({"features": "☂"})
    assert await store.meta.get("features") == "☂"
    assert await store.meta.all() == {"a": "", "features": "☂"}
    first, item = {"features": "one"}, [NewItem("a", (1.0,))]
    await store.items.put("q", item, 5.0, meta=first)
    assert await store.meta.all() == {"a": "", "features": "one"}
    assert await store.catalog.version() == 1
    second, other = {"features": "two"}, [NewItem("b", (2.0,))]
    for call in (
        partial(store.items.put, "q", other),
        partial(store.items.put, "new", other),
        partial(store.catalog.put, other),
        partial(store.catalog.put, []),
    ):
        await refused(store, partial(call, 6.0, meta=second, based_on=0), CatalogChanged)
    await store.items.put("q", item, 7.0, meta=second, based_on=1)
    assert await store.catalog.put([], 8.0, meta=first, based_on=2) == (3, 0)


async def test_changed_settings(store: Store) -> None:
    """A setting is changed by what it was, or not at all."""
    assert await store.meta.change("changing", lambda text: f"{text}!") == "{}!"
    assert await store.meta.change("changing", lambda text: f"{text}!") == "{}!!"


async def test_sums(store: Store) -> None:
    """Sums of minutes and of experiments add up, and so do numbers of a setting."""
    later, first = (
        Minute(60.0, {"clicks": 1.0, "rankings": 2.0}),
        ArmSums("t", 1, "a", 7, 2, 1, 0.5, 0),
    )
    second = ArmSums("t", 2, "b", 7, 1, 0, 0.0, 1)
    await store.meta.set({"key": "value"}, [later, Minute(0.0, {"clicks": 5.0})], [first, second])
    once = await store.meta.add("totals", {"lists": 2, "items": 1}, [Minute(60.0, {"clicks": 1.5})])
    assert once == {"lists": 2, "items": 1}
    again = await store.meta.add("totals", {"lists": 3, "more": 1}, arms=[first])
    assert again == {"lists": 5, "items": 1, "more": 1}
    assert await store.meta.add("totals", {}) == again
    assert json.loads(await store.meta.get("totals") or "") == again
    kept = [(minute.start, minute.values) for minute in await store.meta.minutes(0.0)]
    assert kept == [(0.0, {"clicks": 5.0}), (60.0, {"clicks": 2.5, "rankings": 2.0})]
    since = [minute.start for minute in await store.meta.minutes(1.0)]
    assert since == [60.0]
    spans = [(minute.start, minute.values) for minute in await store.meta.sums(0.0, 120.0)]
    assert spans == [(0.0, {"clicks": 7.5, "rankings": 2.0})]
    since = [minute.start for minute in await store.meta.sums(1.0, 20.0)]
    assert since == [60.0]
    assert await store.meta.arm_sums("t") == [ArmSums("t", 1, "a", 7, 4, 2, 1.0, 0), second]
    assert await store.meta.arm_sums("other") == []


async def test_room(store: Store) -> None:
    """A store on a disk tells how much room it takes."""
    size = await store.size()
    assert size is None or size.used > 0
    assert not (size is not None and size.entries < 0)


async def test_servers(store: Store) -> None:
    """Servers are listed from when they announce themselves until they leave."""
    assert await store.servers() == []
    for name, about in (("two", "☂"), ("one", "old"), ("one", "new")):
        await store.announce(name, about)
    heard = await store.servers()
    assert [(name, about) for name, _, about in heard] == [("one", "new"), ("two", "☂")]
    assert all(0.0 <= seconds < 60.0 for _, seconds, _ in heard)
    await store.announce("two", None)
    await store.announce("three", None)
    assert [announced.server for announced in await store.servers()] == ["one"]
