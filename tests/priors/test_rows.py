"""Rows: the loss of every score, which of them count, and threads that change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats
from ebrank.policy import make
from ebrank.priors.families.beta import beta_loss
from ebrank.priors.rows import number
from tests.priors.made_up import CURVE, made_up, rows_of


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
def test_losses_and_slopes_are_the_familys_where_rows_count(estimator: str) -> None:
    features, stats = made_up(200, 2, seed=1, mean=1.0)
    rows = rows_of(features, stats, estimator=estimator, beta=3.0)
    scores = np.linspace(-2, 2, 200)
    losses, slopes = rows.losses_and_slopes(scores)
    sums = stats.sums(CURVE)
    hits, trials = make(estimator=estimator).estimator.matrix(stats, sums).T
    assert 0 < rows.count < 200
    for i in range(200):
        expected = (0.0, 0.0)
        if sums.shown[i] > 0:
            expected = beta_loss(scores[i], hits[i], trials[i], 3.0)
        assert (losses[i], slopes[i]) == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_slopes_by_finite_differences_for_every_estimator() -> None:
    features, stats = made_up(50, 2, seed=2)
    scores, step = np.linspace(-3, 3, 50), 1e-4
    for estimator in ("ips", "exposure", "exact"):
        rows = rows_of(features, stats, estimator=estimator)
        _, slopes = rows.losses_and_slopes(scores)
        up, down = (rows.losses_and_slopes(scores + s)[0] for s in (step, -step))
        np.testing.assert_allclose(slopes, (up - down) / (2 * step), rtol=1e-5, atol=1e-6)


def test_rows_count_if_shown_more_often_than_asked_for_where_users_look() -> None:
    stats = BehaviorStats.of(shown=[[3, 0], [0, 3], [2, 2], [0, 0]], clicks=np.zeros((4, 2)))
    features = np.zeros((4, 1), np.float32)
    assert rows_of(features, stats).included.tolist() == [True, True, True, False]
    few = rows_of(features, stats, min_impressions=3)
    assert few.included.tolist() == [False, False, True, False]
    assert few.count == 1


@given(st.lists(st.booleans(), min_size=40, max_size=40))
def test_a_subset_has_the_losses_of_its_rows(chosen: list[bool]) -> None:
    features, stats = made_up(40, 2, seed=3, mean=1.0)
    rows = rows_of(features, stats)
    part = rows.subset(np.array(chosen))
    assert part.count == np.count_nonzero(rows.included & chosen)
    scores = np.zeros(40)
    whole, some = rows.losses_and_slopes(scores)[0], part.losses_and_slopes(scores)[0]
    np.testing.assert_array_equal(some, np.where(chosen, whole, 0.0))


def test_any_number_of_threads_gives_the_same_bits() -> None:
    features, stats = made_up(40_000, 2, seed=4)
    scores = np.random.default_rng(0).normal(size=40_000)
    found = {
        b"".join(
            part.tobytes()
            for part in rows_of(features, stats, threads=threads).losses_and_slopes(scores)
        )
        for threads in (1, 2, 5)
    }
    assert len(found) == 1


def test_a_single_number_of_a_state() -> None:
    assert number({"ridge": np.array([0.5])}, "ridge") == 0.5
    assert number({"ridge": np.array(0.5)}, "ridge") == 0.5
