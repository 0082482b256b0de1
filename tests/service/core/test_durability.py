"""What the engine promises about its store: nothing lost, nothing counted twice, nothing half.

While the store fails, lists are made from memory, marked, and not counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from ebrank.service import api
from ebrank.service.api import ItemIn
from ebrank.service.core.problems import Problem
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem, RankingEntry
from ebrank.service.store.sqlite import SqliteStore
from tests.service.faulty import FaultyStore
from tests.service.scenes import Scene, better, click, ids, items, played, settings


@played(on=SqliteStore, count=5)
async def test_what_was_served_survives_a_restart(engine: Scene) -> None:
    answer = await engine.ranked(k=3)
    first, second, _ = ids(answer)
    await engine.clicked(answer, first)
    view = await engine.query("q")
    await engine.close()
    engine.clock.now -= 1000.0  # the machine's clock went back meanwhile
    later = await engine.opened()
    assert await later.query("q") == view
    assert await later.clicked(answer, first, second) == 1, "the first is a duplicate"
    assert (await later.ranked()).ranking_id != answer.ranking_id
    with pytest.raises(Problem, match="not 2"):
        await later.put_items("q", [ItemIn("x", [1.0])])
    times = [
        entry.time if isinstance(entry, RankingEntry) else entry.received
        async for entry in engine.store.log.entries()
    ]
    assert times == sorted(times)


@played(on=SqliteStore, count=2)
async def test_a_caller_that_goes_away_takes_nobody_along(engine: Scene) -> None:
    answer = await engine.ranked()
    for number in range(20):
        task = asyncio.create_task(engine.feedback([click(f"e{number}", answer.ranking_id, "i0")]))
        await asyncio.sleep(0)
        task.cancel()
    fed = await asyncio.wait_for(
        engine.feedback([click("last", answer.ranking_id, "i1")]), timeout=10
    )
    assert fed.accepted == 1
    events = await engine.events()
    assert {entry.item: entry.event_id for entry in events} == {"i0": "e0", "i1": "last"}


class LosingStore(MemoryStore):
    """Loses what was written if it is flushed while it `fails`, as a crashed database does."""

    fails = False
    losses = 0

    @property
    def incarnation(self) -> int:
        return super().incarnation + self.losses

    async def flush(self) -> None:
        self.losses += self.fails


async def one_line() -> AsyncIterator[bytes]:
    yield b'{"id": "a", "features": {"x": 2.0}}'


@pytest.mark.parametrize(
    "write",
    [
        lambda engine: engine.put_items("q", [ItemIn("a")]),
        lambda engine: engine.put_catalog([ItemIn("a", {"x": 2.0})]),
        lambda engine: engine.load_catalog(one_line()),
        lambda engine: engine.withdraw_from_all("a"),
        lambda engine: engine.withdraw("q", "a"),
        lambda engine: engine.delete(api.DeletionRequest("item", "a")),
        lambda engine: engine.retract(api.RetractionRequest(query="q", apply=True)),
        lambda engine: engine.change_features(api.ChangeFeaturesRequest(require=["x"])),
        lambda engine: engine.activate(1),
        lambda engine: engine._adopt(better(), against=1),
    ],
)
@played(on=LosingStore)
async def test_a_write_that_was_lost_before_the_flush_is_not_acknowledged(
    engine: Scene, write: Callable[[Scene], Awaitable[object]]
) -> None:
    await engine.put_catalog([ItemIn("a", {"x": 1.0})])
    await engine.put_items("q", [ItemIn("a")])
    await engine._versions.adopt(better(), against=0)
    engine.store.fails = True
    with pytest.raises(StoreError):
        await write(engine)
    engine.store.fails = False


@pytest.mark.parametrize(("durability", "flushes"), [("process", 0), ("disk", 1)])
@played(lambda durability: settings(store={"durability": durability}), on=FaultyStore, count=2)
async def test_durability_disk_waits_for_the_flush(
    engine: Scene, durability: str, flushes: int
) -> None:
    engine.store.flushes = 0
    await engine.ranked()
    assert engine.store.flushes == flushes


@played(on=FaultyStore)
async def test_lists_go_on_and_are_not_counted(engine: Scene) -> None:
    await engine.put_items("tea", items(5))
    await engine.store.items.put("mate", [NewItem("a", (1.0, 1.0))], 1.0)
    good = await engine.ranked("tea", k=3, user="ann")
    before = await engine.query("tea")
    engine.store.full = True
    list_ = await engine.ranked("tea", k=3, user="ann")
    assert (list_.counted, list_.ranking_id) == (False, api.UNCOUNTED)
    assert ids(list_) == ids(good)  # within the window, as ever
    some = await engine.ranked("tea", items=["i1", ItemIn("new", [1.0, 1.0])])
    assert ids(some) == ["i1"]  # what cannot be stored cannot be listed
    with pytest.raises(StoreError):
        await engine.ranked("tea", items=[ItemIn("new", [1.0, 1.0])])
    assert await engine.query("tea") == before
    assert engine.failures.lasting
    engine.store.damaged = True
    with pytest.raises(StoreError):
        await engine.ranked("mate")  # which is not in memory
    engine.store.damaged = False
    engine.store.full = False
    told = await engine.feedback([click("e1", list_.ranking_id, "i1")])
    assert (told.results[0].status, told.rejected) == ("rejected", 1)
    assert (told.results[0].reason or "").startswith("uncounted: ")
    again = await engine.ranked("tea", k=3)
    assert again.counted
    counted = sum(item.shown for item in (await engine.query("tea")).items)
    assert counted == 6  # two lists of three
