"""How the newest items fare, as served and by clicks alone."""

from __future__ import annotations

import numpy as np

from ebrank.service import api
from ebrank.service.api import ItemIn
from ebrank.service.engine import Engine
from ebrank.service.insight.arrivals import MOST_WATCHED
from ebrank.service.settings import Settings
from ebrank.service.store.memory import MemoryStore
from tests.service.scenes import START, Clock, click, ids, items, play, ranked, settings

EXPLORING = {"k": 2, "policy": "ebrank:epsilon=100"}


def watched(**ranking: object) -> Settings:
    return settings(ranking=EXPLORING | ranking, insights={"new_seconds": 100.0})


async def busy(engine: Engine, count: int) -> None:
    """Fill a query, and let a user like all of it, and nine others nothing."""
    await engine.put_items("q", items(count))
    for number in range(10):
        answer = await ranked(engine, k=count)
        if number == 0:
            await engine.feedback([click(item, answer.ranking_id, item) for item in ids(answer)])


async def looks(engine: Engine, clock: Clock, seconds: int, liked: str = "") -> None:
    """Let time pass: every second a list, a click if the liked item is in it, and a look."""
    for _ in range(seconds):
        clock.now += 1.0
        answer = await ranked(engine)
        if liked in ids(answer):
            await engine.feedback([click(f"{clock.now}", answer.ranking_id, liked)])
        await engine.insights()


def test_an_item_that_arrives_is_watched_and_those_that_were_there_are_not() -> None:
    clock = Clock()

    async def scene(engine: Engine) -> list[api.Arrival]:
        await busy(engine, 6)
        assert (await engine.insights()).arrivals == []
        clock.now += 1.0
        await engine.put_items("q", [ItemIn("new", [0.0, 0.0])])
        await looks(engine, clock, 30, liked="new")
        return (await engine.insights()).arrivals

    [new] = play(scene, watched(), clock=clock)
    assert (new.query, new.item, new.entered) == ("q", "new", START + 1.0)
    assert new.seconds[:4] == [1.0, 3.0, 5.0, 7.0]  # looks are 5/3 s apart
    assert new.seconds[-1] <= 30.0
    assert np.all(np.diff(new.seconds) >= 0.0)
    assert new.ranks[0] == new.ranks[-1] == 1  # explored at once, and liked
    assert new.in_top_k


def test_by_clicks_alone_an_item_is_not_credited_with_clicks_it_got_by_exploration() -> None:
    clock = Clock()

    async def scene(engine: Engine) -> list[api.Arrival]:
        await busy(engine, 6)
        clock.now += 1.0
        await engine.put_items("q", [ItemIn("new", [0.0, 0.0])])
        await looks(engine, clock, 30, liked="new")
        return (await engine.insights()).arrivals

    [new] = play(scene, watched(), clock=clock)
    assert set(new.ranks_by_clicks) == {7}  # behind all that were clicked


def test_by_clicks_alone_an_item_learns_from_what_that_order_would_have_shown() -> None:
    """The query has fewer items than a list has places: any order shows them all."""
    clock = Clock()

    async def scene(engine: Engine) -> list[api.Arrival]:
        await engine.put_items("q", items(2))
        await ranked(engine)  # and nobody clicks
        clock.now += 1.0
        await engine.put_items("q", [ItemIn("new", [0.0, 0.0])])
        await looks(engine, clock, 30, liked="new")
        return (await engine.insights()).arrivals

    [new] = play(scene, watched(k=5), clock=clock)
    assert new.ranks_by_clicks[0] == 3  # those that were there before come first
    assert new.ranks_by_clicks[-1] == 1


def test_an_item_that_leaves_is_not_looked_at_any_more() -> None:
    clock = Clock()

    async def scene(engine: Engine) -> tuple[list[api.Arrival], ...]:
        await busy(engine, 4)
        clock.now += 1.0
        await engine.put_items("q", [ItemIn("new", [0.0, 0.0])])
        await looks(engine, clock, 3)
        before = (await engine.insights()).arrivals
        await engine.withdraw("q", "new")
        await looks(engine, clock, 10)
        after = (await engine.insights()).arrivals
        await engine.delete(api.DeletionRequest("query", "q"))
        await engine.put_items("q", items(1))
        await looks(engine, clock, 5)
        return before, after, (await engine.insights()).arrivals

    before, after, later = play(scene, watched(), clock=clock)
    assert before == after == later
    assert len(before[0].seconds) > 1


def test_after_a_restart_items_that_are_still_new_are_watched_again() -> None:
    store, clock = MemoryStore(), Clock()

    async def first(engine: Engine) -> None:
        await busy(engine, 4)
        clock.now += 1.0
        await engine.put_items("q", [ItemIn("new", [0.0, 0.0])])

    async def second(engine: Engine) -> list[api.Arrival]:
        assert (await engine.insights()).arrivals == []  # no query is in memory
        clock.now += 20.0
        await looks(engine, clock, 2)
        return (await engine.insights()).arrivals

    play(first, watched(), store=store, clock=clock)
    clock.now += 1.0
    [new] = play(second, watched(), store=store, clock=clock)
    assert (new.item, new.seconds) == ("new", [22.0])


def test_as_many_are_watched_as_fit_and_newer_ones_take_their_turn() -> None:
    clock = Clock()

    async def scene(engine: Engine) -> tuple[list[str], list[str]]:
        await busy(engine, 4)
        names = []
        for second in (1, 90):
            clock.now = START + second
            await engine.put_items("q", [ItemIn(f"{second} {i}", [0.0, 0.0]) for i in range(60)])
            await looks(engine, clock, 6)
            names.append([one.item for one in (await engine.insights()).arrivals])
        return names[0], names[1]

    first, second = play(scene, watched(), clock=clock)
    assert len(first) == len(second) == MOST_WATCHED
    assert second[:-1] == first[1:]  # one for each fortieth of the time that an item is new
    assert second[-1].startswith("90 ")
