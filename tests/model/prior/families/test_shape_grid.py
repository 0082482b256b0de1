"""The posterior on a grid against integration over the continuum that the grid stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logsumexp

from ebrank import BehaviorStats, Examination
from ebrank.equations import exploration_weight, horizon_bonus
from ebrank.evidence import CLICKS
from ebrank.evidence.sums import clicks_sum, number
from ebrank.kernels.lanes import LANES
from ebrank.kernels.pointers import ROOM
from ebrank.model.formula import Score
from ebrank.model.policy.policies import parse
from ebrank.model.prior import ItemPrior
from ebrank.model.prior.families import shape_grid
from ebrank.model.prior.families.beta_exact import exact_loss, exact_moments
from ebrank.model.prior.families.shape import FIRST, STEEPEST, grid_numbers, logits
from ebrank.model.scoring import score_pairs, scores
from ebrank.typing import Floats
from tests.bound import unfitted
from tests.evidence.logs import SHOP
from tests.kept import kept
from tests.model.prior.slow import Item, some_counts

narrow_likelihood = kept(shape_grid.narrow_likelihood)
AUTO = parse("auto")
FORMULAS = unfitted(AUTO)

Curve = Callable[[Floats], Floats]

U = logits(FIRST)
STEP = U[1] - U[0]
RELEVANCE = expit(U)


def tilt(u: Floats) -> Floats:
    """Return φ at any place, on the grid or between its nodes."""
    return np.asarray((u - U.mean()) / U.std())


@dataclass(frozen=True)
class Case(Item):
    """An item, its score, and the shape of its prior as a function of u."""

    shape: Curve
    score: float = 0.0

    @property
    def learned(self) -> Any:  # noqa: ANN401 (an array, which kernels take for a sequence)
        valuation = self.stats.valuation(self.curve)
        return grid_numbers(U, tilt(U), self.shape(U), valuation)

    def log_prior(self, u: Floats) -> Floats:
        return self.shape(u) + self.score * tilt(u)

    def log_posterior(self, u: Floats) -> Floats:
        return self.log_prior(u) + self.log_likelihood(u)


def scored(bound: Score, case: Case, learned: Floats | None = None) -> float:
    """Return what a formula of `auto` makes of an item, given other numbers than it learned."""
    prior = ItemPrior(np.array([case.score]), np.zeros(1))
    own = bound.formula.bind(case.learned if learned is None else learned)
    return float(scores(own, prior, case.stats, case.curve)[0])


def moments(case: Case, learned: Floats | None = None) -> tuple[float, float]:
    """Return mean and spread of R."""
    return scored(FORMULAS.relevance, case, learned), scored(FORMULAS.spread, case, learned)


def loss(case: Case, learned: Floats | None = None) -> tuple[float, float]:
    """Return the loss and its slope, of items that were never shown too."""
    rows = AUTO.prior.rows(np.zeros((1, 1), np.float32), case.stats, case.curve, threads=1)
    numbers = case.learned if learned is None else learned
    all_rows = replace(rows, included=np.ones(1, np.bool_), parameters=numbers)
    (value,), (slope,) = all_rows.losses_and_slopes(np.array([case.score]))
    return float(value), float(slope)


class Truth(NamedTuple):
    """Mean and spread of R, and the spread of u in steps of the grid."""

    mean: float
    spread: float
    width: float


def integrated(case: Case) -> Truth:
    """Return the moments by a sum over thousands of places, over what the nodes stand for."""
    low, high = U[0] - STEP / 2, U[-1] + STEP / 2
    for _ in range(3):
        edges = np.linspace(low, high, 2001)
        u = 0.5 * (edges[1:] + edges[:-1])
        heights = case.log_posterior(u)
        (seen,) = np.nonzero(heights > heights.max() - 40)
        low, high = edges[seen[0]], edges[seen[-1] + 1]
    weights = np.exp(heights - logsumexp(heights))
    mean, center = weights @ expit(u), weights @ u
    spread = np.sqrt(weights @ (expit(u) - mean) ** 2)
    return Truth(float(mean), float(spread), float(np.sqrt(weights @ (u - center) ** 2) / STEP))


def some_shape(rng: np.random.Generator) -> Curve:
    """Return one bell, two, or a Beta; none narrower than one and a half steps of the grid."""
    (first, second), (wide, wider) = rng.uniform(-5, 2, 2), rng.uniform(0.65, 3, 2)
    share, beta = rng.uniform(0.1, 0.9), rng.uniform(1, 10)

    def bell(u: Floats, center: float, width: float) -> Floats:
        return np.asarray(-0.5 * ((u - center) / width) ** 2 - np.log(width))

    def two(u: Floats) -> Floats:
        parts = np.log(share) + bell(u, first, wide), np.log(1 - share) + bell(u, second, wider)
        return np.asarray(np.logaddexp(*parts))

    return (
        lambda u: bell(u, first, wide),
        two,
        lambda u: log_expit(u) + beta * log_expit(-u),
    )[int(rng.integers(3))]


def some_case(seed: int, most: float = 1e5) -> Case:
    rng = np.random.default_rng(seed)
    cutoff = int(rng.integers(1, 8)) if rng.random() < 0.3 else None
    curve = Examination(severity=float(rng.choice([0.0, 0.5, 1.0, 2.0])), cutoff=cutoff)
    behaviors = SHOP if rng.random() < 0.2 else CLICKS
    stats = some_counts(rng, behaviors, most, curve)
    return Case(stats, curve, some_shape(rng), float(rng.uniform(-3, 3)))


def test_a_grid_fits_into_lanes_and_into_room() -> None:
    assert len(U) % LANES == len(WIDE) % LANES == 0
    assert len(WIDE) <= ROOM


# --- mean and spread -----------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(0, 10**6))
def test_mean_and_spread_for_any_evidence(seed: int) -> None:
    case = some_case(seed)
    truth = integrated(case)
    assume(expit(U[0]) < truth.mean < expit(U[-1]))  # beyond the grid, the mean is at its end
    mean, spread = moments(case)
    apart = not 0.3 < truth.width < 1.2
    assert abs(mean - truth.mean) <= (0.015 if apart else 0.06) * truth.spread
    assert spread == pytest.approx(truth.spread, rel=0.015 if apart else 0.07)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.4, 0.8])
@pytest.mark.parametrize("severity", [0.0, 1.0])
def test_the_hand_over_from_grid_to_peak(rate: float, severity: float) -> None:
    """About the same rate of clicks, ever more of them, a fifth more each time."""
    curve = Examination(severity)
    for power in range(5, 60):
        shown = np.full(2, round(1.2**power))
        clicks = np.rint(shown * rate * curve([1, 2])).astype(int)
        stats = BehaviorStats.of([shown], [clicks])
        case = Case(stats, curve, lambda u: -0.1 * (u + 2) ** 2)
        mean, spread = moments(case)
        truth = integrated(case)
        assert abs(mean - truth.mean) < 0.03 * truth.spread
        assert spread == pytest.approx(truth.spread, rel=0.05)


@pytest.mark.parametrize(("clicked", "end"), [(0, 0), (100_000, -1)])
def test_what_no_node_explains_is_put_at_the_end(clicked: int, end: int) -> None:
    stats = BehaviorStats.of([[100_000]], [[clicked]])
    case = Case(stats, Examination(), lambda u: -0.1 * u**2)
    mean, spread = moments(case)
    assert mean == pytest.approx(RELEVANCE[end], rel=1e-3)
    assert 0.0 <= spread < 0.01 * mean


@pytest.mark.slow
@given(st.integers(0, 10**6), st.floats(-1e6, 1e6))
def test_extreme_scores_are_those_of_the_steepest(seed: int, score: float) -> None:
    case = some_case(seed)
    clipped = min(max(score, -STEEPEST), STEEPEST)
    mean, spread = moments(replace(case, score=score))
    assert (mean, spread) == moments(replace(case, score=clipped))
    assert RELEVANCE[0] * (1 - 1e-9) <= mean <= RELEVANCE[-1] * (1 + 1e-9)
    assert 0.0 <= spread < 0.5
    value, slope = loss(replace(case, score=score))
    assert np.isfinite(value)
    assert abs(score) <= STEEPEST or slope == 0.0


@given(st.integers(0, 10**6))
def test_slots_that_nobody_examines_say_nothing(seed: int) -> None:
    case = some_case(seed)
    blind = replace(case, curve=Examination(curve=(0.7,)))
    more = blind.stats.counts.copy()
    more[0, 0, 1:] += 50
    louder = replace(blind, stats=BehaviorStats(more, blind.stats.behaviors))
    for function in (moments, loss):
        once, again = (function(c) for c in (blind, louder))
        assert once == pytest.approx(again, rel=1e-12)


# --- the loss ------------------------------------------------------------------------------------


@given(st.integers(0, 10**6))
def test_the_loss_is_minus_the_log_of_the_marginal_likelihood(seed: int) -> None:
    case = some_case(seed)
    seen = case.clicks @ np.log(np.where(case.p > 0, case.p, 1.0))
    clicks = number(clicks_sum(*case.evidence))
    place, _, _ = narrow_likelihood(clicks, case.evidence, case.learned)
    value, _ = loss(case)
    normal = logsumexp(case.log_prior(U)) - seen
    if place < 0.0:
        expected = normal - logsumexp(case.log_posterior(U))
        assert value == pytest.approx(expected, rel=1e-7, abs=1e-7)
        return
    fine = np.linspace(U[0] + STEP * (place - 6), U[0] + STEP * (place + 6), 200_001)
    likelihood = logsumexp(case.log_likelihood(fine)) + np.log((fine[1] - fine[0]) / STEP)
    prior = np.interp(place, np.arange(len(U)), case.log_prior(U))
    assert value == pytest.approx(normal - prior - likelihood, rel=1e-7, abs=0.05)


@given(st.integers(0, 10**6))
def test_the_slope_of_the_loss_by_finite_differences(seed: int) -> None:
    case = some_case(seed, most=1e3)
    step = 1e-4
    up, down = (loss(replace(case, score=case.score + s))[0] for s in (step, -step))
    _, slope = loss(case)
    assert slope == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-5)


# --- Beta is a special case ----------------------------------------------------------------------

WIDE_U = np.linspace(-40.0, 24.0, 10 * LANES)
WIDE = expit(WIDE_U)


@given(
    st.floats(0.5, 10),
    st.floats(0.8, 10),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=1, max_size=2),
    st.sampled_from([0.0, 1.0]),
)
def test_beta_is_a_special_case(
    alpha: float, beta: float, ranks: list[tuple[int, int]], severity: float
) -> None:
    clicks, passed = np.array(ranks).T
    stats = BehaviorStats.of([clicks + passed], [clicks])
    case = Case(stats, Examination(severity), lambda u: u, alpha)
    valuation = stats.valuation(case.curve)
    learned: Any = grid_numbers(WIDE_U, np.log(WIDE), beta * log_expit(-WIDE_U), valuation)
    mean, spread = moments(case, learned)
    value, slope = loss(case, learned)
    assert mean == pytest.approx(exact_moments(alpha, beta, case.evidence)[0], rel=2e-6)
    assert spread == pytest.approx(exact_moments(alpha, beta, case.evidence)[1], rel=2e-5)
    whole, by_log = exact_loss(float(np.log(alpha)), beta, case.evidence)
    assert value + clicks @ np.log(case.p) == pytest.approx(whole, abs=2e-6)
    assert slope * alpha == pytest.approx(by_log, rel=1e-4, abs=1e-4)
    assert scored(FORMULAS.prior, case, learned) == pytest.approx(alpha / (alpha + beta), rel=1e-6)


# --- what an item is worth beyond its relevance --------------------------------------------------


def upside(case: Case, horizon: float) -> float:
    """Return the score less the relevance if so many more lists matter."""
    prior = ItemPrior(np.array([case.score]), np.zeros(1))
    own = FORMULAS.both.formula.bind(case.learned, horizon=horizon)
    valuation = case.stats.valuation(case.curve)
    (score,), (relevance,) = score_pairs(own, own.parameters, prior, case.stats.counts, valuation)
    return float(score - relevance)


def solved(case: Case, horizon: float) -> float:
    """Return λ − R̂ from the nodes: λ = R̂ + w·E[(R − λ)⁺]."""
    heights = case.log_posterior(U)
    weights = np.exp(heights - logsumexp(heights))
    mean = weights @ RELEVANCE
    spread = np.sqrt(weights @ (RELEVANCE - mean) ** 2)
    w = exploration_weight(float(mean), float(spread), horizon)
    gain = brentq(lambda x: x - w * (weights @ np.maximum(RELEVANCE - mean - x, 0.0)), 0.0, 1.0)
    return float(gain)


def test_an_index_is_about_the_solution_of_its_equation() -> None:
    rng = np.random.default_rng(1)
    ratios = []
    for seed in range(300):
        case, horizon = some_case(seed, most=20), float(np.exp(rng.uniform(1.5, 7.5)))
        ratios.append(upside(case, horizon) / solved(case, horizon))
    low, median, high = np.quantile(ratios, [0.05, 0.5, 1.0])
    assert low > 0.85
    assert median > 0.99
    assert high < 1.0 + 1e-6


def test_the_index_of_a_narrow_posterior_is_that_of_a_normal_one() -> None:
    stats = BehaviorStats.of([[40_000]], [[10_000]])
    case = Case(stats, Examination(0.0), lambda u: -0.1 * u**2)
    expected = horizon_bonus(*moments(case), 5000.0)
    assert upside(case, 5000.0) == pytest.approx(expected, rel=1e-9)


@given(st.integers(0, 10**6), st.floats(0.0, 1e9))
def test_a_score_never_reaches_the_end_of_the_grid(seed: int, horizon: float) -> None:
    case = some_case(seed, most=20)
    mean, _ = moments(case)
    assert mean <= mean + upside(case, horizon) <= RELEVANCE[-1]


# --- draws ---------------------------------------------------------------------------------------

ITEMS = 20_000


def draws(case: Case) -> Floats:
    """Return draws from the posterior of as many items, all alike."""
    policy = parse("auto:bonus=draw")
    stats = case.stats[np.zeros(ITEMS, np.int64)]
    state = {"shape": case.shape(U)}
    score = policy.scores(state, stats.valuation(case.curve)).score
    prior = ItemPrior(np.full(ITEMS, case.score), np.zeros(1))
    return scores(score, prior, stats, case.curve, np.random.PCG64(5).random_raw(ITEMS))


@pytest.mark.parametrize(
    ("shown", "clicks"), [([0, 0], [0, 0]), ([9, 4], [2, 0]), ([2, 1], [2, 1])]
)
def test_draws_follow_a_wide_posterior(shown: list[int], clicks: list[int]) -> None:
    """Each node's share of draws is its weight, and they fill its step of u evenly."""
    stats = BehaviorStats.of([shown], [clicks])
    case = Case(stats, Examination(), lambda u: -0.1 * (u + 1) ** 2, 0.5)
    drawn = draws(case)
    heights = case.log_posterior(U)
    weights = np.exp(heights - logsumexp(heights))
    edges = np.append(U - STEP / 2, U[-1] + STEP / 2)

    def cdf(relevance: Any) -> Any:  # noqa: ANN401 (numbers or arrays of them)
        u = np.log(relevance) - np.log1p(-relevance)
        return np.interp(u, edges, np.append(0.0, np.cumsum(weights)))

    assert scipy.stats.kstest(drawn, cdf).pvalue > 1e-6


@pytest.mark.parametrize("shown", [300, 3000, 300_000])
def test_draws_of_a_narrow_posterior_have_its_moments(shown: int) -> None:
    stats = BehaviorStats.of([[shown, shown]], [[shown // 5, shown // 9]])
    case = Case(stats, Examination(), lambda u: -0.1 * (u + 1) ** 2, 0.5)
    mean, spread = moments(case)
    drawn = draws(case)
    law = scipy.stats.norm(mean, spread)
    assert scipy.stats.kstest(drawn, law.cdf).pvalue > 1e-6
