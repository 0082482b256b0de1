"""What the first items fix, and what waits for the disk."""

from __future__ import annotations

import numpy as np
import pytest

from ebrank.service.api import ItemIn
from ebrank.service.core.problems import Problem
from ebrank.service.engine import Engine
from ebrank.service.store.base import StoreError
from tests.service.faulty import FaultyStore
from tests.service.scenes import Opened, better, played, ranked, settings, stored


@played(on=FaultyStore)
async def test_items_that_were_not_stored_fix_no_schema(
    engine: Engine, store: FaultyStore, opened: Opened
) -> None:
    wider = [ItemIn("a", [1.0, 2.0])]
    store.full = True
    with pytest.raises(StoreError):
        await engine.put_items("q", wider)
    store.full = False
    assert (await engine.put_items("q", [ItemIn("a", [1.0])])).added == 1
    for each in (engine, await opened()):
        with pytest.raises(Problem, match="2 features, not 1"):
            await each.put_items("q", wider)


@pytest.mark.parametrize("nothing", [[], {}])
@played()
async def test_the_first_items_need_features(engine: Engine, nothing: list[float | None]) -> None:
    with pytest.raises(Problem, match=r"'a' has no features.*send a constant"):
        await engine.put_items("q", [ItemIn("a", nothing)])
    assert (await engine.put_items("q", [ItemIn("a", {"price": 1.0})])).added == 1


@played(on=FaultyStore, count=2)
async def test_changes_wait_for_a_flush_that_others_may_share(
    engine: Engine, store: FaultyStore
) -> None:
    """Nothing flushes by itself: the loop would stand still for it."""
    assert store.flushes == 1
    await engine.withdraw("q", "i0")
    assert store.flushes == 2
    await engine._versions.adopt(better(), against=0)
    assert store.flushes == 2
    await engine._adopt(better(), against=1)
    assert store.flushes == 3
    await engine.activate(1)
    assert store.flushes == 4


@played()
async def test_an_item_is_given_once(engine: Engine) -> None:
    twice = [ItemIn("a", [1.0]), ItemIn("b", [1.0]), ItemIn("a", [2.0])]
    with pytest.raises(Problem, match="item 'a' appears 2 times") as told:
        await engine.put_items("q", twice)
    assert told.value.status == 422
    assert (await engine.put_items("q", twice[:2])).added == 2
    assert (await engine.put_items("q", [*twice[1:], ItemIn("c", [0.0])])).changed == 2


@played(settings(features={"missing": "mean"}), on=FaultyStore)
async def test_features_sent_again_with_a_rank_are_not_written_again(
    engine: Engine, store: FaultyStore
) -> None:
    some: list[str | ItemIn]
    some = [ItemIn("a", {"x": 0.1, "y": None}), ItemIn("b", {"x": 2.0, "y": 3.0})]
    await ranked(engine, items=some)
    assert store.puts == 1
    await ranked(engine, items=[*some, "a"])
    assert store.puts == 1
    changed = [
        ItemIn("a", {"x": 0.1}),
        ItemIn("b", {"x": 2.0, "y": 3.5}),
        ItemIn("c", {"x": 0.0}),
    ]
    await ranked(engine, items=list(changed))
    assert store.puts == 2
    state = await stored(store)
    assert state.version == 5, "two writes of items and three lists"
    expected = np.array([[0.1, np.nan], [2.0, 3.5], [0.0, np.nan]], np.float32)
    np.testing.assert_array_equal(state.features, expected)
    await engine.put_items("q", changed)  # who may change items always writes
    assert store.puts == 3
