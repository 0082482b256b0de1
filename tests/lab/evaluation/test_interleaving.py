"""Interleaving: fair by enumeration of its coins, the same over pages, right about clicks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.lab.evaluation.interleaving import (
    FIRST,
    NEITHER,
    SECOND,
    Draft,
    coin,
    key_of,
    pair_difference,
    team_draft,
)
from ebrank.statistics.sequential import Moments, mean

ORDERS = st.permutations(list(range(9)))
P = 1.0 / np.log2(2.0 + np.arange(9))


@given(ORDERS, ORDERS, st.integers(0, 2**64 - 1), st.integers(0, 9), st.integers(0, 9))
def test_a_page_goes_on_with_the_same_draft(
    a: list[int], b: list[int], key: int, top: int, depth: int
) -> None:
    top, depth = min(top, depth), max(top, depth)
    whole = team_draft(a, b, key, depth)
    assert team_draft(a, b, key, depth, above=team_draft(a, b, key, top)) == whole
    assert len(set(whole.items)) == len(whole.items) == depth


@given(ORDERS, ORDERS, ORDERS, st.integers(0, 2**64 - 1), st.integers(0, 9))
def test_orders_may_change_between_pages(
    a: list[int], b: list[int], changed: list[int], key: int, top: int
) -> None:
    above = team_draft(a, b, key, top)
    whole = team_draft(changed, b[::-1], key, 9, above=above)
    assert whole.items[:top] == above.items
    assert sorted(whole.items) == list(range(9))


@given(ORDERS, ORDERS, st.integers(0, 2**64 - 1))
def test_pairs_are_one_item_of_each_ranking_and_each_chose_its_best(
    a: list[int], b: list[int], key: int
) -> None:
    draft = team_draft(a, b, key, 9)
    for number in range(max(draft.pairs, default=NEITHER) + 1):
        places = [place for place, pair in enumerate(draft.pairs) if pair == number]
        assert sorted(draft.teams[place] for place in places) == [FIRST, SECOND]
        assert places[1] == places[0] + 1
        left = set(range(9)) - set(draft.items[: places[0]])
        for place in places:
            order = b if draft.teams[place] else a
            assert draft.items[place] == next(item for item in order if item in left)


def test_lists_of_different_lengths_are_used_up() -> None:
    draft = team_draft([1, 2], [3, 2, 5, 6], 7, 9)
    assert sorted(draft.items) == [1, 2, 3, 5, 6]
    assert draft.items[-3:] == (2, 5, 6)
    assert draft.teams[-3:] == (NEITHER, NEITHER, NEITHER)
    assert team_draft([], [], 1, 5) == Draft()
    half = team_draft([1], [3], 7, 1)
    assert team_draft([], [], 7, 3, above=half) == half, "the other half is gone meanwhile"


def test_coins_are_fair_and_depend_on_every_part_of_the_key() -> None:
    keys = [key_of("experiment", "tea", str(user)) for user in range(4000)]
    for number in (0, 1, 17):
        assert sum(coin(key, number) for key in keys) == pytest.approx(2000, abs=130)
    both = sum(coin(key, 0) == coin(key, 1) for key in keys)
    assert both == pytest.approx(2000, abs=130)
    assert key_of("a", "bc") != key_of("ab", "c")


def test_random_clicks_prefer_neither_ranking() -> None:
    """Also where one order is the other, shifted by one, the trap of balanced interleaving."""
    a, b, rng = [0, 1, 2, 3], [1, 2, 3, 0], np.random.default_rng(1)
    differences, weights = [], []
    for user in range(4000):
        draft = team_draft(a, b, key_of(str(user)), 4)
        clicks = rng.random(4) < P[:4] * 0.3
        value, pairs = pair_difference(draft.teams, clicks)
        differences.append(value)
        weights.append(pairs)
    low, high = mean(Moments.of(differences, weights), looks="once", alpha=0.01)[1:]
    assert low < 0.0 < high
