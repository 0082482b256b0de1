"""Shadow mode: the caller's order is served and learned from; EBRank's is reported."""

from __future__ import annotations

import pytest

from ebrank.service.api import ItemIn, RankRequest
from ebrank.service.core.engine import Engine
from ebrank.service.core.problems import Problem
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import RankingEntry
from tests.service.scenes import Clock, click, ids, items, play, settings
from tests.service.store.blocking import run

SHADOW = settings(ranking={"mode": "shadow", "k": 2}, insights={"new_seconds": 50.0})


def test_the_callers_order_is_served_and_ours_is_told() -> None:
    store, clock = MemoryStore(), Clock()

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(3))
        order = ["i2", "i0", "i1"]
        for number in range(20):
            answer = await engine.rank(RankRequest("q", items=list(order)))
            assert ids(answer) == order[:2]
            await engine.feedback([click(f"e{number}", answer.ranking_id, "i0")])
        assert isinstance(answer.would_rank, list)
        assert answer.would_rank[0] == "i0"  # clicked at every turn, one rank below the top
        assert len(answer.would_rank) == 2
        clock.now += 100.0
        new: list[str | ItemIn] = [*order[:2], ItemIn("new", [0.5, 0.5])]
        last = await engine.rank(RankRequest("q", items=new, explain=True))
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

    play(scene, SHADOW, store=store, clock=clock)
    entries = [entry for entry in run(store.log.entries()) if isinstance(entry, RankingEntry)]
    assert all(len(entry.would_rank) == 2 for entry in entries)
    assert entries[-2].items == ("i2", "i0")


def test_without_an_order_there_is_nothing_to_serve() -> None:
    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(3))
        with pytest.raises(Problem, match="must give its own order"):
            await engine.rank(RankRequest("q"))

    play(scene, SHADOW)
