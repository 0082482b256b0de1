from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ebrank.rankers.kernels import duels
from tests.kept import kept
from tests.simulation.reference_online import team_draft as slow_draft

write_direction, direction_key = kept(duels.write_direction), kept(duels.direction_key)
write_draft, write_wins = kept(duels.draft_teams), kept(duels.write_wins)


def draft(
    lists: list[list[int]], key: int, *, length: int | None = None, disputed_only: bool = False
) -> tuple[list[int], list[int]]:
    array = np.array(lists, np.int64)
    length = length or array.shape[1]
    merged, teams = np.full(length, -9, np.int64), np.full(length, -9, np.int64)
    order = np.empty(len(array), np.int64)
    write_draft(array, length, disputed_only, np.uint64(key), order, merged, teams)
    return merged.tolist(), teams.tolist()


@st.composite
def rankings(draw: st.DrawFn) -> tuple[list[list[int]], int]:
    """Lists of some rankers: the top of permutations, often alike, and the length wanted."""
    n = draw(st.integers(1, 8))
    length = draw(st.integers(1, n))
    some = draw(st.lists(st.permutations(range(n)), min_size=1, max_size=3))
    rankers = draw(st.lists(st.sampled_from(some), min_size=1, max_size=12))
    return [list(items)[:length] for items in rankers], length


@given(rankings(), st.integers(0, 2**64 - 1), st.booleans())
def test_as_an_independent_slow_one(
    case: tuple[list[list[int]], int], key: int, disputed_only: bool
) -> None:
    lists, length = case
    merged, teams = slow_draft(lists, length, key, disputed_only=disputed_only)
    nobody = [duels.NOBODY if team is None else team for team in teams]
    assert draft(lists, key, length=length, disputed_only=disputed_only) == (merged, nobody)


def test_every_order_of_teams_is_as_likely_as_any_other() -> None:
    lists = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    count = 12_000
    orders = Counter(tuple(draft(lists, key)[1]) for key in range(count))
    assert set(orders) == set(itertools.permutations(range(3)))
    share = count / 6
    chi_square = sum((seen - share) ** 2 / share for seen in orders.values())
    assert chi_square < 20.5  # 0.999 quantile with 5 degrees of freedom


def test_teams_have_the_same_ranks_on_average() -> None:
    """With ten teams and a list of five, each is at each rank a tenth of the time."""
    lists = [[(i + j) % 10 for j in range(5)] for i in range(10)]
    count = 8000
    at_rank = np.zeros((5, 10))
    for key in range(count):
        for rank, team in enumerate(draft(lists, key)[1]):
            at_rank[rank, team] += 1
    np.testing.assert_allclose(at_rank / count, 0.1, atol=5 * np.sqrt(0.09 / count))


def test_a_random_click_favors_no_team() -> None:
    """Clicks that do not depend on the item give identical rankers the same wins."""
    lists = [[3, 1, 2, 0]] * 2
    rng = np.random.default_rng(0)
    balance = 0
    for key in range(8000):
        teams = np.array(draft(lists, key)[1])
        clicks = rng.random(4) < (0.8, 0.5, 0.3, 0.2)
        balance += int(clicks[teams == 1].sum()) - int(clicks[teams == 0].sum())
    assert abs(balance) < 5 * np.sqrt(8000 * 1.0)


def test_what_all_agree_on_belongs_to_nobody() -> None:
    lists = [[4, 2, 1, 0], [4, 2, 0, 1]]
    for key in range(20):
        merged, teams = draft(lists, key, disputed_only=True)
        assert merged[:2] == [4, 2]
        assert teams[:2] == [duels.NOBODY] * 2
        assert sorted(teams[2:]) == [0, 1]


def test_all_rankers_alike_have_nothing_to_win() -> None:
    merged, teams = draft([[2, 0, 1]] * 3, 5, disputed_only=True)
    assert merged == [2, 0, 1]
    wins = np.ones(2, np.bool_)
    write_wins(np.array(teams), np.ones(3, np.bool_), 3, wins)
    assert not wins.any()


@pytest.mark.parametrize(
    ("clicked", "expected"),
    [
        ([0, 0, 0, 0, 0], [False, False]),
        ([1, 0, 0, 0, 0], [False, False]),  # the current ranker's item
        ([0, 1, 0, 0, 0], [True, False]),
        ([1, 1, 0, 0, 0], [False, False]),  # a draw is no win
        ([1, 1, 0, 1, 0], [True, False]),
        ([0, 1, 1, 0, 0], [True, True]),
        ([0, 0, 0, 0, 1], [False, False]),  # nobody's item
    ],
)
def test_more_clicks_than_the_current_ranker_win(clicked: list[int], expected: list[bool]) -> None:
    teams = np.array([0, 1, 2, 1, duels.NOBODY])
    wins = np.array([not win for win in expected])
    write_wins(teams, np.array(clicked, np.bool_), 5, wins)
    assert wins.tolist() == expected


# --- directions ----------------------------------------------------------------------------------


def drawn(n: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    out = np.empty((count, n))
    for i in range(count):
        key = np.uint64(direction_key(np.uint64(77), i))
        write_direction(key, out[i])
    return out


@pytest.mark.parametrize("n", [1, 2, 3, 8, 47])
def test_directions_lie_on_the_unit_sphere(n: int) -> None:
    np.testing.assert_allclose(np.linalg.norm(drawn(n, 50), axis=1), 1.0, rtol=1e-14)


def test_coordinates_on_the_sphere_in_space_are_uniform() -> None:
    """Archimedes: a sphere's shadow on an axis is uniform; in the plane it is an arcsine."""
    for axis in drawn(3, 20_000).T:
        assert scipy.stats.kstest(axis, scipy.stats.uniform(-1, 2).cdf).pvalue > 1e-3
    for axis in drawn(2, 20_000).T:
        assert scipy.stats.kstest(axis, scipy.stats.arcsine(-1, 2).cdf).pvalue > 1e-3


def test_no_direction_is_preferred() -> None:
    points = drawn(5, 40_000)
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=5 * np.sqrt(0.2 / 40_000))
    np.testing.assert_allclose(points.T @ points / 40_000, np.eye(5) / 5, atol=0.006)


def test_sessions_and_candidates_have_directions_of_their_own() -> None:
    keys = {
        int(direction_key(np.uint64(session), candidate))
        for session in range(50)
        for candidate in range(50)
    }
    assert len(keys) == 2500
