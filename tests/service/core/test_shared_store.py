"""Several servers on one store: each notices what the others wrote, and goes on from there.

Two engines share a store in memory, as two servers would share a database. One that wrote behind
the other's back must make it read again, and never may anything be counted twice or not at all.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ebrank.service.api import (
    ChangeFeaturesRequest,
    DeletionRequest,
    ItemIn,
    NewFeature,
    QueryResponse,
    RankRequest,
    Totals,
)
from ebrank.service.core.problems import NotFound
from ebrank.service.engine import Engine
from ebrank.service.settings import Settings
from ebrank.service.store import Store, open
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem
from tests.postgres import Postgres
from tests.service.scenes import Clock, better, click, ids, items
from tests.service.store.blocking import run


async def pair(store: Store) -> tuple[Engine, Engine]:
    clock = Clock()
    return (
        await Engine.open(store, Settings(), clock=clock, timer=clock),
        await Engine.open(store, Settings(), clock=clock, timer=clock),
    )


async def counted(engine: Engine) -> dict[str, tuple[int, int]]:
    return {item.id: (item.shown, item.clicks) for item in (await engine.query("q")).items}


async def in_memory(engine: Engine, store: Store) -> bool:
    """Return whether what an engine has in memory is what the store holds."""
    live, state = await engine._queries.get("q", 0.0), await store.items.load("q")
    assert live is not None
    assert state is not None
    return (
        live.state.version == state.version
        and list(live.state.ids) == list(state.ids)
        and np.array_equal(live.counts, state.counts)
    )


def test_a_list_by_another_server_is_noticed_by_the_next_write() -> None:
    async def scene() -> None:
        store = MemoryStore()
        one, two = await pair(store)
        await one.put_items("q", items(3))
        await two.rank(RankRequest("q"))
        await one.rank(RankRequest("q"))  # made without the other's, which its own write tells
        assert await in_memory(one, store)
        assert set((await counted(one)).values()) == {(2, 0)}
        await one.rank(RankRequest("q"))
        answer = await two.rank(RankRequest("q"))
        assert set((await counted(two)).values()) == {(4, 0)}
        fed = await one.feedback([click("e1", answer.ranking_id, "i0")])  # a list of the other
        assert fed.accepted == 1
        fed = await two.feedback([click("e1", answer.ranking_id, "i0")])
        assert fed.duplicate == 1
        for engine in (one, two):
            assert (await counted(engine))["i0"] == (4, 1)
            await engine.close()
        assert await in_memory(two, store)  # the last to write

    run(scene())


def test_a_write_brings_what_other_servers_counted_and_nothing_is_read_again(
    database: Postgres,
) -> None:
    async def scene() -> None:
        async with open(database.url("news")) as store:
            await told(store)

    async def told(store: Store) -> None:
        one, two = await pair(store)
        await one.put_items("q", items(3))
        await one.rank(RankRequest("q"))
        served = await two.rank(RankRequest("q"))
        await two.feedback([click("e1", served.ranking_id, "i1")])
        before = replace(one.lookups)
        await one.rank(RankRequest("q"))
        assert one.lookups.stale == before.stale + 1
        assert await in_memory(one, store)
        assert (await counted(one))["i1"] == (3, 1)
        assert one.lookups.store == before.store
        await two.put_items("q", [ItemIn("new", [0.1, 0.2])])
        await one.rank(RankRequest("q"))  # whose write says just that it is behind
        assert "new" in ids(await one.rank(RankRequest("q")))
        assert one.lookups.store == before.store + 1

    run(scene())


def test_a_query_that_another_server_deleted_and_gave_again_is_another() -> None:
    async def scene() -> None:
        store = MemoryStore()
        one, two = await pair(store)
        await one.put_items("q", [ItemIn("a", [0.0]), ItemIn("b", [1.0])])
        old = await two.rank(RankRequest("q"))
        await one.delete(DeletionRequest("query", "q"))
        await one.put_items("q", [ItemIn("b", [1.0]), ItemIn("a", [0.0])])
        await one.rank(RankRequest("q"))  # as many writes as before
        fed = await two.feedback([click("e1", old.ranking_id, "a")])
        assert fed.results[0].reason is not None
        assert fed.results[0].reason.startswith("unknown_ranking")
        assert await counted(two) == {"b": (1, 0), "a": (1, 0)}
        again = await two.rank(RankRequest("q"))
        assert sorted(ids(again)) == ["a", "b"]
        assert await in_memory(two, store)
        await one.delete(DeletionRequest("query", "q"))
        await one.put_items("q", [ItemIn("c", [1.0])])
        assert ids(await two.rank(RankRequest("q"))) == ["c"]
        assert await in_memory(two, store)
        await one.delete(DeletionRequest("query", "q"))
        with pytest.raises(NotFound):
            await two.rank(RankRequest("q"))

    run(scene())


def test_items_that_another_server_put_are_found() -> None:
    async def scene() -> None:
        store = MemoryStore()
        one, two = await pair(store)
        await one.put_items("q", items(2))
        assert len(ids(await two.rank(RankRequest("q")))) == 2
        put = await one.put_items("q", [ItemIn("new", [0.1, 0.2])])
        assert (put.added, put.candidates) == (1, 3)
        put = await two.put_items("q", [ItemIn("newer", [0.1, 0.2]), ItemIn("i0", [0.5, 0.5])])
        assert (put.added, put.changed, put.candidates) == (1, 1, 4)
        assert (await two.withdraw("q", "new")).withdrawn
        answer = await one.rank(RankRequest("q"))  # still with the item that was withdrawn
        assert "new" in ids(answer)
        assert "new" not in ids(await one.rank(RankRequest("q")))
        assert sorted(ids(await one.rank(RankRequest("q")))) == ["i0", "i1", "newer"]
        assert await in_memory(one, store)
        assert not (await one.withdraw("q", "new")).withdrawn

    run(scene())


def test_a_model_that_another_server_activated_ranks_from_the_next_list_but_one() -> None:
    async def scene() -> None:
        store = MemoryStore()
        one, two = await pair(store)
        await one.put_items("q", [ItemIn("a", [0.0]), ItemIn("b", [1.0])])
        await one._adopt(better(), against=0)
        assert (one.version, two.version) == (1, 0)
        assert (await two.rank(RankRequest("q"))).model == 0
        assert (await two.rank(RankRequest("q"))).model == two.version == 1
        await one.activate(0)  # which pins it
        await two.rank(RankRequest("q"))
        assert (await two.rank(RankRequest("q"))).model == 0
        assert (await two.models()).pinned

    run(scene())


def test_a_store_written_to_behind_the_back_of_a_server() -> None:
    async def scene() -> None:
        store = MemoryStore()
        engine, _ = await pair(store)
        await engine.put_items("q", items(2))
        await engine.rank(RankRequest("q"))
        await store.items.put("q", [NewItem("smuggled", (0.0, 0.0))], 5.0)
        assert not await in_memory(engine, store)
        await engine.rank(RankRequest("q"))
        assert "smuggled" in ids(await engine.rank(RankRequest("q")))
        assert await in_memory(engine, store)

    run(scene())


class Distant(MemoryStore):
    """A store behind a network: every call waits a little, as long as chance says."""

    def __init__(self, waits: list[int]) -> None:
        super().__init__()
        self._waits = waits
        for group, name in (("items", "load"), ("items", "put"), ("log", "write")):
            part = getattr(self, group)
            setattr(part, name, self._late(getattr(part, name)))

    def _late(self, call: Any) -> Any:  # noqa: ANN401 (as the store's)
        async def late(*given: Any, **named: Any) -> Any:  # noqa: ANN401
            for _ in range(self._waits.pop() if self._waits else 0):
                await asyncio.sleep(0)
            result = await call(*given, **named)
            for _ in range(self._waits.pop() if self._waits else 0):
                await asyncio.sleep(0)
            return result

        return late


@pytest.mark.slow
@hypothesis_settings(max_examples=60, deadline=None)
@given(
    waits=st.lists(st.integers(0, 4), max_size=80),
    acts=st.lists(st.sampled_from("rrrpf"), min_size=2, max_size=14),
)
def test_requests_at_the_same_time_count_once_whatever_the_store_takes(
    waits: list[int], acts: list[str]
) -> None:
    async def scene() -> None:
        store = Distant(list(waits))
        engines = await pair(store)
        await engines[0].put_items("q", items(3))
        served = [await engine.rank(RankRequest("q")) for engine in engines]

        async def act(number: int, kind: str) -> None:
            engine = engines[number % 2]
            if kind == "r":
                await engine.rank(RankRequest("q"))
            elif kind == "p":
                await engine.put_items("q", [ItemIn(f"more{number}", [0.5, 0.5])])
            else:
                name = served[number % 3 % 2].ranking_id
                await engine.feedback([click(f"e{number % 4}", name, f"i{number % 3}")])

        await asyncio.gather(*(act(number, kind) for number, kind in enumerate(acts)))
        expected = [entry async for entry in store.log.entries()]
        for engine in engines:
            await engine.rank(RankRequest("q"))  # whose write tells what is out of date
            view: QueryResponse = await engine.query("q")
            state = await store.items.load("q")
            assert state is not None
            assert [item.id for item in view.items] == list(state.ids)
            if engine is engines[1]:  # the last to write
                shown, clicks = state.counts.sum(axis=2).T.tolist()
                assert [item.shown for item in view.items] == shown
                assert [item.clicks for item in view.items] == clicks
        assert len(expected) >= 2
        for engine in engines:
            await engine.close()

    run(scene())


@pytest.mark.parametrize("count", [2, 20])
def test_a_query_is_read_once_for_all_who_wait_for_it(count: int) -> None:
    async def scene() -> None:
        store = Distant([3] * 50)
        engine, other = await pair(store)
        await other.put_items("q", items(2))
        loads = 0
        load = store.items.load

        async def counting(query: str) -> Any:  # noqa: ANN401
            nonlocal loads
            loads += 1
            return await load(query)

        store.items.load = counting  # type: ignore[method-assign]
        tasks = [asyncio.create_task(engine.query("q")) for _ in range(count)]
        await asyncio.sleep(0)
        tasks[0].cancel()  # the first to ask
        await asyncio.gather(*tasks[1:])
        assert loads == 1

    run(scene())


def test_servers_are_told_and_their_totals_add_up() -> None:
    async def scene() -> None:
        store = MemoryStore()
        one, two = await pair(store)
        for engine in (one, two):
            await engine.start()
        await store.announce("of another version", '{"name": "old", "version": "0.0.9"}')
        await one.put_items("q", items(3))
        for engine, lists in ((one, 1), (two, 3), (one, 1)):
            for _ in range(lists):
                served = await engine.rank(RankRequest("q"))
            await engine.feedback([click(served.ranking_id, served.ranking_id, "i0")])
        for engine in (one, two):
            await engine._beat()
            await engine._activity.save()  # both as chores do
        told = [await engine.insights() for engine in (one, two)]
        assert [known.totals for known in told] == [Totals(5, 3, 3, 3, 1, found=0)] * 2
        first, second = told[1].servers
        assert (first.lists, first.events, first.answers) == (2, 2, False)
        assert (second.lists, second.events, second.answers) == (3, 1, True)
        assert (first.stale, second.stale) == (1, 0)
        assert second.from_memory >= 2
        assert second.seen_seconds < 60.0
        assert one.fleet.size == two.fleet.size == 3
        await one.close()
        assert [server.lists for server in (await two.insights()).servers] == [3]
        await two.close()
        assert [server.server for server in await store.servers()] == ["of another version"]

    run(scene())


def test_an_item_keeps_what_another_server_gave_it() -> None:
    async def scene() -> None:
        store = MemoryStore()
        one, two = await pair(store)
        await one.put_items("q", [ItemIn("a", {"price": 1.0})])
        await one.change_features(ChangeFeaturesRequest(add=[NewFeature("stock")]))
        for engine in (one, two, one, two):
            await engine._beat()
            await engine.rank(RankRequest("q"))
        await one.put_items("q", [ItemIn("a", {"price": 1.0, "stock": 7.0})])
        await two.put_items("q", [ItemIn("a", {"price": 2.0})])  # an older program
        state = await store.items.load("q")
        assert state is not None
        assert state.features.tolist() == [[2.0, 7.0]]
        assert await in_memory(two, store)

    run(scene())
