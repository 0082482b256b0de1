"""What the first items fix, and what waits for the disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ebrank.service.api import ItemIn
from ebrank.service.core.engine import Engine
from ebrank.service.core.problems import Problem, Unavailable
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem
from tests.service.scenes import better, items, play


class Disk(MemoryStore):
    """Fails when told to, and notes who flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.flushes = 0

    def put_items(self, query: str, items: Sequence[NewItem], time: float, **more: Any) -> None:  # noqa: ANN401
        if self.broken:
            raise StoreError("the disk is full")
        super().put_items(query, items, time, **more)

    def flush(self) -> None:
        self.flushes += 1


def test_items_that_were_not_stored_fix_no_schema() -> None:
    store = Disk()

    async def scene(engine: Engine) -> None:
        store.broken = True
        with pytest.raises(Unavailable):
            await engine.put_items("q", [ItemIn("a", [1.0, 2.0])])
        store.broken = False
        assert (await engine.put_items("q", [ItemIn("a", [1.0])])).added == 1
        with pytest.raises(Problem, match="2 features, not 1"):
            await engine.put_items("q", [ItemIn("a", [1.0, 2.0])])

    play(scene, store=store)

    async def later(engine: Engine) -> None:
        with pytest.raises(Problem, match="2 features, not 1"):
            await engine.put_items("q", [ItemIn("a", [1.0, 2.0])])

    play(later, store=store)


@pytest.mark.parametrize("nothing", [[], {}])
def test_the_first_items_need_features(nothing: list[float | None]) -> None:
    async def scene(engine: Engine) -> None:
        with pytest.raises(Problem, match=r"'a' has no features.*Give a constant"):
            await engine.put_items("q", [ItemIn("a", nothing)])
        assert (await engine.put_items("q", [ItemIn("a", {"price": 1.0})])).added == 1

    play(scene)


def test_changes_wait_for_a_flush_that_others_may_share() -> None:
    """Nothing flushes by itself: the loop would stand still for it."""
    store = Disk()

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(2))
        assert store.flushes == 1
        await engine.withdraw("q", "i0")
        assert store.flushes == 2
        engine._versions.adopt(better(), against=0)
        assert store.flushes == 2
        await engine._adopt(better(), against=1)
        assert store.flushes == 3
        await engine.activate(1)
        assert store.flushes == 4

    play(scene, store=store)


def test_an_item_is_given_once() -> None:
    async def scene(engine: Engine) -> None:
        twice = [ItemIn("a", [1.0]), ItemIn("b", [1.0]), ItemIn("a", [2.0])]
        with pytest.raises(Problem, match="item 'a' is given 2 times") as told:
            await engine.put_items("q", twice)
        assert told.value.status == 422
        assert (await engine.put_items("q", twice[:2])).added == 2
        assert (await engine.put_items("q", [*twice[1:], ItemIn("c", [0.0])])).changed == 2

    play(scene)
