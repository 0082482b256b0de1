"""Lists that wait for the store while others change what they are about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import structs

from ebrank.service.api import DeletionRequest, ItemIn, RankRequest
from ebrank.service.core.items import LISTED_AT_ONCE
from ebrank.service.core.problems import Problem
from tests.service.faulty import FaultyStore
from tests.service.scenes import Scene, click, ids, items, played, settings


class Gate:
    """Holds up the first call of a method until it is opened."""

    def __init__(self, owner: object, method: str) -> None:
        self.reached, self._open = asyncio.Event(), asyncio.Event()
        call: Callable[..., Awaitable[Any]] = getattr(owner, method)

        async def held(*given: Any, **named: Any) -> Any:  # noqa: ANN401 (as the method's)
            if not self.reached.is_set():
                self.reached.set()
                await self._open.wait()
            return await call(*given, **named)

        setattr(owner, method, held)

    def open(self) -> None:
        """Let the call pass."""
        self._open.set()


@pytest.mark.parametrize("waits_for", ["items", "catalog"])
@pytest.mark.parametrize("gone", ["withdrawn", "deleted"])
@played(settings(features={"missing": "zero"}))
async def test_an_item_that_goes_while_a_list_waits_is_rejected_as_if_it_had_gone_before(
    engine: Scene, waits_for: str, gone: str
) -> None:
    await engine.put_catalog([ItemIn("a", {"stock": 1.0})])
    await engine.put_items("q", [ItemIn("x", {"match": 2.0}), ItemIn("y", {"match": 1.0})])
    await engine.ranked()
    if waits_for == "items":
        gate = Gate(engine.store.items, "put")
        request = RankRequest("q", items=[ItemIn("new", {"match": 1.5}), "x"])
    else:
        await engine.put_catalog([ItemIn("a", {"stock": 2.0})])  # which queries must look up
        gate = Gate(engine._catalog, "changes")
        request = RankRequest("q", items=["y", "x"])
    ranking = asyncio.create_task(engine.rank(request))
    await asyncio.wait_for(gate.reached.wait(), 5.0)
    if gone == "withdrawn":
        await engine.withdraw("q", "x")
    else:
        await engine.delete(DeletionRequest("item", "x"))
    gate.open()
    reason = "withdrawn from this query" if gone == "withdrawn" else "not candidates"
    for answer in (ranking, engine.ranked(items=["x"])):
        with pytest.raises(Problem, match=f"{reason}.*'x'"):
            await answer
    assert ids(await engine.ranked())


@pytest.mark.parametrize("known", [0, 100])
@played()
async def test_many_new_items_of_a_list_are_added_a_portion_at_a_time(
    engine: Scene, known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the server would stand still: they are written as if they had been put."""
    put, portions, many = engine.store.items.put, list[int](), items(600)

    async def noted(query: str, new: Any, *given: Any, **named: Any) -> int:  # noqa: ANN401
        portions.append(len(new))
        return int(await put(query, new, *given, **named))

    if known:
        await engine.put_items("q", many[:known])
    monkeypatch.setattr(engine.store.items, "put", noted)
    answer = await engine.ranked(k=600, items=[*many])
    assert len(answer.items) == 600
    assert max(portions) <= LISTED_AT_ONCE
    assert sum(portions) == 600 - known
    portions.clear()
    await engine.ranked(items=[*many])
    wrong = [ItemIn(f"n{at}", [1.0, 2.0]) for at in range(400)]
    with pytest.raises(Problem, match="3 features, not 2"):
        await engine.ranked(items=[*wrong, ItemIn("wrong", [1.0, 2.0, 3.0])])
    assert not portions


@played()
async def test_a_list_does_not_bring_back_what_is_withdrawn_while_it_adds_others(
    engine: Scene,
) -> None:
    many = items(300)
    await engine.put_items("q", many[-1:])
    gate = Gate(engine.store.items, "put")
    changed = ItemIn(many[-1].id, [0.0, 0.0])
    ranking = asyncio.create_task(engine.ranked(items=[*many[:-1], changed]))
    await asyncio.wait_for(gate.reached.wait(), 5.0)
    await engine.withdraw("q", changed.id)
    gate.open()
    with pytest.raises(Problem, match=f"withdrawn from this query.*{changed.id}"):
        await ranking
    assert [item.id for item in (await engine.query("q")).withdrawn] == [changed.id]


@played(settings(ranking={"exploration_budget": 0.1}), count=4)
async def test_a_list_that_is_not_counted_leaves_nothing_but_candidates(engine: Scene) -> None:
    first = await engine.ranked(user="u")
    before = (await engine.insights()).totals
    for _ in range(3):
        again = await engine.ranked(user="u", k=4, count=False)
        assert ids(again) == ids(first), "a preview of what the user sees"
        await engine.ranked(user="v", items=["i0", ItemIn("new", [1.0, 1.0])], count=False)
    assert (again.counted, again.ranking_id) == (False, "uncounted")
    assert await engine.rejected(click("e", again.ranking_id, "i0")) == ["uncounted"]
    after = (await engine.insights()).totals
    assert after == structs.replace(before, items=5)
    assert await shown(engine) == [1, 1, 1, 1, 0]
    assert len(await engine.lists()) == 1
    assert (await engine.ranked(user="v")).counted, "not a refresh of what was not counted"
    with pytest.raises(Problem, match="unknown query"):
        await engine.ranked("unknown", count=False)


async def shown(engine: Scene) -> list[int]:
    return [item.shown for item in (await engine.query("q")).items]


@played(count=6)
async def test_requests_of_a_user_at_the_same_time_are_one_impression(engine: Scene) -> None:
    gate = Gate(engine.store.log, "write")
    offsets = (0, 0, 3, 0, 3)  # refreshes of both pages
    asked = [asyncio.create_task(engine.ranked(k=3, user="u", offset=offset)) for offset in offsets]
    await asyncio.wait_for(gate.reached.wait(), 5.0)
    other = await engine.ranked(k=3, user="v")  # who need not wait
    gate.open()
    first, again, second, *_ = lists = [ids(await one) for one in asked]
    assert (again, lists[3], lists[4]) == (first, first, second)
    assert len({*first, *second}) == 6
    times = {item.id: item.shown for item in (await engine.query("q")).items}
    assert times == {item: 1 + (item in ids(other)) for item in times}
    assert not engine.stages.windows._making


@pytest.mark.parametrize("ends", ["fails", "is cancelled"])
@played(on=FaultyStore, count=2)
async def test_a_list_that_is_not_logged_does_not_hold_up_the_next_one_of_its_user(
    engine: Scene, ends: str
) -> None:
    gate = Gate(engine.store.log, "write")
    first = asyncio.create_task(engine.ranked(user="u"))
    await asyncio.wait_for(gate.reached.wait(), 5.0)
    later = [asyncio.create_task(engine.ranked(user="u")) for _ in range(2)]
    await asyncio.sleep(0)
    later.pop().cancel()  # one that waits leaves
    if ends == "fails":
        engine.store.full = True
        gate.open()
        assert not (await first).counted
        engine.store.full = False
    else:
        first.cancel()
    assert (await asyncio.wait_for(later[0], 5.0)).counted
    assert await shown(engine) == [1, 1]
