from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import scipy

from ebrank.rankers.kernels import duels
from tests.kept import kept

write_direction, direction_key = kept(duels.write_direction), kept(duels.direction_key)
write_draft = kept(duels.draft_teams)


def draft(lists: list[list[int]], key: int) -> list[int]:
    """Return who added each item of the lists' draft."""
    array = np.array(lists, np.int64)
    length = array.shape[1]
    order, nothing = np.empty(len(array), np.int64), np.empty((1, 1))
    merged, teams = np.full(length, -9, np.int64), np.full(length, -9, np.int64)
    room = duels.Draft(nothing, nothing, np.empty(0), array, order, merged, teams)
    write_draft(room, length, False, np.uint64(key))
    return [int(team) for team in teams]


def test_every_order_of_teams_is_as_likely_as_any_other() -> None:
    lists = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    count = 12_000
    orders = Counter(tuple(draft(lists, key)) for key in range(count))
    assert set(orders) == set(itertools.permutations(range(3)))
    share = count / 6
    chi_square = sum((seen - share) ** 2 / share for seen in orders.values())
    assert chi_square < 20.5  # 0.999 quantile with 5 degrees of freedom


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
