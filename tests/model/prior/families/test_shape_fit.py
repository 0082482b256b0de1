"""Fitting the shape, and what examination is learned from, each against a slow calculation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from ebrank import BehaviorStats, EBRanker, Examination
from ebrank.evidence import Sums
from ebrank.evidence.valuation import UNIT
from ebrank.model.policy.policies import parse
from ebrank.model.prior.families import shape as shape_module
from ebrank.model.prior.families import shape_fit
from ebrank.model.prior.families.shape import FIRST, SIZE, base_of, ends, logits, moved
from ebrank.model.prior.rows import Rows
from ebrank.typing import Features, Floats, Ints
from tests.model.prior.made_up import learned, mean_loss

POLICY = parse("auto")
CURVE = Examination(curve=(1.0, 0.7, 0.4, 0.0, 0.2))
U = logits(FIRST)
TILT = (U - U.mean()) / U.std()
START = np.random.default_rng(9).normal(size=SIZE)


def log(seed: int = 0, items: int = 40, shown: int = 12) -> tuple[Features, BehaviorStats]:
    """Return items whose features tell nothing, and what users did with them."""
    rng = np.random.default_rng(seed)
    impressions = rng.integers(0, shown, (items, 5)) * (rng.random((items, 5)) < 0.7)
    clicks = rng.binomial(impressions, CURVE(np.arange(5) + 1) * rng.beta(1, 4, (items, 1)))
    return rng.random((items, 2), dtype=np.float32), BehaviorStats.of(impressions, clicks)


def rows_of(
    seed: int = 0, base: Floats | None = None, items: int = 40, shown: int = 12
) -> tuple[Rows, Floats]:
    """Return rows under a shape, and some scores."""
    state = None if base is None else {"shape": base}
    rows = POLICY.prior.rows(*log(seed, items, shown), CURVE, 1, state)
    return rows, np.random.default_rng(seed + 1).normal(size=items)


def every(rows: Rows) -> Ints:
    chosen: Ints = np.flatnonzero(rows.included)
    return chosen


def log_weights(behavior: BehaviorStats, p: Floats, scores: Floats, base: Floats) -> Floats:
    """Return the log of the posterior weight of each node (columns) for each item, unscaled."""
    relevance = expit(U)
    prior = base + scores[:, None] * TILT
    prior -= logsumexp(prior, axis=1, keepdims=True)
    clicks = behavior.counts[:, 1] * (p > 0)
    passed = behavior.counts[:, 0] - behavior.counts[:, 1]
    likelihood = np.multiply.outer(clicks.sum(axis=1), np.log(relevance))
    likelihood += passed @ np.log1p(-np.multiply.outer(p, relevance))
    return np.asarray(prior + likelihood + (clicks @ np.log(np.where(p > 0, p, 1.0)))[:, None])


# --- the shape -----------------------------------------------------------------------------------


FEW_OR_MANY = pytest.mark.parametrize("shown", [12, 5000], ids=["on the grid", "narrow"])


@FEW_OR_MANY
def test_the_loss_of_a_shape_is_that_of_the_rows_and_its_slope_by_differences(shown: int) -> None:
    """But for what a shape cannot change."""
    first, second = np.random.default_rng(4).normal(size=(2, SIZE))
    rows, scores = rows_of(shown=shown)
    weights = shape_fit.weights_of(rows, scores, every(rows), START)

    def sums(base: Floats) -> tuple[float, Floats]:
        return shape_fit.base_sums(*weights[1:], base - START)

    def loss(base: Floats) -> float:
        return float(shape_fit.with_shape(rows, base).losses_and_slopes(scores)[0].sum())

    difference = sums(second)[0] - sums(first)[0]
    assert difference == pytest.approx(loss(second) - loss(first), rel=1e-9)
    steps = 1e-4 * np.eye(SIZE)
    numeric = [(sums(first + step)[0] - sums(first - step)[0]) / 2e-4 for step in steps]
    np.testing.assert_allclose(sums(first)[1], numeric, rtol=1e-5, atol=1e-5)


# --- what it recovers ----------------------------------------------------------------------------


def two_kinds(seed: int, items: int) -> tuple[Features, BehaviorStats]:
    """Return items of which four in five are bad and the rest good, with nothing in between.

    All that is shown is looked at, so that the loss of a Beta prior is exact, too.
    """
    rng = np.random.default_rng(seed)
    relevance = np.where(rng.random(items) < 0.8, 0.05, 0.7)
    shown = rng.integers(1, 25, items)
    clicks = rng.binomial(shown, relevance)
    return rng.random((items, 1), dtype=np.float32), BehaviorStats.of(shown, clicks)


@pytest.mark.slow
def test_two_kinds_of_items_are_explained_better_than_by_a_beta() -> None:
    training, unseen = two_kinds(0, 3000), two_kinds(1, 3000)
    given = Examination(severity=0.0)
    shaped = EBRanker("auto:examination=given", examination=given)
    shaped.fit(*training, validation=two_kinds(5, 1000))
    betas = (
        EBRanker("ebrank:estimator=exact", examination=given, beta=beta).fit(*training)
        for beta in (0.3, 1.0, 3.0)
    )
    best = min(mean_loss(ranker, *unseen) for ranker in betas)
    assert mean_loss(shaped, *unseen) < best - 0.03
    assert shaped.state_ is not None
    score = shaped.prior(training[0]).a.mean()
    heights = shaped.state_["shape"] + score * TILT
    weights = np.exp(heights - logsumexp(heights))
    relevance = expit(U)
    middle = (relevance > 0.15) & (relevance < 0.45)
    assert weights[middle].sum() < 0.1
    assert weights[relevance >= 0.45].sum() == pytest.approx(0.2, abs=0.05)


def test_a_shape_without_data_is_a_bell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large penalty leaves but a parabola in u: third differences are all zero."""
    monkeypatch.setattr(shape_module, "SMOOTHNESS", 5e8)
    shape = learned("auto:examination=given", *two_kinds(2, 500), Examination(0.0))["shape"]
    assert np.abs(np.diff(shape, n=3)).max() < 1e-4
    assert np.ptp(np.diff(shape, n=2)) < 1e-3


# --- the tilt ------------------------------------------------------------------------------------


def test_the_variance_is_the_mean_of_the_rows_priors() -> None:
    rows, scores = rows_of(items=100)
    base, variance = shape_fit.fitted(rows, scores, base_of(FIRST), 1e-2)
    prior = base + scores[every(rows), None] * TILT
    weights = np.exp(prior - logsumexp(prior, axis=1, keepdims=True))
    expected = (weights @ U**2 - (weights @ U) ** 2).mean()
    assert variance == pytest.approx(expected, rel=1e-9)


def test_a_score_of_one_moves_the_mean_of_logits_by_about_one() -> None:
    """However wide the prior is."""
    for noise in (0.3, 1.5):
        rng = np.random.default_rng(6)
        features = rng.random((2000, 1), dtype=np.float32)
        relevance = expit(-2.0 + 2.0 * features[:, 0] + noise * rng.normal(size=2000))
        shown = np.full((2000, 1), 100)
        behavior = BehaviorStats.of(shown, rng.binomial(shown, relevance[:, None]))
        state = learned("auto:ridge=1e-6", features, behavior, Examination(0.0))
        assert state["weights"][0] == pytest.approx(2.0, abs=0.4)


# --- the grid ------------------------------------------------------------------------------------


def served(relevance: Floats, shown: int, seed: int = 7) -> BehaviorStats:
    rng = np.random.default_rng(seed)
    impressions = np.full((len(relevance), 1), shown)
    return BehaviorStats.of(impressions, rng.binomial(impressions, relevance[:, None]))


@pytest.mark.parametrize(
    ("low", "high", "shown"), [(1e-5, 1e-3, 100_000), (0.02, 0.5, 500), (0.5, 0.999, 20_000)]
)
def test_the_grid_covers_what_relevance_can_be(low: float, high: float, shown: int) -> None:
    relevance = np.geomspace(low, high, 500)
    first, last = expit(ends(served(relevance, shown).sums(Examination())))
    assert first < 1.5 * low
    assert last > high
    assert last < 1 - (1 - high) / 20  # but not by far
    assert last < 20 * high


@pytest.mark.parametrize(("level", "shown"), [(1e-4, 200_000), (0.998, 20_000)])
def test_relevances_at_both_ends_are_ordinary(level: float, shown: int) -> None:
    """Estimates are right, no two are alike, and intervals are as wide as they should be."""
    rng = np.random.default_rng(8)
    u = np.log(level / (1 - level)) + 0.5 * rng.normal(size=400)
    relevance = expit(u)
    behavior = served(relevance, shown)
    features = np.ones((400, 1), np.float32)
    ranker = EBRanker("auto", examination=Examination(0.0)).fit(features, behavior)
    ranking = ranker.rank(features, behavior)
    truth = relevance[ranking.order]
    low, high = ranking.interval.T
    assert 0.82 < np.mean((low <= truth) & (truth <= high)) < 0.97
    clicks = np.unique(behavior.counts[:, 1, 0])
    assert len(np.unique(ranking.relevance.round(12))) == len(clicks)  # none at an end


def test_an_unseen_click_is_no_reason_for_a_wide_grid() -> None:
    """One impression, one click: in a catalog with rates of 1e-5 that is chance."""
    clicks, exposure = np.zeros(10_000), np.full(10_000, 1000.0)
    clicks[:100] = 1.0
    clicks[-1] = exposure[-1] = 1.0
    found = ends(Sums(exposure, clicks, clicks, exposure))
    assert expit(found[1]) < 1e-2


def test_a_shape_moves_to_another_grid() -> None:
    base = -0.5 * (U + 1.5) ** 2
    wider = np.linspace(-9.0, 6.0, SIZE)
    found = moved(base, U, wider)
    inside = (wider > U[0]) & (wider < U[-1])
    np.testing.assert_allclose(found[inside], np.interp(wider[inside], U, base))
    assert np.all(np.diff(found)[wider[1:] < U[0]] > 0)
    assert np.all(np.diff(found)[wider[:-1] > U[-1]] < 0)
    np.testing.assert_array_equal(moved(base, U, U), base)


# --- examination ---------------------------------------------------------------------------------


def brute_force(
    behavior: BehaviorStats, p: Floats, scores: Floats, base: Floats
) -> tuple[Floats, Floats]:
    """Return the log likelihood of each row, and its slopes by p and the score: differences."""

    def likelihood(p: Floats, scores: Floats) -> Floats:
        return np.asarray(logsumexp(log_weights(behavior, p, scores, base), axis=1))

    step, slopes = 1e-6, []
    for slot in range(len(p)):
        moved = step * (np.arange(len(p)) == slot) * (p > 0)
        up, down = likelihood(np.minimum(p + moved, 1.0), scores), likelihood(p - moved, scores)
        slopes.append((up - down) / (2 * step if p[slot] < 1 else step))
    up, down = likelihood(p, scores + step), likelihood(p, scores - step)
    slopes.append((up - down) / (2 * step))
    return likelihood(p, scores), np.array(slopes).T


def test_slopes_and_information_by_finite_differences() -> None:
    base = 0.5 * np.random.default_rng(6).normal(size=SIZE)
    rows, scores = rows_of(base=base)
    _, behavior = log()
    p = behavior.valuation(CURVE).exposure * UNIT
    p_inside = np.where(p == 1.0, 1.0 - 1e-5, p)  # differences need room on both sides
    curve = Examination(curve=tuple(p_inside.tolist()))
    own = POLICY.prior.with_state(rows, behavior.valuation(curve), {"shape": base})
    chosen = every(rows)
    likelihood, slopes = brute_force(behavior, p_inside, scores, base)
    losses, by_score = own.losses_and_slopes(scores)
    np.testing.assert_allclose(losses[chosen], -likelihood[chosen], rtol=1e-6)
    np.testing.assert_allclose(by_score[chosen], -slopes[chosen, -1], rtol=1e-4, atol=1e-6)
    _, sums, information = shape_fit.examined(own, scores, chosen)
    np.testing.assert_allclose(sums, slopes[chosen].sum(axis=0), rtol=1e-4, atol=1e-3)
    outer = slopes[chosen].T @ slopes[chosen]
    np.testing.assert_allclose(information, outer, rtol=1e-4, atol=1e-2)
    assert np.all(information[3] == 0.0)  # nobody looks there


def test_support_is_what_was_seen_elsewhere_as_well() -> None:
    stats = BehaviorStats.of([[4, 4, 0], [9, 0, 0], [2, 1, 1]], np.zeros((3, 3), int))
    rows = POLICY.prior.rows(np.zeros((3, 1), np.float32), stats, Examination(), 1)
    support, _, _ = shape_fit.examined(rows, np.zeros(3), every(rows))
    expected = [4 * 4 / 8 + 0 + 2 * 2 / 4, 4 * 4 / 8 + 1 * 3 / 4, 1 * 3 / 4]
    np.testing.assert_allclose(support, expected)
