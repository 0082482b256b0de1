"""PDGD's pair weights against lists written out one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from ebrank.rankers.kernels import pairwise
from ebrank.rankers.pdgd import Pairs
from tests.kept import kept
from tests.simulation.reference_online import list_probability, pair_weight, preferred

write_log_tails = kept(pairwise.write_log_tails)
write_item_weights = kept(pairwise.write_item_weights)

Floats = npt.NDArray[np.float64]


def log_sum(scores: list[float]) -> float:
    return math.log(math.fsum(map(math.exp, scores))) if scores else -math.inf


def tails_of(listed: list[float], unlisted: list[float]) -> Floats:
    tails = np.empty(len(listed) + 1)
    write_log_tails(np.array(listed), len(listed), log_sum(unlisted), tails)
    return tails


def weights_of(listed: list[float], unlisted: list[float], clicked: list[bool]) -> Floats:
    weights, tails = np.full(len(listed), 9.0), tails_of(listed, unlisted)
    ones = np.ones(len(listed))
    write_item_weights(np.array(listed), tails, ones, np.array(clicked), len(listed), weights)
    return weights


def expected_weights(scores: list[float], relevance: list[float], length: int) -> list[float]:
    """Return the mean weight of each item over all lists and all clicks on them."""
    p = [1.0, 0.6, 0.4][:length]
    mean = [0.0] * len(scores)
    f = dict(enumerate(scores))
    for rows in itertools.permutations(range(len(scores)), length):
        rest = [scores[row] for row in range(len(scores)) if row not in rows]
        for clicked in itertools.product([False, True], repeat=length):
            chance = list_probability(rows, f)
            for rank, click in enumerate(clicked):
                q = p[rank] * relevance[rows[rank]]
                chance *= q if click else 1.0 - q
            weights = weights_of([scores[row] for row in rows], rest, list(clicked))
            for row, weight in zip(rows, weights.tolist(), strict=True):
                mean[row] += chance * weight
    return mean


def test_no_item_is_preferred_for_its_place_alone() -> None:
    """Equally relevant items, very unequal scores: the expected gradient is zero."""
    weights = expected_weights([2.0, 0.0, -1.0, 0.5], [0.4] * 4, 3)
    np.testing.assert_allclose(weights, 0.0, atol=1e-14)


def test_the_gradient_is_that_of_weighted_preferences() -> None:
    """Finite differences of Σ ρ·σ(f_d − f_e) by the model's weights, ρ held fixed."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(7, 4)).astype(np.float32)
    behavior = rng.random(7)
    w = rng.normal(size=5)
    x = np.column_stack([features, behavior])
    rows, clicked = [2, 5, 0, 6], [False, True, False, True]
    f = dict(enumerate((x @ w).tolist()))
    pairs = preferred(clicked, [True] * 4)

    def rho(better: int, worse: int) -> float:
        d, e = math.exp(f[rows[better]]), math.exp(f[rows[worse]])
        return pair_weight(rows, f, better, worse) / (d * e / (d + e) ** 2)

    def objective(at: Floats) -> float:
        scores = x @ at
        return sum(
            rho(b, c) / (1.0 + math.exp(scores[rows[c]] - scores[rows[b]])) for b, c in pairs
        )

    h = 1e-6
    slopes = [(objective(w + h * e) - objective(w - h * e)) / (2 * h) for e in np.eye(5)]
    rest = [f[row] for row in range(7) if row not in rows]
    weights = weights_of([f[row] for row in rows], rest, clicked)
    log = Pairs(np.array([rows]), weights[None], behavior[rows][None], np.ones(1, np.bool_))
    got = pairwise.gradient_sum(features, log, np.array([1.0]), 5, 0, 1)
    np.testing.assert_allclose(got, slopes, rtol=1e-6, atol=1e-9)


@given(
    st.lists(st.sampled_from([-1e300, -800.0, 0.0, 1e-300, 709.0, 1e5, 1e300]), min_size=2),
    st.floats(-1e300, 1e300) | st.just(-math.inf),
    st.data(),
)
def test_extreme_scores_stay_finite(
    listed: list[float], log_rest: float, data: st.DataObject
) -> None:
    clicked = data.draw(st.lists(st.booleans(), min_size=len(listed), max_size=len(listed)))
    scores, tails, weights = np.array(listed), np.empty(len(listed) + 1), np.empty(len(listed))
    write_log_tails(scores, len(listed), log_rest, tails)
    write_item_weights(scores, tails, np.ones(len(listed)), np.array(clicked), len(listed), weights)
    assert np.all(np.isfinite(weights))
    assert np.all(np.abs(weights) <= 0.25 * len(listed))
