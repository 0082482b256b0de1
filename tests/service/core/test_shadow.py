"""Shadow mode: the caller's order is served and learned from; EBRank's is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ebrank.service.api import ItemIn
from ebrank.service.core.problems import Problem
from tests.service.scenes import Scene, click, ids, played, settings

SHADOW = settings(ranking={"mode": "shadow", "k": 2}, insights={"new_seconds": 50.0})


@played(SHADOW, count=3)
async def test_the_callers_order_is_served_and_ours_is_told(engine: Scene) -> None:
    order = ["i2", "i0", "i1"]
    for _ in range(20):
        answer = await engine.ranked(items=order)
        assert ids(answer) == order[:2]
        await engine.clicked(answer, "i0")
    assert isinstance(answer.would_rank, list)
    assert answer.would_rank[0] == "i0"  # clicked at every turn, one rank below the top
    assert len(answer.would_rank) == 2
    engine.clock.now += 100.0
    new = ItemIn("new", [0.5, 0.5])
    last = await engine.ranked(items=[*order[:2], new], explain=True)
    assert ids(last) == order[:2]
    assert not any(item.explored for item in last.items)
    told = await engine.insights()
    assert told.mode == "shadow"
    assert told.shadow is not None
    assert told.shadow.rankings == 21
    assert 0 < told.shadow.different <= 1
    assert 0 < told.shadow.overlap <= 1
    assert told.shadow.gain > 0
    assert told.shadow.served_new_items == pytest.approx(20 / 21)
    assert told.exploration.explored == 0
    state = {item.id: item for item in (await engine.query("q")).items}
    assert (state["i2"].shown, state["i0"].clicks, state["i1"].shown) == (21, 20, 0)
    entries = await engine.lists()
    assert all(len(entry.would_rank) == 2 for entry in entries)
    assert entries[-2].items == ("i2", "i0")
    with pytest.raises(Problem, match="must give its own order"):
        await engine.ranked()


async def compared(engine: Scene, **request: Any) -> tuple[int, float]:  # noqa: ANN401 (any field)
    """Return how many more lists are compared after a request, and the gain of them together."""
    before = (await engine.insights()).shadow
    await engine.ranked(**request)
    after = (await engine.insights()).shadow
    assert before is not None
    assert after is not None
    gain = after.gain * after.rankings - before.gain * before.rankings
    return after.rankings - before.rankings, gain


@played(settings(ranking={"mode": "shadow", "k": 2, "policy": "ebrank:epsilon=0"}), count=4)
async def test_clicks_gained_on_a_page_are_expected_at_its_ranks(engine: Scene) -> None:
    order = ["i0", "i1", "i2", "i3"]
    for number in range(30):
        answer = await engine.ranked(items=order, k=4)
        events = [click(f"{number} {name}", answer.ranking_id, name) for name in ids(answer)]
        await engine.feedback(events[: 1 + number % 3])  # each more often than the next
    known = (await engine.query("q")).items
    *top, third, last = sorted(known, key=lambda item: item.relevance, reverse=True)
    own = [item.id for item in (*top, last, third)]
    lists, gain = await compared(engine, items=own, offset=2)
    p = 1 / np.log2([4, 5])
    assert lists == 1
    assert gain == pytest.approx((p[0] - p[1]) * (third.relevance - last.relevance))
    assert gain > 0.01


@played(settings(ranking={"mode": "shadow", "k": 2}), count=4)
async def test_lists_that_show_nothing_are_not_compared(engine: Scene) -> None:
    own = ["i0", "i1", "i2", "i3"]
    first = await compared(engine, items=own, user="u")
    again = await compared(engine, items=own, user="u")
    beyond = await compared(engine, items=own, user="u", offset=4)
    assert [lists for lists, _ in (first, again, beyond)] == [1, 0, 0]
    longer = await compared(engine, items=own, user="u", k=3)
    assert longer[0] == 1, "it shows an item more"
