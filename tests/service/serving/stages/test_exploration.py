"""How far lists explore, and how long a user sees the same order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ebrank.service.api import ItemIn
from ebrank.service.serving.lists import ListKey, resumed
from ebrank.service.serving.stages.windows import Windows
from tests.service.scenes import Scene, ids, items, played, settings


@st.composite
def orders(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    count = draw(st.integers(0, 12))
    by_score = draw(st.permutations(range(count)))
    by_relevance = draw(st.permutations(range(count)))
    return np.array(by_score, int), np.array(by_relevance, int), draw(st.integers(1, 8))


@given(orders(), st.data())
def test_a_resumed_list_keeps_its_order(
    drawn: tuple[np.ndarray, np.ndarray, int], data: st.DataObject
) -> None:
    kept, by_relevance, k = drawn
    gone = data.draw(st.sets(st.sampled_from(by_relevance.tolist()))) if len(kept) else set()
    now = np.array([item for item in by_relevance.tolist() if item not in gone], int)
    again = resumed(kept[:k], now, k).tolist()
    still = [item for item in kept[:k].tolist() if item not in gone]
    assert again[: len(still)] == still
    assert len(again) == len(set(again)) == min(k, len(now))
    rest = [item for item in now.tolist() if item not in still]
    assert again[len(still) :] == rest[: k - len(still)]


def test_windows_know_which_ranks_were_served() -> None:
    windows, page = Windows(seconds=10.0, timer=lambda: 1.0), ListKey("q", "u")
    windows.keep(page, np.array([5, 6, 7, 8]), 2, "second page")
    kept = windows.get(page)
    assert kept is not None
    assert (kept.view, kept.depth) == ("second page", 4)
    assert kept.ranks_of(np.array([8, 5, 7, 9])) == (4, 0, 3, 0)


@played()
async def test_a_list_of_some_candidates_is_another_page(engine: Scene) -> None:
    await engine.put_items("q", items(12))
    some = await engine.ranked(k=2, user="u", items=["i7", "i3"])
    everything = ids(await engine.ranked(k=4, user="u"))
    assert not {"i7", "i3"} & set(everything)  # others have more to teach
    for number in range(20):
        await engine.ranked(k=2, items=["i3", f"i{8 + number % 4}"])
    # neither their order in the request nor other pages change what was seen
    again = await engine.ranked(k=2, user="u", items=["i3", "i7"])
    assert ids(again) == ids(some)
    assert ids(await engine.ranked(k=4, user="u")) == everything


@played(settings(ranking={"window": 60.0}))
async def test_a_user_sees_the_same_order_for_a_while(engine: Scene) -> None:
    await engine.put_items("q", items(6))
    first = await engine.ranked(k=4, user="u")
    for number in range(30):  # others change what is known
        await engine.ranked(k=2, user=f"v{number}")
    again = await engine.ranked(k=4, user="u")
    assert ids(again) == ids(first)
    assert again.ranking_id != first.ranking_id
    assert ids(await engine.ranked(k=4)) != ids(first)
    await engine.withdraw("q", first.items[1].id)
    await engine.put_items("q", [ItemIn("new", [0.1, 0.2])])
    third = ids(await engine.ranked(k=4, user="u"))
    assert third[:3] == [ids(first)[0], *ids(first)[2:]]
    assert ids(await engine.ranked(k=9, user="u"))[:4] == third
    engine.clock.now += 61.0
    assert "new" in ids(await engine.ranked(k=4, user="u"))


@played(settings(ranking={"policy": "ebrank:epsilon=1000"}))
async def test_lists_explore_unless_they_must_not(engine: Scene) -> None:
    """Four items earn clicks, two newcomers have only their bonus."""
    await engine.put_items("q", items(4))
    for _ in range(100):
        await engine.clicked(await engine.ranked(k=4, explore=False))
    await engine.put_items("q", [ItemIn("n0", [0.0, 0.0]), ItemIn("n1", [0.0, 0.0])])
    answer = await engine.ranked(k=4, explain=True)
    assert sum(bool(item.explored) for item in answer.items) == 2
    plain = await engine.ranked(k=4, explain=True, explore=False)
    assert not any(item.explored for item in plain.items)
    relevance = [item.relevance for item in plain.items]
    assert relevance == sorted(relevance, reverse=True)  # type: ignore[type-var]


@played(settings(ranking={"k": 3, "policy": "ebrank:epsilon=500"}))
async def test_the_state_of_a_query_has_the_order_that_is_served(engine: Scene) -> None:
    await engine.put_items("q", items(12))
    for _ in range(40):
        some = [f"i{at}" for at in range(5)]
        await engine.clicked(await engine.ranked(k=5, items=some, explore=False))
    for offset in (9, 6, 3, 0):
        state, insights = await engine.query("q"), await engine.insights()
        listed = ids(await engine.ranked(k=3, offset=offset))
        by_rank = {item.rank: item.id for item in state.items}
        assert listed == [by_rank[rank] for rank in range(offset + 1, offset + 4)]
    buried = {item.item for item in insights.buried}
    assert not (buried | set(state.most_buried)) & set(listed)
