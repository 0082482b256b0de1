from __future__ import annotations

import numpy as np
import pytest
import scipy

from ebrank.rankers.kernels import directions
from tests.kept import kept
from tests.simulation.reference_online import unit_vector

write_direction = kept(directions.write_direction)
direction_key = kept(directions.direction_key)


def drawn(n: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    out = np.empty((count, n))
    for i in range(count):
        key = np.uint64(direction_key(np.uint64(77), i))
        write_direction(key, out[i])
    return out


@pytest.mark.parametrize("n", [1, 2, 3, 8, 47])
def test_directions_lie_on_the_unit_sphere(n: int) -> None:
    np.testing.assert_allclose(np.linalg.norm(drawn(n, 50), axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 46, 47])
def test_as_in_plain_python(n: int) -> None:
    for key in (0, 5, 2**64 - 1):
        out = np.empty(n)
        write_direction(np.uint64(key), out)
        np.testing.assert_allclose(out, unit_vector(key, n), rtol=1e-13)


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


def test_the_sum_of_steps_along_the_mean_of_winners() -> None:
    rng = np.random.default_rng(0)
    sessions = rng.integers(0, 2**63, 30).astype(np.uint64)
    wins = rng.random((30, 4)) < 0.3
    rates = np.where(wins.any(axis=1), rng.random(30), 0.0)
    expected = np.zeros(7)
    for t in range(10, 25):
        won = np.flatnonzero(wins[t]).tolist()
        if won:
            vectors = [unit_vector(int(direction_key(sessions[t], c)), 7) for c in won]
            expected += rates[t] * np.mean(vectors, axis=0)
    got = directions.gradient_sum(sessions, wins, rates, 7, 10, 25)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
