"""The exact posterior against fine integration, within the errors its docstring promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import betaln, expit, log_expit

from ebrank import BehaviorStats, Examination
from ebrank.evidence import CLICKS
from ebrank.model.prior.families.beta_exact import (
    exact_loss,
    exact_moments,
)
from ebrank.typing import Floats
from tests.evidence.logs import SHOP
from tests.model.prior.slow import Item, some_counts

NODES, WEIGHTS = np.polynomial.legendre.leggauss(100)


@dataclass(frozen=True)
class Case(Item):
    """An item, and the parameters of its prior."""

    alpha: float
    beta: float

    def log_height(self, u: Floats) -> Floats:
        """Return the log of the integrand, prior times likelihood, by u = log(R/(1 − R))."""
        prior = self.alpha * log_expit(u) + self.beta * log_expit(-u)
        return np.asarray(prior + self.log_likelihood(u))


class Truth(NamedTuple):
    """What integration gives."""

    mean: float
    spread: float
    log_mass: float


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
    return Truth(mean, np.sqrt(square - off**2), np.log(mass) + top)


def some_case(seed: int, alphas: tuple[float, float], betas: tuple[float, float]) -> Case:
    """Return a random item whose α and β lie in these ranges."""
    rng = np.random.default_rng(seed)
    alpha, beta = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in (alphas, betas))
    behaviors = SHOP if rng.random() < 0.2 else CLICKS
    curve = Examination(severity=float(rng.choice([0.0, 0.1, 0.5, 1.0, 2.0])))
    return Case(some_counts(rng, behaviors, 1e5), curve, alpha, beta)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alphas", "betas", "errors"),
    [
        ((0.05, 1000), (0.05, 1000), (1e-6, 1e-5, 1e-6)),
        ((np.exp(-9.99), np.exp(9.99)), (1e-3, 1e4), (1e-4, 1e-3, 1e-5)),
    ],
    ids=["ordinary priors", "all that a score can give"],
)
@settings(max_examples=40)
@given(st.integers(0, 10**6))
@example(813)  # many behaviors of a weight that units of 2⁻³⁰ cannot hold
def test_errors_of_mean_spread_and_loss(
    alphas: tuple[float, float],
    betas: tuple[float, float],
    errors: tuple[float, float, float],
    seed: int,
) -> None:
    case = some_case(seed, alphas, betas)
    truth, (mean, spread, loss) = integrated(case), errors
    own = case.alpha, case.beta, case.evidence
    found_mean, found_spread, *_ = exact_moments(*own)
    assert found_mean == pytest.approx(truth.mean, rel=mean)
    assert found_spread == pytest.approx(truth.spread, rel=spread)
    found, slope = exact_loss(float(np.log(case.alpha)), case.beta, case.evidence)
    whole = betaln(case.alpha, case.beta) - truth.log_mass
    size = max(1.0, abs(truth.log_mass))  # a sum of so large terms has no more digits
    assert found == pytest.approx(whole, abs=loss + 1e-12 * size)
    assert np.isfinite(slope)


@given(st.floats(-9.9, 9.9), st.floats(0.01, 1000), st.integers(0, 10**6))
def test_slope_by_finite_differences(score: float, beta: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    item = Item(some_counts(rng, CLICKS, 1e4), Examination())
    step = 1e-3
    up, down = (exact_loss(score + s, beta, item.evidence)[0] for s in (step, -step))
    _, slope = exact_loss(score, beta, item.evidence)
    size = (
        np.exp(score) + item.clicks.sum() + 1.0
    )  # the slope is a difference of terms of this size
    assert slope == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-5 * size)


def test_a_clipped_score_is_flat() -> None:
    stats = BehaviorStats.of(shown=[[7, 4]], clicks=[[2, 0]])
    evidence = Item(stats, Examination()).evidence
    for score, end in ((-12.0, -10.0), (12.0, 10.0)):
        assert exact_loss(score, 5.0, evidence) == (exact_loss(end, 5.0, evidence)[0], 0.0)
