"""Real lists: pages go on where the last one ended, and a refresh shows nothing twice."""

from __future__ import annotations

import numpy as np
import pytest

from ebrank.service.api import RankRequest
from ebrank.service.core.problems import Problem
from tests.service.scenes import BOTH, Scene, click, ids, items, play, played, settings


async def learn(engine: Scene) -> None:
    """Let other users change what is best."""
    for number in range(20):
        answer = await engine.ranked(k=5, user=f"other {number}")
        await engine.clicked(answer, ids(answer)[-1])


@played(settings(ranking={"policy": "ebrank:epsilon=1000"}), count=30)
async def test_a_second_page_goes_on_where_the_first_one_ended(engine: Scene) -> None:
    first = await engine.ranked(k=10, user="u")
    second = await engine.ranked(k=10, user="u", offset=10)
    third = await engine.ranked(k=10, user="u", offset=20)
    assert len({*ids(first), *ids(second), *ids(third)}) == 30
    assert [item.rank for item in second.items] == list(range(11, 21))
    await learn(engine)
    again = [ids(await engine.ranked(k=10, user="u", offset=offset)) for offset in (20, 0, 10)]
    assert again == [ids(third), ids(first), ids(second)]
    below, *above = again
    everything = ids(await engine.ranked(k=30, user="u"))
    assert everything == [*above[0], *above[1], *below]
    assert not (await engine.ranked(k=10, user="u", offset=30)).items


def test_pages_make_the_order_that_one_long_list_has() -> None:
    orders = []
    for sizes in ([20], [10, 10], [5, 5, 10]):

        async def scene(engine: Scene, sizes: list[int] = sizes) -> None:
            await engine.put_items("q", items(40))
            await learn(engine)
            order: list[str] = []
            for k in sizes:
                request = RankRequest("q", k=k, user="u", offset=len(order))
                order += ids(await engine.rank(request))
            orders.append(order)

        play(scene, settings(ranking={"policy": "ebrank:epsilon=50"}))
    assert orders[0] == orders[1] == orders[2]


@pytest.mark.parametrize("explore", [True, False])
@pytest.mark.parametrize("impressions", ["served", "confirmed"])
@played(lambda impressions: settings(events={"impressions": impressions}), on=BOTH, count=30)
async def test_impressions_and_clicks_of_pages_count_at_their_ranks(
    engine: Scene, impressions: str, explore: bool
) -> None:
    pages = [
        await engine.ranked(k=10, user="u", offset=offset, explore=explore)
        for offset in (10, 0)  # in whatever order
    ]
    for page in pages:
        if impressions == "confirmed":
            seen = [click(f"i{n}", page.ranking_id, n, "impression") for n in ids(page)]
            assert set(await engine.statuses(seen)) == {"accepted"}
        assert await engine.clicked(page, ids(page)[1]) == 1
    state = await engine.stored()
    places = {name: at for at, name in enumerate(state.ids)}
    below, top = ([places[name] for name in ids(page)] for page in pages)
    assert state.counts[top, 0, :10].tolist() == np.eye(10, dtype=int).tolist()
    assert not state.counts[top, 0, 10:].any()
    assert not state.counts[below, 0, :10].any()
    assert state.counts[below, 0, 10:].sum(axis=0).tolist() == [5, 5]  # ranks 11-15 and 16-20
    assert (state.counts[top[1], 1, 1], state.counts[below[1], 1, 10]) == (1, 1)
    assert state.counts[:, 1].sum() == 2
    assert state.counts.sum() == 22
    assert await engine.sound()


@pytest.mark.parametrize("impressions", ["served", "confirmed"])
@played(lambda impressions: settings(events={"impressions": impressions}), on=BOTH, count=6)
async def test_a_refresh_is_one_impression_and_clicks_count_once(
    engine: Scene, impressions: str
) -> None:
    first = await engine.ranked(k=4, user="u")
    again = await engine.ranked(k=4, user="u")
    assert ids(again) == ids(first)
    if impressions == "confirmed":
        for number, page in enumerate((first, again)):
            await engine.feedback(
                [click(f"{number}{n}", page.ranking_id, n, "impression") for n in ids(page)]
            )
    insights = await engine.insights()
    [minute], exposure = insights.buckets, (1 / np.log2(np.arange(2, 6))).sum()
    assert insights.totals.rankings == 2
    assert minute.exposure_new == pytest.approx(exposure)
    a, b = ids(first)[:2]
    events = [
        click("1", first.ranking_id, a),
        click("2", again.ranking_id, a),  # the same click
        click("3", again.ranking_id, b),
        click("4", first.ranking_id, b),
    ]
    expected = ["accepted", "duplicate", "accepted", "duplicate"]
    assert await engine.statuses(events) == expected
    engine.resources.recent.pop(again.ranking_id)  # what the log says is the same
    assert await engine.statuses([click("5", again.ranking_id, a)]) == ["duplicate"]
    counted = await engine.counts()
    assert [counted[name] for name in ids(first)] == [(1, 1), (1, 1), (1, 0), (1, 0)]
    engine.clock.now += 61.0
    later = await engine.ranked(k=4, user="u")
    assert await engine.statuses([click("6", later.ranking_id, a)]) == [
        "accepted" if a in ids(later) else "rejected"
    ]
    assert await engine.sound()


@played(on=BOTH, count=8)
async def test_a_longer_list_shows_only_what_is_new_in_it(engine: Scene) -> None:
    first = await engine.ranked(k=3, user="u")
    gone = ids(first)[0]
    await engine.withdraw("q", gone)
    longer = await engine.ranked(k=5, user="u")
    assert ids(longer)[:2] == ids(first)[1:]
    counted = await engine.counts()
    assert {counted[name] for name in ids(longer)} == {(1, 0)}
    # What moved up was seen where it stood first, and that is where its click counts.
    moved, new = ids(longer)[0], ids(longer)[2]
    await engine.clicked(longer, moved, new)
    state = await engine.stored()
    rows = [list(state.ids).index(name) for name in (moved, new)]
    assert [state.counts[row, 1].tolist().index(1) for row in rows] == [1, 2]
    lists, events = await engine.lists(), await engine.events()
    assert [entry.seen for entry in lists] == [(), (2, 3, 0, 0, 0)]
    assert lists[1].continues == lists[0].id
    assert {entry.ranking_id for entry in events} == {lists[0].id}
    assert [entry.rank for entry in events] == [2, 3]
    assert await engine.sound()


@played(count=3)
async def test_without_a_user_every_list_counts(engine: Scene) -> None:
    for _ in range(2):
        await engine.ranked()
    page = await engine.ranked(k=2, offset=1)
    assert [item.rank for item in page.items] == [2, 3]
    assert sum(times for times, _ in (await engine.counts()).values()) == 8
    with pytest.raises(Problem, match="must not exceed 1000 together"):
        await engine.ranked(k=10, offset=991)
