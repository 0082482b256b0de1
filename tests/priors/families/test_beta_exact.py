"""The exact posterior against fine integration, within the errors its docstring promises."""

from __future__ import annotations

from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
import scipy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import betaln, expit, log_expit

from ebrank import BehaviorStats, Examination
from ebrank.evidence import CLICKS, Behaviors
from ebrank.evidence.sums import ItemCounts
from ebrank.priors.families.beta_exact import (
    exact_loss,
    exact_moments,
    exact_relevance,
    exact_spread,
)
from ebrank.typing import Floats
from tests.evidence.logs import SHOP, counted_weights

NODES, WEIGHTS = np.polynomial.legendre.leggauss(100)


class Case(NamedTuple):
    """An item: the parameters of its prior, what users did, and the curve."""

    alpha: float
    beta: float
    stats: BehaviorStats
    curve: Examination

    @property
    def evidence(self) -> ItemCounts:
        """What functions of exact evidence take after the prior."""
        valuation = self.stats.valuation(self.curve)
        counts: Any = self.stats.counts.ravel()
        table: Any = valuation.table
        return ItemCounts(counts, valuation.slots, valuation.behaviors, table)

    @property
    def hits(self) -> float:
        return float(self.stats.sums(self.curve).clicks[0])

    @property
    def passed(self) -> tuple[Floats, Floats]:
        """p and passed impressions of each slot, behaviors counted by their weight."""
        p: Floats = self.stats.valuation(self.curve).exposure * np.float64(2.0**-30)
        counts: Floats = self.stats.counts[0].astype(np.float64)
        return p, counts[0] - counted_weights(self.stats.behaviors) @ counts[1:]

    def log_height(self, u: Floats) -> Floats:
        """Return the log of the integrand, prior times likelihood, by u = log(R/(1 − R))."""
        p, passed = self.passed
        total = (self.alpha + self.hits) * log_expit(u) + self.beta * log_expit(-u)
        rest = 1.0 - p + np.multiply.outer(expit(-u), p)
        return np.asarray(total + np.log(np.maximum(rest, 1e-300)) @ passed)


class Truth(NamedTuple):
    """What integration gives."""

    mean: float
    spread: float
    log_mass: float
    mean_log: float


def integrated(case: Case) -> Truth:
    """Return the moments by Gauss's rule, in pieces about the highest point."""

    def minus(u: float) -> float:
        return -float(case.log_height(np.array(u)))

    found: Any = scipy.optimize.minimize_scalar(minus, bounds=(-80, 80), options={"xatol": 1e-10})
    center, top = float(found.x), -float(found.fun)
    bend = (minus(center + 1e-3) - 2 * minus(center) + minus(center - 1e-3)) / 1e-6
    width = 1 / np.sqrt(max(bend, 1e-3))
    borders = [center]
    for side in (-1, 1):
        reach = width
        while reach < 1e7 and -minus(center + side * reach) > top - 40:
            borders.append(center + side * reach)
            reach *= 2
        borders.append(center + side * reach)
    edges = np.array(sorted(borders))
    low, high = edges[:-1, None], edges[1:, None]
    u = low + (high - low) * (0.5 + 0.5 * NODES)
    weights = (high - low) * 0.5 * WEIGHTS
    heights = np.exp(case.log_height(u) - top)
    shift = float(expit(center))

    def total(value: Any) -> float:  # noqa: ANN401 (a function)
        return float(np.sum(weights * value(u) * heights))

    mass = total(lambda u: 1.0)
    mean = total(lambda u: expit(u)) / mass
    off = total(lambda u: expit(u) - shift) / mass
    square = total(lambda u: (expit(u) - shift) ** 2) / mass
    return Truth(mean, np.sqrt(square - off**2), np.log(mass) + top, total(log_expit) / mass)


def some_counts(rng: np.random.Generator, behaviors: Behaviors, most: float) -> BehaviorStats:
    """Return counts of one item, from none at all to many."""
    slots = int(rng.integers(1, 17))
    scale = np.exp(rng.uniform(-1, np.log(most)))
    shown = rng.poisson(scale * rng.random(slots) * rng.integers(0, 2, slots))
    counts = np.zeros((1, behaviors.outcomes, slots), np.int32)
    counts[0, 0] = shown
    rate = rng.choice([0.0, 0.01, 0.3, 1.0])
    counts[0, 1 + rng.integers(len(behaviors.all))] = rng.binomial(shown, rate)
    return BehaviorStats(counts, behaviors)


def some_case(seed: int, alphas: tuple[float, float], betas: tuple[float, float]) -> Case:
    """Return a random item whose α and β lie in these ranges."""
    rng = np.random.default_rng(seed)
    alpha, beta = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in (alphas, betas))
    behaviors = SHOP if rng.random() < 0.2 else CLICKS
    curve = Examination(severity=float(rng.choice([0.0, 0.1, 0.5, 1.0, 2.0])))
    return Case(alpha, beta, some_counts(rng, behaviors, 1e5), curve)


def check(case: Case, mean: float, spread: float, loss: float) -> None:
    """Compare with integration, within these errors."""
    truth = integrated(case)
    assert exact_relevance(case.alpha, case.beta, case.evidence) == pytest.approx(
        truth.mean, rel=mean
    )
    assert exact_spread(case.alpha, case.beta, case.evidence) == pytest.approx(
        truth.spread, rel=spread
    )
    found, slope = exact_loss(float(np.log(case.alpha)), case.beta, case.evidence)
    whole = betaln(case.alpha, case.beta) - truth.log_mass
    size = max(1.0, abs(truth.log_mass))  # a sum of so large terms has no more digits
    assert found == pytest.approx(whole, abs=loss + 1e-12 * size)
    assert np.isfinite(slope)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 10**6))
@example(813)  # many behaviors of a weight that units of 2⁻³⁰ cannot hold
def test_errors_for_ordinary_priors(seed: int) -> None:
    check(some_case(seed, (0.05, 1000), (0.05, 1000)), mean=1e-6, spread=1e-5, loss=1e-6)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_errors_for_all_priors_that_a_score_can_give(seed: int) -> None:
    case = some_case(seed, (np.exp(-9.99), np.exp(9.99)), (1e-3, 1e4))
    check(case, mean=1e-4, spread=1e-3, loss=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.7), (1.0, 5.0), (8.0, 2.0), (0.05, 40.0)])
def test_moments_in_high_precision(alpha: float, beta: float) -> None:
    stats = BehaviorStats.of(shown=[[7, 0, 4, 9]], clicks=[[2, 0, 0, 3]])
    case = Case(alpha, beta, stats, Examination())
    p, passed = case.passed
    with mpmath.workdps(30):

        def density(r: mpmath.mpf) -> mpmath.mpf:
            rest = [(1 - pk * r) ** mk for pk, mk in zip(p, passed, strict=True)]
            return r ** (alpha - 1 + 5) * (1 - r) ** (beta - 1) * mpmath.fprod(rest)

        pieces = [0, 0.01, 0.1, 0.3, 0.6, 0.9, 0.99, 1]
        mass = mpmath.quad(density, pieces)
        mean = mpmath.quad(lambda r: r * density(r), pieces) / mass
        square = mpmath.quad(lambda r: r * r * density(r), pieces) / mass
        spread = float(mpmath.sqrt(square - mean**2))
        log_mass = float(mpmath.log(mass))
    found = exact_moments(alpha, beta, case.evidence)
    assert found[0] == pytest.approx(log_mass, abs=1e-6)
    assert found[1] == pytest.approx(float(mean), rel=1e-6)
    assert found[2] == pytest.approx(spread, rel=1e-5)


@given(st.floats(-9.9, 9.9), st.floats(0.01, 1000), st.integers(0, 10**6))
def test_slope_by_finite_differences(score: float, beta: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = Case(1.0, beta, some_counts(rng, CLICKS, 1e4), Examination())
    step = 1e-3
    up, down = (exact_loss(score + s, beta, case.evidence)[0] for s in (step, -step))
    _, slope = exact_loss(score, beta, case.evidence)
    size = np.exp(score) + case.hits + 1.0  # the slope is a difference of terms of this size
    assert slope == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-5 * size)


def test_a_clipped_score_is_flat() -> None:
    stats = BehaviorStats.of(shown=[[7, 4]], clicks=[[2, 0]])
    evidence = Case(1.0, 5.0, stats, Examination()).evidence
    for score, end in ((-12.0, -10.0), (12.0, 10.0)):
        assert exact_loss(score, 5.0, evidence) == (exact_loss(end, 5.0, evidence)[0], 0.0)


@given(st.floats(0.05, 100), st.floats(0.05, 100), st.integers(0, 50), st.integers(0, 50))
def test_where_all_is_examined_it_is_the_beta_posterior(
    alpha: float, beta: float, clicks: int, passed: int
) -> None:
    stats = BehaviorStats.of(shown=[clicks + passed], clicks=[clicks])
    evidence = Case(alpha, beta, stats, Examination()).evidence
    a, b = alpha + clicks, beta + passed
    mean = a / (a + b)
    assert exact_relevance(alpha, beta, evidence) == pytest.approx(mean, rel=1e-6)
    spread = np.sqrt(mean * (1 - mean) / (a + b + 1))
    assert exact_spread(alpha, beta, evidence) == pytest.approx(spread, rel=1e-5)
    loss, _ = exact_loss(float(np.log(alpha)), beta, evidence)
    assert loss == pytest.approx(betaln(alpha, beta) - betaln(a, b), abs=1e-6)
