"""How the newest items fare, as served and by clicks alone."""

from __future__ import annotations

import numpy as np

from ebrank.service import api
from ebrank.service.api import ItemIn
from ebrank.service.insight.arrivals import MOST_WATCHED
from ebrank.service.settings import Settings
from tests.service.scenes import START, Clock, Scene, ids, items, played, settings

EXPLORING = {"k": 2, "policy": "ebrank:epsilon=100"}


def watched(**ranking: object) -> Settings:
    return settings(ranking=EXPLORING | ranking, insights={"new_seconds": 100.0})


async def busy(engine: Scene, clock: Clock, count: int) -> None:
    """Fill a query, and let a user like all of it, and nine others nothing; then `new` arrives."""
    await engine.put_items("q", items(count))
    for number in range(10):
        answer = await engine.ranked(k=count)
        if number == 0:
            await engine.clicked(answer)
    assert await arrivals(engine) == []
    clock.now += 1.0
    await engine.put_items("q", [ItemIn("new", [0.0, 0.0])])


async def arrivals(engine: Scene) -> list[api.Arrival]:
    return (await engine.insights()).arrivals


async def looks(engine: Scene, clock: Clock, seconds: int, liked: str = "") -> list[api.Arrival]:
    """Let time pass: every second a list, a click if the liked item is in it, and a look."""
    for _ in range(seconds):
        clock.now += 1.0
        answer = await engine.ranked()
        if liked in ids(answer):
            await engine.clicked(answer, liked)
        await engine.insights()
    return await arrivals(engine)


@played(watched())
async def test_an_item_that_arrives_is_watched_and_those_that_were_there_are_not(
    engine: Scene,
) -> None:
    await busy(engine, engine.clock, 6)
    [new] = await looks(engine, engine.clock, 30, liked="new")
    assert (new.query, new.item, new.entered) == ("q", "new", START + 1.0)
    assert new.seconds[:4] == [1.0, 3.0, 5.0, 7.0]  # looks are 5/3 s apart
    assert new.seconds[-1] <= 30.0
    assert np.all(np.diff(new.seconds) >= 0.0)
    assert new.ranks[0] == new.ranks[-1] == 1  # explored at once, and liked
    assert new.holds
    assert not new.holds_by_clicks
    assert len(new.ranks_by_features) == len(new.ranks_by_relevance) == len(new.seconds)
    # Clicks alone do not credit it with clicks that it got by exploration.
    assert set(new.ranks_by_clicks) == {7}  # behind all that were clicked


@played(watched(k=5), count=2)
async def test_by_clicks_alone_an_item_learns_from_what_that_order_would_have_shown(
    engine: Scene,
) -> None:
    """The query has fewer items than a list has places: any order shows them all."""
    await engine.ranked()  # and nobody clicks
    engine.clock.now += 1.0
    await engine.put_items("q", [ItemIn("new", [0.0, 0.0])])
    [new] = await looks(engine, engine.clock, 30, liked="new")
    assert new.ranks_by_clicks[0] == 3  # those that were there before come first
    assert new.ranks_by_clicks[-1] == 1


@played(watched())
async def test_an_item_that_leaves_is_not_looked_at_any_more(engine: Scene) -> None:
    await busy(engine, engine.clock, 4)
    before = await looks(engine, engine.clock, 3)
    assert len(before[0].seconds) > 1
    await engine.withdraw("q", "new")
    assert await looks(engine, engine.clock, 10) == before
    await engine.delete(api.DeletionRequest("query", "q"))
    await engine.put_items("q", items(1))
    assert await looks(engine, engine.clock, 5) == before


@played(watched())
async def test_after_a_restart_items_that_are_still_new_are_watched_again(engine: Scene) -> None:
    await busy(engine, engine.clock, 4)
    await engine.close()
    engine.clock.now += 1.0
    later = await engine.opened()
    assert await arrivals(later) == []  # no query is in memory
    engine.clock.now += 20.0
    [new] = await looks(later, engine.clock, 2)
    assert (new.item, new.seconds) == ("new", [22.0])


@played(watched())
async def test_as_many_are_watched_as_fit_and_newer_ones_take_their_turn(engine: Scene) -> None:
    await busy(engine, engine.clock, 4)
    names = []
    for second in (1, 90):
        engine.clock.now = START + second
        await engine.put_items("q", [ItemIn(f"{second} {i}", [0.0, 0.0]) for i in range(60)])
        names.append([each.item for each in await looks(engine, engine.clock, 6)])
    first, second_names = names
    assert len(first) == len(second_names) == MOST_WATCHED
    assert second_names[:-1] == first[1:]  # one for each fortieth of the time that an item is new
    assert second_names[-1].startswith("90 ")
