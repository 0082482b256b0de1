"""Intervals that may be read every day: means and differences of arms, anytime-valid.

An ordinary 95 % interval covers the truth at one time that was chosen in advance. If you look
daily and stop at the first difference, you are wrong far more often than in 5 % of cases. A
confidence sequence covers the truth at all times at once, so that looking costs only width.

A unit is what was randomized: a user, or a query. It had some lists (its weight) and some clicks
(its value), and the metric is the ratio of their sums. Lists of one unit depend on each other;
units do not. `Moments` holds all that is needed of any number of units: six sums, which add up.

Ninety clicks in 1,000 lists against 120 in another 1,000, each list a unit of its own:

>>> control, treatment = (Moments.of(np.arange(1000) < clicks) for clicks in (90, 120))
>>> [round(end, 3) for end in difference(treatment, control)]
[0.03, -0.016, 0.076]
>>> [round(end, 3) for end in difference(treatment, control, looks="once")]
[0.03, 0.003, 0.057]

References:
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024): Time-uniform central limit theory and
    asymptotic confidence sequences. Annals of Statistics 52(6). arXiv 2103.06476.
    Deng, Knoblich and Lu (2018): Applying the delta method in metric analytics. KDD. arXiv
    1803.06336.
    Lindon and Malek (2022): Anytime-valid inference for multinomial count data. NeurIPS. arXiv
    2011.03567.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Literal, NamedTuple, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, lambertw, ndtri

from ebrank.errors import ParameterError

Looks = Literal["always", "once"]
"""Whether an interval may be read at any time, or once, at a time chosen in advance."""

ALPHA = 0.05
TUNED_FOR = 10_000.0
"""Lists of all arms at which an interval is tightest unless the caller knows better."""
FEWEST_UNITS = 30.0
"""With fewer effective units in an arm, its variance is not known, and an interval has no ends."""
CONCENTRATION = 1000.0
"""How sure the alternative of the sample-ratio check is that shares are nearly as planned."""


class Interval(NamedTuple):
    """An estimate and the ends of its interval; the ends are infinite if little is known."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over units, of values x and weights m: what an interval needs to know.

    Attributes:
        units: how many there are, n.
        weight: Σm, the lists.
        total: Σx, the clicks.
        weight_squares: Σm².
        squares: Σx².
        products: Σxm.
    """

    units: float = 0.0
    weight: float = 0.0
    total: float = 0.0
    weight_squares: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    @classmethod
    def of(cls, values: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Moments:
        """Return the sums over units with these values, each of weight 1 if none are given."""
        x = np.asarray(values, np.float64)
        m = np.ones_like(x) if weights is None else np.asarray(weights, np.float64)
        if x.ndim != 1 or x.shape != m.shape:
            raise ParameterError("values and weights must be two lists of the same length")
        if not (np.isfinite(x).all() and np.isfinite(m).all() and (m >= 0.0).all()):
            raise ParameterError("values must be finite, and weights finite and not negative")
        sums = (len(x), m.sum(), x.sum(), m @ m, x @ x, x @ m)
        return cls(*map(float, sums))

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def mean(self) -> float:
        """Σx/Σm, clicks per list; NaN without any."""
        return self.total / self.weight if self.weight > 0.0 else math.nan

    @property
    def effective_units(self) -> float:
        """(Σm)²/Σm²: n for equal weights, and fewer if a few units have most of the lists (Kish).

        A ratio is a mean over that many units; by n alone, a thousand rare queries and one that has
        half of all lists would look like a large sample.
        """
        return self.weight**2 / self.weight_squares if self.weight_squares > 0.0 else 0.0

    @property
    def variance(self) -> float:
        """The variance of the mean by the delta method, n/(n−1) · Σ(x − Rm)²/(Σm)².

        With weights of 1 it is s²/n. Infinite with fewer than `FEWEST_UNITS` effective units.
        """
        if self.effective_units < FEWEST_UNITS:
            return math.inf
        ratio = self.mean
        residuals = self.squares - 2.0 * ratio * self.products + ratio**2 * self.weight_squares
        return self.units / (self.units - 1.0) * max(residuals, 0.0) / self.weight**2


class Rule(TypedDict, total=False):
    """How sure an interval is.

    Attributes:
        alpha: how often it may miss the truth, at any time.
        tuned_for: lists of all arms at which it is tightest.
        looks: whether it may be read at any time, or once.
        sided: 2, or 1 if each end holds at the level `alpha` on its own: use one of them, chosen in
            advance.
    """

    alpha: float
    tuned_for: float
    looks: Looks
    sided: int


def mean(arm: Moments, **rule: Unpack[Rule]) -> Interval:
    """Return an arm's mean per unit of weight, and its interval."""
    return interval(arm.mean, arm.variance, arm.weight, **rule)


def difference(
    treatment: Moments, control: Moments, *, factor: float = 1.0, **rule: Unpack[Rule]
) -> Interval:
    """Return treatment − factor · control, and its interval.

    A `factor` of 0.995 asks whether the treatment keeps 99.5 % of what the control has, without an
    approximation for ratios.
    """
    return interval(*_contrast(treatment, control, factor), **rule)


def tuning(alpha: float, tuned_for: float) -> float:
    """Return ρ² that makes a two-sided sequence tightest at t lists: (−W₋₁(−α²/e) − 1)/t.

    W is Lambert's function (Waudby-Smith et al., appendix B.2).
    """
    if not (0.0 < alpha < 1.0 and tuned_for > 0.0):
        raise ParameterError("alpha must be between 0 and 1, and tuned_for positive")
    return float(-lambertw(-(alpha**2) / math.e, -1).real - 1.0) / tuned_for


def _p(estimate: float, variance: float, lists: float) -> float:
    """Return a p-value of "the truth is 0" that may be read at any time.

    It is at most `ALPHA` exactly if the two-sided interval excludes 0: with z the estimate in
    standard errors and u = tρ², p = √(u + 1) · exp(−z² u / (2(u + 1))).
    """
    if not 0.0 < variance < math.inf:
        return 1.0
    u = lists * tuning(ALPHA, TUNED_FOR)
    log_p = 0.5 * math.log1p(u) - estimate**2 / variance * u / (2.0 * (u + 1.0))
    return math.exp(min(log_p, 0.0))


def _contrast(treatment: Moments, control: Moments, factor: float) -> tuple[float, float, float]:
    """Return estimate and variance of a difference, and the lists that it is made of."""
    variance = treatment.variance + factor**2 * control.variance
    estimate = treatment.mean - factor * control.mean
    return estimate, variance, treatment.weight + control.weight


def interval(
    estimate: float,
    variance: float,
    lists: float,
    *,
    alpha: float = ALPHA,
    tuned_for: float = TUNED_FOR,
    looks: Looks = "always",
    sided: int = 2,
) -> Interval:
    """Return an interval of an estimate with this variance after t lists.

    Its half-width in standard errors, with u = tρ²: two-sided √((u + 1)/u · ln((u + 1)/α²))
    (Waudby-Smith et al., theorem 2.2), one-sided √(2(u + 1)/u · ln(1 + √(u + 1)/(2α))) (appendix
    B.1), and once the normal quantile. The clock is the lists, not the units: a unit that goes on
    making lists goes on moving the estimate. If no unit differs from another, as if nobody has
    clicked yet, how far they may differ is not known, and there are no ends.
    """
    u = lists * tuning(alpha, tuned_for)
    if math.isnan(estimate) or not 0.0 < variance < math.inf:
        return Interval(estimate, -math.inf, math.inf)
    if looks == "once":
        width = float(-ndtri(alpha / sided))
    elif sided == 2:
        width = math.sqrt((u + 1.0) / u * (math.log1p(u) - 2.0 * math.log(alpha)))
    else:
        width = math.sqrt(2.0 * (u + 1.0) / u * math.log1p(math.sqrt(u + 1.0) / (2.0 * alpha)))
    half = width * math.sqrt(variance)
    return Interval(estimate, estimate - half, estimate + half)


def sample_ratio_p(units: Sequence[float], shares: Sequence[float]) -> float:
    """Return an anytime-valid p-value of "arms got the planned shares of units".

    The Bayes factor of a Dirichlet–multinomial around the plan against the plan, inverted (Lindon
    and Malek 2022). Small values mean that arms are lost or double somewhere, and that no
    comparison of them holds. The smallest of several looks is valid, too.

    >>> sample_ratio_p([5000, 5050], [0.5, 0.5])
    1.0
    >>> sample_ratio_p([5000, 5600], [0.5, 0.5]) < 1e-5
    True
    """
    n, p = np.asarray(units, np.float64), np.asarray(shares, np.float64)
    if n.shape != p.shape or n.ndim != 1 or (n < 0).any() or (p <= 0).any():
        raise ParameterError("units and shares must be two lists: counts, and positive shares")
    p = p / p.sum()
    prior = CONCENTRATION * p
    log_factor = (
        gammaln(CONCENTRATION)
        - gammaln(CONCENTRATION + n.sum())
        + (gammaln(prior + n) - gammaln(prior) - n * np.log(p)).sum()
    )
    return math.exp(min(-float(log_factor), 0.0))


def equal_lists_p(arms: Sequence[Moments]) -> float:
    """Return an anytime-valid p-value of "units of all arms had as many lists".

    Each arm is `Moments.of` the lists of its units, including those without any, and is compared
    with the first; the smallest p-value counts for all comparisons (Bonferroni). It sees lost lists
    where every unit has had some, so that the number of units does not show it.
    """
    first, *others = arms
    if any(arm.total**2 < FEWEST_UNITS * arm.squares for arm in arms):
        return 1.0  # a few units have most of the lists
    lists = sum(arm.total for arm in arms)
    gaps = (_contrast(arm, first, 1.0)[:2] for arm in others)
    return min(len(others) * min(_p(*gap, lists) for gap in gaps), 1.0)
