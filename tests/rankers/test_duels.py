from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ebrank.rankers.kernels import duels
from tests.kept import kept
from tests.simulation.reference_online import team_draft as slow_draft

write_direction, direction_key = kept(duels.write_direction), kept(duels.direction_key)
write_draft = kept(duels.draft_teams)


def draft(
    lists: list[list[int]], key: int, *, length: int | None = None, disputed_only: bool = False
) -> tuple[list[int], list[int]]:
    array = np.array(lists, np.int64)
    length = length or array.shape[1]
    order, nothing = np.empty(len(array), np.int64), np.empty((1, 1))
    merged, teams = np.full(length, -9, np.int64), np.full(length, -9, np.int64)
    room = duels.Draft(nothing, nothing, array, order, merged, teams)
    write_draft(room, length, disputed_only, np.uint64(key))
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


# --- directions ----------------------------------------------------------------------------------


def drawn(n: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    out = np.empty((count, n))
    for i in range(count):
        key = np.uint64(direction_key(np.uint64(77), i))
        write_direction(key, out[i])
    return out


def test_coordinates_on_the_sphere_in_space_are_uniform() -> None:
    """Archimedes: a sphere's shadow on an axis is uniform; in the plane it is an arcsine."""
    for axis in drawn(3, 20_000).T:
        assert scipy.stats.kstest(axis, scipy.stats.uniform(-1, 2).cdf).pvalue > 1e-3
    for axis in drawn(2, 20_000).T:
        assert scipy.stats.kstest(axis, scipy.stats.arcsine(-1, 2).cdf).pvalue > 1e-3
