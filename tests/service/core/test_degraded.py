"""Degraded mode: while the store fails, lists are made from memory, marked, and not counted."""

from __future__ import annotations

import pytest

from ebrank.service import api
from ebrank.service.api import ItemIn
from ebrank.service.engine import Engine
from ebrank.service.store.base import StoreError
from ebrank.service.store.records import NewItem
from tests.service.faulty import FaultyStore
from tests.service.scenes import click, ids, items, played, ranked, settings


@played(on=FaultyStore)
async def test_lists_go_on_and_are_not_counted(engine: Engine, store: FaultyStore) -> None:
    said: list[str] = []
    engine.on_failure = lambda problem: said.append(str(problem))
    await engine.put_items("tea", items(5))
    good = await ranked(engine, "tea", k=3, user="ann")
    before = await engine.query("tea")
    store.full = True
    list_ = await ranked(engine, "tea", k=3, user="ann")
    assert (list_.degraded, list_.ranking_id) == (True, api.UNCOUNTED)
    assert ids(list_) == ids(good)  # within the window, as ever
    some = await ranked(engine, "tea", items=["i1", ItemIn("new", [1.0, 1.0])])
    assert ids(some) == ["i1"]  # what cannot be stored cannot be listed
    assert await engine.query("tea") == before
    assert len(said) == 2
    store.full = False
    told = await engine.feedback([click("e1", list_.ranking_id, "i1")])
    assert (told.results[0].status, told.rejected) == ("rejected", 1)
    assert (told.results[0].reason or "").startswith("uncounted: ")
    again = await ranked(engine, "tea", k=3)
    assert not again.degraded
    counted = sum(item.shown for item in (await engine.query("tea")).items)
    assert counted == 6  # two lists of three


@played(on=FaultyStore)
async def test_items_not_in_memory_are_not_made_up(engine: Engine, store: FaultyStore) -> None:
    await store.items.put("tea", [NewItem("a", (1.0,))], 1.0)
    store.damaged = store.full = True
    with pytest.raises(StoreError):
        await ranked(engine, "tea")
    store.damaged = store.full = False
    await ranked(engine, "tea")
    store.full = True
    assert (await ranked(engine, "tea")).degraded
    with pytest.raises(StoreError):
        await ranked(engine, "tea", items=[ItemIn("new", [1.0])])
    store.full = False


@played(settings(ranking={"degraded": False}), on=FaultyStore, count=3)
async def test_it_can_be_switched_off(engine: Engine, store: FaultyStore) -> None:
    store.full = True
    with pytest.raises(StoreError):
        await ranked(engine)
    store.full = False


@played(settings(ranking={"mode": "shadow"}), on=FaultyStore, count=3)
async def test_shadow_orders_stay_whole(engine: Engine, store: FaultyStore) -> None:
    await ranked(engine, items=["i2", "i1"])
    store.full = True
    answer = await ranked(engine, items=["i2", "i1"])
    assert (ids(answer), answer.degraded) == (["i2", "i1"], True)
    assert isinstance(answer.would_rank, list)
    with pytest.raises(StoreError):
        await ranked(engine, items=["i2", ItemIn("new", [1.0, 1.0])])
    store.full = False
