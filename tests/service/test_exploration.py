from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.service import exploration
from ebrank.service.api import ItemIn, RankRequest
from ebrank.service.engine import Engine
from ebrank.service.exploration import Windows, explored, guarded, resumed
from tests.service.scenes import Clock, click, ids, items, play, settings

LIMITS = st.none() | st.integers(0, 6)


@st.composite
def orders(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    count = draw(st.integers(0, 12))
    by_score = draw(st.permutations(range(count)))
    by_relevance = draw(st.permutations(range(count)))
    return np.array(by_score, int), np.array(by_relevance, int), draw(st.integers(1, 8))


@given(orders(), LIMITS, LIMITS)
def test_guardrails_hold_and_change_no_more_than_they_must(
    drawn: tuple[np.ndarray, np.ndarray, int], most: int | None, ranks: int | None
) -> None:
    by_score, by_relevance, k = drawn
    listed = guarded(by_score, by_relevance, k, max_explored=most, max_promotion=ranks).tolist()
    assert len(listed) == len(set(listed)) == min(k, len(by_score))
    assert set(listed) <= set(by_score.tolist())
    place = {item: at for at, item in enumerate(by_relevance.tolist(), start=1)}
    if most is not None:
        assert sum(place[item] > k for item in listed) <= most
    if ranks is not None:
        assert all(place[item] - at <= ranks for at, item in enumerate(listed, start=1))
    plain = by_score[:k].tolist()
    if most is None and ranks is None:
        assert listed == plain
    if most == 0 or ranks == 0:
        assert listed == by_relevance[:k].tolist()
    good = sum(place[item] > k for item in plain) <= (k if most is None else most) and all(
        ranks is None or place[item] - at <= ranks for at, item in enumerate(plain, start=1)
    )
    if good and most != 0:
        assert listed == plain


@given(orders())
def test_explored_slots_are_those_that_relevance_would_not_have(
    drawn: tuple[np.ndarray, np.ndarray, int],
) -> None:
    by_score, by_relevance, k = drawn
    marks = explored(by_score[:k], by_relevance)
    assert marks.tolist() == [item not in by_relevance[:k] for item in by_score[:k]]


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


def test_windows_end_and_are_forgotten_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    windows = Windows(seconds=10.0)
    windows.keep("q", "u", np.array([1, 2]), now=0.0)
    windows.keep("q", "u", np.array([2, 3]), now=9.0)  # a longer list, still of the same window
    kept = windows.get("q", "u", 9.9)
    assert kept is not None
    assert kept.tolist() == [1, 2, 3]
    assert windows.get("q", "u", 10.0) is None
    assert windows.get("q", "other", 1.0) is None
    monkeypatch.setattr(exploration, "MOST_WINDOWS", 2)
    for user in ("a", "b", "c"):
        windows.keep("q", user, np.array([1]), now=20.0)
    forgotten = [user for user in ("a", "b", "c") if windows.get("q", user, 20.0) is None]
    assert forgotten == ["a"]


def test_a_user_sees_the_same_order_for_a_while() -> None:
    clock = Clock()

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(6))
        first = await engine.rank(RankRequest("q", k=4, user="u"))
        for number in range(30):  # others change what is known
            await engine.rank(RankRequest("q", k=2, user=f"v{number}"))
        again = await engine.rank(RankRequest("q", k=4, user="u"))
        assert ids(again) == ids(first)
        assert again.ranking_id != first.ranking_id
        assert ids(await engine.rank(RankRequest("q", k=4))) != ids(first)
        await engine.withdraw("q", first.items[1].id)
        await engine.put_items("q", [ItemIn("new", [0.1, 0.2])])
        third = ids(await engine.rank(RankRequest("q", k=4, user="u")))
        assert third[:3] == [ids(first)[0], *ids(first)[2:]]
        assert ids(await engine.rank(RankRequest("q", k=9, user="u")))[:4] == third
        clock.now += 61.0
        assert "new" in ids(await engine.rank(RankRequest("q", k=4, user="u")))

    play(scene, settings(ranking={"window": 60.0}), clock=clock)


@pytest.mark.parametrize(
    ("limits", "explored_slots"),
    [({}, 2), ({"max_explored": 1}, 1), ({"max_explored": 0}, 0), ({"max_promotion": 0}, 0)],
)
def test_lists_are_explored_as_far_as_the_settings_allow(
    limits: dict[str, int], explored_slots: int
) -> None:
    """Four items earn clicks, two newcomers have only their bonus."""

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(4))
        for number in range(100):
            answer = await engine.rank(RankRequest("q", k=4, explore=False))
            await engine.feedback(
                [
                    click(f"{number}-{at}", answer.ranking_id, item)
                    for at, item in enumerate(ids(answer))
                ]
            )
        await engine.put_items("q", [ItemIn("n0", [0.0, 0.0]), ItemIn("n1", [0.0, 0.0])])
        answer = await engine.rank(RankRequest("q", k=4, explain=True))
        assert sum(bool(item.explored) for item in answer.items) == explored_slots
        plain = await engine.rank(RankRequest("q", k=4, explain=True, explore=False))
        assert not any(item.explored for item in plain.items)
        relevance = [item.relevance for item in plain.items]
        assert relevance == sorted(relevance, reverse=True)  # type: ignore[type-var]

    play(scene, settings(ranking={"epsilon": 1000.0, **limits}))
