"""Checks of models, settings, sums, and the servers of a store."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial

from ebrank.service.store.base import CatalogChanged, Store
from ebrank.service.store.records import ArmSums, Minute, ModelRecord, NewItem
from ebrank.testing.stores.checking import equal, refused


async def models(store: Store) -> None:
    """Models are kept, and one is active."""
    first = ModelRecord(1, 5.0, 10, None, 0.5, activated=True, reason="schedule")
    second = ModelRecord(2, 6.0, 20, 0.4, 0.3, False, "worse", ("p0", "s1"))
    await store.models.add(first, b"one")
    await store.models.add(second, b"two\0", {"auto": "own"})
    equal("models.all()", await store.models.all(), [first, second])
    documents = [await store.models.document(version) for version in (1, 2, 3)]
    equal("the documents", documents, [b"one", b"two\0", None])
    equal(
        "files of arms",
        [await store.models.arms(version) for version in (1, 2)],
        [{}, {"auto": "own"}],
    )
    equal("the active one", await store.models.active(), 1)
    await store.models.activate(2)
    equal("the active one", await store.models.active(), 2)
    equal("models.all()", await store.models.all(), [first, replace(second, activated=True)])
    await store.models.activate(0, meta={"pinned": "yes"})
    for version in (2, 0):
        record = ModelRecord(version, 1.0, 1, None, None, True)
        await refused(store, partial(store.models.add, record, b""))
    await refused(store, lambda: store.models.activate(9, meta={"pinned": "no"}))
    equal("the active one", await store.models.active(), 0)
    equal("the setting", await store.meta.get("pinned"), "yes")
    await store.models.activate(2)
    await refused(store, lambda: store.models.remove([1, 2]))
    await store.models.remove([1, 7])
    equal("models.all()", [record.version for record in await store.models.all()], [2])
    equal("a removed document", await store.models.document(1), None)


async def fenced_models(store: Store) -> None:
    """A version goes live only in place of the one it was compared with, which nobody pinned."""
    pinned = {"pinned": "yes"}

    async def added(version: int, instead_of: int) -> bool:
        record = ModelRecord(version, 5.0, 10, None, None, activated=True)
        return await store.models.add(record, b"x", instead_of=instead_of, unless=pinned)

    equal("the first", await added(1, instead_of=0), True)
    equal("one compared with another", await added(2, instead_of=0), False)
    equal("the active one", await store.models.active(), 1)
    await store.models.activate(1, meta=pinned)
    equal("one in place of a pinned one", await added(3, instead_of=1), False)
    await store.models.activate(1, meta={"pinned": "no"})
    equal("one in place of the active one", await added(4, instead_of=1), True)
    equal("the active one", await store.models.active(), 4)
    went = [record.activated for record in await store.models.all()]
    equal("which went live", went, [True, False, False, True])


async def settled(store: Store) -> None:
    """If several settle on a setting at the same time, the first decides."""
    await store.meta.set({"a": "1"})
    equal("what was there", await store.meta.settle({"a": "2", "b": "3"}), {"a": "1", "b": "3"})
    equal("meta.all()", await store.meta.all(), {"a": "1", "b": "3"})
    calls = (store.meta.settle({"c": str(number)}) for number in range(5))
    answers = await asyncio.gather(*calls)
    equal("what all found", {answer["c"] for answer in answers}, {await store.meta.get("c")})


async def one_is_elected(store: Store) -> None:
    """A server that is alone does all that one does for all, and goes on doing it."""
    jobs = [await store.elected(job) for job in ("train", "roll up", "train")]
    equal("what it is elected for", jobs, [True] * 3)


async def settings(store: Store) -> None:
    """Settings are kept, alone or with what they belong to."""
    await store.meta.set({"features": "[1]", "a": ""})
    await store.meta.set({"features": "☂"})
    equal("meta.get('features')", await store.meta.get("features"), "☂")
    equal("meta.all()", await store.meta.all(), {"a": "", "features": "☂"})
    first, item = {"features": "one"}, [NewItem("a", (1.0,))]
    await store.items.put("q", item, 5.0, meta=first)
    equal("meta.all()", await store.meta.all(), {"a": "", "features": "one"})
    equal("the catalog's version", await store.catalog.version(), 1)
    second, other = {"features": "two"}, [NewItem("b", (2.0,))]
    for call in (
        partial(store.items.put, "q", other),
        partial(store.items.put, "new", other),
        partial(store.catalog.put, other),
        partial(store.catalog.put, []),
    ):
        await refused(store, partial(call, 6.0, meta=second, based_on=0), CatalogChanged)
    await store.items.put("q", item, 7.0, meta=second, based_on=1)
    equal("the catalog", await store.catalog.put([], 8.0, meta=first, based_on=2), (3, 0))


async def changed_settings(store: Store) -> None:
    """A setting is changed by what it was, or not at all."""
    equal("from nothing", await store.meta.change("changing", lambda text: f"{text}!"), "{}!")
    equal("changed", await store.meta.change("changing", lambda text: f"{text}!"), "{}!!")


async def sums(store: Store) -> None:
    """Sums of minutes and of experiments add up, and so do numbers of a setting."""
    later, first = (
        Minute(60.0, {"clicks": 1.0, "rankings": 2.0}),
        ArmSums("t", 1, "a", 7, 2, 1, 0.5, 0),
    )
    second = ArmSums("t", 2, "b", 7, 1, 0, 0.0, 1)
    await store.meta.set({"key": "value"}, [later, Minute(0.0, {"clicks": 5.0})], [first, second])
    once = await store.meta.add("totals", {"lists": 2, "items": 1}, [Minute(60.0, {"clicks": 1.5})])
    equal("the numbers", once, {"lists": 2, "items": 1})
    again = await store.meta.add("totals", {"lists": 3, "more": 1}, arms=[first])
    equal("the numbers", again, {"lists": 5, "items": 1, "more": 1})
    equal("none", await store.meta.add("totals", {}), again)
    equal("the setting", json.loads(await store.meta.get("totals") or ""), again)
    kept = [(minute.start, minute.values) for minute in await store.meta.minutes(0.0)]
    equal("minutes", kept, [(0.0, {"clicks": 5.0}), (60.0, {"clicks": 2.5, "rankings": 2.0})])
    since = [minute.start for minute in await store.meta.minutes(1.0)]
    equal("those since 1.0", since, [60.0])
    spans = [(minute.start, minute.values) for minute in await store.meta.sums(0.0, 120.0)]
    equal("over two minutes", spans, [(0.0, {"clicks": 7.5, "rankings": 2.0})])
    since = [minute.start for minute in await store.meta.sums(1.0, 20.0)]
    equal("over 20 seconds, since 1.0", since, [60.0])
    equal(
        "sums of arms",
        await store.meta.arm_sums("t"),
        [ArmSums("t", 1, "a", 7, 4, 2, 1.0, 0), second],
    )
    equal("of another", await store.meta.arm_sums("other"), [])


async def room(store: Store) -> None:
    """A store on a disk tells how much room it takes."""
    size = await store.size()
    equal("size().used above 0", size is None or size.used > 0, True)
    equal("size().entries below 0", size is not None and size.entries < 0, False)


async def servers(store: Store) -> None:
    """Servers are listed from when they announce themselves until they leave."""
    equal("servers()", await store.servers(), [])
    for name, about in (("two", "☂"), ("one", "old"), ("one", "new")):
        await store.announce(name, about)
    heard = await store.servers()
    equal("servers()", [(name, about) for name, _, about in heard], [("one", "new"), ("two", "☂")])
    assert all(0.0 <= seconds < 60.0 for _, seconds, _ in heard), f"the times of {heard}"
    await store.announce("two", None)
    await store.announce("three", None)
    equal("servers()", [announced.server for announced in await store.servers()], ["one"])
