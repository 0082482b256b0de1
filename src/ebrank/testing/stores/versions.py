"""Checks of what a write says about those of other servers."""

from __future__ import annotations

from dataclasses import replace

from ebrank.service.core.live import LiveQuery
from ebrank.service.store.records import ModelRecord
from ebrank.testing.histories import event, first_shown, new_items, ranking
from ebrank.testing.stores.checking import Stores, equal, refused, state_of


async def versions(stores: Stores) -> None:
    """Each write to a query, and nothing else, advances its version by one."""
    async with stores.new() as store:

        async def known() -> list[int]:
            states = [await store.items.load(query) for query in "qp"]
            return [0 if state is None else state.version for state in states]

        equal("the version of a new query", await store.items.put("q", new_items("a"), 1.0), 1)
        equal("versions", await known(), [1, 0])
        equal("the next", await store.items.put("q", new_items(*"abc"), 1.0), 2)
        equal("that of another query", await store.items.put("p", new_items("a"), 1.0), 1)
        equal("a put without items", await store.items.put("q", [], 1.0), 2)
        equal("a withdrawal", await store.items.withdraw("q", "c", 1.0), 3)
        equal("one of nothing", await store.items.withdraw("q", "c", 1.0), None)
        one, two = ranking("r1", "ab"), ranking("r2", "a", query="p")
        commit = await store.log.write([one, two, event("e1", one, "a")])
        equal("versions after a write", commit.versions, {"q": 4, "p": 2})
        commit = await store.log.write([event("e1", one, "a")])
        equal("versions after a duplicate", commit.versions, {"q": 5})
        await refused(store, lambda: store.log.write([ranking("r1", "a")]))
        await store.log.roll_up(1000.0)
        await store.meta.set({"key": "value"})
        equal("versions", await known(), [5, 2])


async def news(stores: Stores) -> None:
    """A write may say what others have counted since a version; that, and no more, is new."""
    async with stores.new() as store:
        await store.items.put("q", new_items(*"abcd"), 1.0)
        await store.items.put("p", new_items("a"), 1.0)
        ours = await state_of(store)
        alone = await store.log.write([ranking("r0", "d")], known=lambda _: ours.version)
        equal("news of nobody", alone.news, {})
        ours = await state_of(store)
        one = ranking("r1", "ab")
        await store.log.write([one, event("e1", one, "b")])
        last = ranking("r2", "ca")
        commit = await store.log.write([last], known=lambda _: ours.version)
        now = await state_of(store)
        equal("the version", commit.versions, {"q": now.version})
        for query, found in commit.news.items():
            equal("whose news", query, "q")
            caught_up = LiveQuery.read(ours, seed=0, since=0.0)
            equal("since when", found.since, ours.version)
            caught_up.catch_up(now.version - 1, found)
            caught_up.add(last, [2, 0])
            equal("the counts", caught_up.counts.tolist(), now.counts.tolist())
            equal("first_shown", first_shown(caught_up.state), first_shown(now))
        for change in (
            lambda: store.items.put("q", new_items("e"), 9.0),
            lambda: store.items.withdraw("q", "e", 9.0),
            lambda: store.deletions.item("e", "gone", "digest", 9.0),
        ):
            before = (await state_of(store)).version
            await change()
            await store.log.write([replace(one, id=f"r{before}a")])
            later = [replace(one, id=f"r{before}b"), ranking(f"r{before}c", "a", query="p")]
            known = {"q": before, "p": None}
            commit = await store.log.write(later, known=known.__getitem__)
            equal("news where items have changed", commit.news, {})


async def active_model_found(stores: Stores) -> None:
    """A write says which model it found active."""
    async with stores.new() as store:
        await store.items.put("q", new_items(*"ab"), 1.0)
        for number, active in enumerate((0, 1, 0)):
            if number == 1:
                await store.models.add(ModelRecord(1, 5.0, 10, None, None, True), b"one")
            await store.models.activate(active)
            commit = await store.log.write([ranking(f"r{number}", "ab")])
            equal("the active model", commit.model, active)


async def epochs(stores: Stores) -> None:
    """What was made of what another epoch remembered is refused, and leaves nothing."""
    async with stores.new() as store:
        await store.items.put("q", new_items(*"ab"), 1.0)
        now = store.epoch
        await store.log.write([ranking("r1", "ab")], epoch=now)
        await refused(store, lambda: store.log.write([ranking("r2", "ab")], epoch=now + 1))
        equal("the epoch", store.epoch, now)
