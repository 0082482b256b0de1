"""The formula that a policy's parts add up to: relevance plus bonus, and what else lists need.

>>> from ebrank.model.bonus.marginal_certainty import MarginalCertainty
>>> from ebrank.model.prior.families.beta import Beta
>>> score = score_formula(Beta, MarginalCertainty, "exposure", "both")
>>> print(f"{score(a=1.0, b=5.0, clicks=3.0, exposure=10.0, epsilon=20.0):.4f}")
0.2695
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from ebrank.equations import horizon_bonus
from ebrank.evidence.estimators import ESTIMATORS, click_rate
from ebrank.model.formula import MODEL, PAIR, SCORE, Formula, Score, Source
from ebrank.model.prior.prior import mean_formula, numbers_of

HORIZON = "horizon"
"""The parameter of a bonus that says how many lists to plan for."""


class Scores(NamedTuple):
    """How a policy scores items, given what it has learned.

    Attributes:
        score: sorts lists: R̂ plus the bonus.
        both: the score and the relevance, in the frame PAIR.
        relevance: R̂, the score without exploration.
        prior: the relevance that the features alone predict.
        spread: standard deviation of the relevance.
    """

    score: Score
    both: Score
    relevance: Score
    prior: Score
    spread: Score


@cache
def score_formula(
    family: Any,  # noqa: ANN401 (a class)
    bonus: Any,  # noqa: ANN401 (a class)
    estimator: str,
    part: str,
    *,
    paired: bool = False,
) -> Formula:
    """Return the formula of these parts; policies with the same parts share one object."""
    item: dict[str, Source] = dict(zip(family.item, MODEL, strict=False))
    quantities: dict[str, Source] = dict(ESTIMATORS[estimator].quantities)
    names = tuple(name for name in numbers_of(family) if name not in item)
    if part in ("prior", "behavior"):
        alone = mean_formula(family) if part == "prior" else Formula(click_rate, given=quantities)
        if not paired:
            return alone
        given = {**alone.given, "alone": alone.function}
        return Formula(_twice, *alone.parameters, given=given, frame=PAIR)
    posterior = family.posteriors[estimator]
    given = {
        **item,
        **quantities,
        "relevance": posterior.relevance,
        "spread": posterior.spread,
        "draw": posterior.draw,
        "upside": horizon_bonus,
        **posterior.given,
    }
    if part == "spread":
        return Formula(_spread, *names, given=given)
    if bonus is None:
        return Formula(_as_it_is, *names, given=given)
    total, frame = (_total_and_relevance, PAIR) if paired else (_total, SCORE)
    numbers = numbers_of(bonus, HORIZON)
    given["bonus"] = bonus.value
    before = ("relevance", "spread") if posterior.given else ()
    if HORIZON in numbers and posterior.planned:
        given |= posterior.planned
        before = ("relevance", "upside")
    return Formula(total, *names, *numbers, given=given, frame=frame, before=before)


def _as_it_is(relevance: float) -> float:
    """Return the relevance."""
    return relevance


def _spread(spread: float) -> float:
    """Return the standard deviation of the posterior."""
    return spread


def _total(relevance: float, bonus: float) -> float:
    """Return relevance plus bonus (eq:sortRankingscore)."""
    return relevance + bonus


def _total_and_relevance(relevance: float, bonus: float) -> tuple[float, float]:
    """Return relevance plus bonus, and the relevance."""
    return relevance + bonus, relevance


def _twice(alone: float) -> tuple[float, float]:
    """Return a score that has no bonus, and the relevance, which is the same."""
    return alone, alone
