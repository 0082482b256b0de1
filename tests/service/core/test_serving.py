"""Lists that wait for the store while others change what they are about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ebrank.service.api import DeletionRequest, ItemIn, RankRequest
from ebrank.service.core.engine import Engine
from ebrank.service.core.problems import Problem
from ebrank.service.store.memory import MemoryStore
from tests.service.scenes import ids, play, settings


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

    async def passed(self, task: asyncio.Task[Any]) -> Any:  # noqa: ANN401 (as the task's)
        """Return what a task returns once it may pass."""
        self._open.set()
        return await task


@pytest.mark.parametrize("waits_for", ["items", "catalog"])
@pytest.mark.parametrize("gone", ["withdrawn", "deleted"])
def test_an_item_that_goes_while_a_list_waits_is_rejected_as_if_it_had_gone_before(
    waits_for: str, gone: str
) -> None:
    store = MemoryStore()

    async def scene(engine: Engine) -> None:
        await engine.put_catalog([ItemIn("a", {"stock": 1.0})])
        await engine.put_items("q", [ItemIn("x", {"match": 2.0}), ItemIn("y", {"match": 1.0})])
        await engine.rank(RankRequest("q"))
        if waits_for == "items":
            gate = Gate(store.items, "put")
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
        reason = "withdrawn from this query" if gone == "withdrawn" else "not candidates"
        for answer in (gate.passed(ranking), engine.rank(RankRequest("q", items=["x"]))):
            with pytest.raises(Problem, match=f"{reason}.*'x'"):
                await answer
        assert ids(await engine.rank(RankRequest("q")))

    play(scene, settings(features={"missing": "zero"}), store=store)
