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

from ebrank.environment.config import SettingsError
from ebrank.service.api import ChangeFeaturesRequest, DeletionRequest, ItemIn, NewFeature, Totals
from ebrank.service.core.problems import NotFound
from ebrank.service.settings import Settings
from ebrank.service.store import Store, open
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem
from tests.postgres import Postgres
from tests.service.scenes import Scene, better, click, ids, items, played, settings, stored
from tests.service.store.blocking import run


async def in_memory(engine: Scene, store: Store) -> bool:
    """Return whether what an engine has in memory is what the store holds."""
    live, state = await engine.live(), await stored(store)
    return (
        live.state.version == state.version
        and list(live.state.ids) == list(state.ids)
        and np.array_equal(live.counts, state.counts)
    )


@played(count=3, pair=True)
async def test_a_list_by_another_server_is_noticed_by_the_next_write(engine: Scene) -> None:
    await engine.other.ranked()
    await engine.ranked()  # made without the other's, which its own write tells
    assert await in_memory(engine, engine.store)
    assert set((await engine.counts()).values()) == {(2, 0)}
    await engine.ranked()
    answer = await engine.other.ranked()
    assert set((await engine.other.counts()).values()) == {(4, 0)}
    assert await engine.clicked(answer, "i0") == 1  # a list of the other
    assert await engine.other.clicked(answer, "i0") == 0  # a duplicate
    for each in (engine, engine.other):
        assert (await each.counts())["i0"] == (4, 1)
    assert await in_memory(engine.other, engine.store)  # the last to write


async def test_a_write_brings_what_other_servers_counted_and_nothing_is_read_again(
    database: Postgres,
) -> None:
    async with open(database.url("news")) as store:
        one, two = [await Scene.open(store, Settings()) for _ in range(2)]
        await one.put_items("q", items(3))
        await one.ranked()
        await two.clicked(await two.ranked(), "i1")
        before = replace(one.lookups)
        await one.ranked()
        assert one.lookups.stale == before.stale + 1
        assert await in_memory(one, store)
        assert (await one.counts())["i1"] == (3, 1)
        assert one.lookups.store == before.store
        await two.put_items("q", [ItemIn("new", [0.1, 0.2])])
        await one.ranked()  # whose write says just that it is behind
        assert "new" in ids(await one.ranked())
        assert one.lookups.store == before.store + 1


@played(pair=True)
async def test_a_query_that_another_server_deleted_and_gave_again_is_another(engine: Scene) -> None:
    async def again(*names: str) -> None:
        await engine.delete(DeletionRequest("query", "q"))
        await engine.put_items("q", [ItemIn(name, [1.0]) for name in names])

    await engine.put_items("q", [ItemIn("a", [0.0]), ItemIn("b", [1.0])])
    old = await engine.other.ranked()
    await again("b", "a")
    await engine.ranked()  # as many writes as before
    assert await engine.other.rejected(click("e1", old.ranking_id, "a")) == ["unknown_ranking"]
    assert await engine.other.counts() == {"b": (1, 0), "a": (1, 0)}
    assert sorted(ids(await engine.other.ranked())) == ["a", "b"]
    assert await in_memory(engine.other, engine.store)
    await again("c")
    assert ids(await engine.other.ranked()) == ["c"]
    assert await in_memory(engine.other, engine.store)
    await engine.delete(DeletionRequest("query", "q"))
    with pytest.raises(NotFound):
        await engine.other.ranked()


@played(count=2, pair=True)
async def test_items_that_another_server_put_are_found(engine: Scene) -> None:
    assert len(ids(await engine.other.ranked())) == 2
    put = await engine.put_items("q", [ItemIn("new", [0.1, 0.2])])
    assert (put.added, put.candidates) == (1, 3)
    put = await engine.other.put_items("q", [ItemIn("newer", [0.1, 0.2]), ItemIn("i0", [0.5, 0.5])])
    assert (put.added, put.changed, put.candidates) == (1, 1, 4)
    assert (await engine.other.withdraw("q", "new")).withdrawn
    assert "new" in ids(await engine.ranked())  # still with the item that was withdrawn
    assert "new" not in ids(await engine.ranked())
    assert sorted(ids(await engine.ranked())) == ["i0", "i1", "newer"]
    assert await in_memory(engine, engine.store)
    assert not (await engine.withdraw("q", "new")).withdrawn
    await engine.store.items.put("q", [NewItem("smuggled", (0.0, 0.0))], 5.0)  # by nobody it knows
    assert not await in_memory(engine, engine.store)
    await engine.ranked()
    assert "smuggled" in ids(await engine.ranked())
    assert await in_memory(engine, engine.store)


@played(pair=True)
async def test_a_model_that_another_server_activated_ranks_from_the_next_list_but_one(
    engine: Scene,
) -> None:
    await engine.put_items("q", [ItemIn("a", [0.0]), ItemIn("b", [1.0])])
    await engine._adopt(better(), against=0)
    assert (engine.version, engine.other.version) == (1, 0)
    assert [(await engine.other.ranked()).model for _ in range(2)] == [0, 1]
    assert engine.other.version == 1
    await engine.activate(0)  # which pins it
    assert [(await engine.other.ranked()).model for _ in range(2)] == [1, 0]
    assert (await engine.other.models()).pinned


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
@hypothesis_settings(max_examples=60)
@given(
    waits=st.lists(st.integers(0, 4), max_size=80),
    acts=st.lists(st.sampled_from("rrrpf"), min_size=2, max_size=14),
)
def test_requests_at_the_same_time_count_once_whatever_the_store_takes(
    waits: list[int], acts: list[str]
) -> None:
    async def scene() -> None:
        store = Distant(list(waits))
        engines = [await Scene.open(store, Settings()) for _ in range(2)]
        await engines[0].put_items("q", items(3))
        served = [await engine.ranked() for engine in engines]

        async def act(number: int, kind: str) -> None:
            engine = engines[number % 2]
            if kind == "r":
                await engine.ranked()
            elif kind == "p":
                await engine.put_items("q", [ItemIn(f"more{number}", [0.5, 0.5])])
            else:
                name = served[number % 3 % 2].ranking_id
                await engine.feedback([click(f"e{number % 4}", name, f"i{number % 3}")])

        await asyncio.gather(*(act(number, kind) for number, kind in enumerate(acts)))
        assert len([entry async for entry in store.log.entries()]) >= 2
        for engine in engines:
            await engine.ranked()  # whose write tells what is out of date
            state = await stored(store)
            assert list(await engine.counts()) == list(state.ids)
        shown = [tuple(row) for row in state.counts.sum(axis=2).tolist()]
        assert list((await engine.counts()).values()) == shown  # of the last to write
        for engine in engines:
            await engine.close()

    run(scene())


@pytest.mark.parametrize("count", [2, 20])
@played(on=lambda: Distant([3] * 50), pair=True)
async def test_a_query_is_read_once_for_all_who_wait_for_it(engine: Scene, count: int) -> None:
    await engine.other.put_items("q", items(2))
    load, loads = engine.store.items.load, list[str]()

    async def counting(query: str) -> Any:  # noqa: ANN401
        loads.append(query)
        return await load(query)

    engine.store.items.load = counting
    tasks = [asyncio.create_task(engine.query("q")) for _ in range(count)]
    await asyncio.sleep(0)
    tasks[0].cancel()  # the first to ask
    await asyncio.gather(*tasks[1:])
    assert loads == ["q"]


@played(pair=True)
async def test_servers_are_told_and_their_totals_add_up(engine: Scene) -> None:
    both = engine, engine.other
    for each in both:
        await each.start()
    await engine.store.announce("of another version", '{"name": "old", "version": "0.0.9"}')
    await engine.put_items("q", items(3))
    for each, lists in ((engine, 1), (engine.other, 3), (engine, 1)):
        for _ in range(lists):
            served = await each.ranked()
        await each.clicked(served, "i0")
    for each in both:
        await each.fleet.beat()
        await each._activity.save()  # both as chores do
    views = [await each.insights() for each in both]
    assert [view.totals for view in views] == [Totals(5, 3, 3, 3, 1, found=0)] * 2
    first, second = views[1].servers
    assert (first.lists, first.events, first.stale, first.answers) == (2, 2, 1, False)
    assert (second.lists, second.events, second.stale, second.answers) == (3, 1, 0, True)
    assert second.from_memory >= 2
    assert second.seen_seconds < 60.0
    assert engine.fleet.size == engine.other.fleet.size == 3
    await engine.close()
    assert [server.lists for server in (await engine.other.insights()).servers] == [3]
    await engine.other.close()
    assert [server.server for server in await engine.store.servers()] == ["of another version"]


@played(pair=True)
async def test_an_item_keeps_what_another_server_gave_it(engine: Scene) -> None:
    await engine.put_items("q", [ItemIn("a", {"price": 1.0})])
    await engine.change_features(ChangeFeaturesRequest(add=[NewFeature("stock")]))
    for each in (engine, engine.other, engine, engine.other):
        await each.fleet.beat()
        await each.ranked()
    await engine.put_items("q", [ItemIn("a", {"price": 1.0, "stock": 7.0})])
    await engine.other.put_items("q", [ItemIn("a", {"price": 2.0})])  # an older program
    state = await engine.stored()
    assert state.features.tolist() == [[2.0, 7.0]]
    assert await in_memory(engine.other, engine.store)


@pytest.mark.parametrize(
    "different",
    [
        {"ranking": {"seed": 7}},
        {"ranking": {"exploration_budget": 0.01}},
        {"events": {"impressions": "confirmed"}},
        {"events": {"half_life_days": 7.0}},
        {"store": {"retention_seconds": 7 * 86400.0}},
        {"examination": {"cutoff": 3}},
    ],
)
@played()
async def test_a_server_with_other_rules_does_not_start_beside_others(
    engine: Scene, different: dict[str, Any]
) -> None:
    [(section, values)] = different.items()
    [name] = values
    await engine.fleet.beat()
    await engine.opened()  # with the same
    with pytest.raises(SettingsError, match=rf"{section}\.{name} is .* stop the others first"):
        await engine.opened(settings(**different))
    await engine.close()
    await engine.opened(settings(**different))
