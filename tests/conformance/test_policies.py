"""Every policy that the built-in parts can make conforms, and the checks notice what does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from ebrank import equations, policy
from ebrank.compiled import shared
from ebrank.evidence import Sums
from ebrank.priors import Family, ItemPrior, Posterior
from ebrank.priors.families.beta import DRAW, Beta
from ebrank.special import log_gamma_and_digamma
from ebrank.testing import check_policy
from ebrank.typing import Floats

TEXTS = [
    f"ebrank:estimator={estimator},bonus={bonus}"
    for estimator in ("ips", "exposure", "exact")
    for bonus in ("marginal_certainty", "none", "draw")
]


@pytest.mark.parametrize("text", [*TEXTS, "thompson", "ebrank:part=prior", "ebrank:part=behavior"])
def test_policies_conform(text: str) -> None:
    check_policy(policy.parse(text))


@shared
def steady_loss(score: float, hits: float, trials: float) -> tuple[float, float]:
    mean = 1.0 / (1.0 + np.exp(-score))
    alpha, beta = 6.0 * mean + 1e-6, 6.0 * (1.0 - mean) + 1e-6
    misses = max(trials - hits, 0.0)
    a, a_slope = log_gamma_and_digamma(alpha)
    b, b_slope = log_gamma_and_digamma(beta)
    c, c_slope = log_gamma_and_digamma(hits + alpha)
    d, d_slope = log_gamma_and_digamma(misses + beta)
    return a + b - c - d, (a_slope - c_slope - b_slope + d_slope) * 6.0 * mean * (1.0 - mean)


@dataclass(frozen=True)
class Steady(Family):
    """Both of its numbers differ from item to item."""

    name = "steady"
    help = "Beta prior of fixed strength."
    item: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    mean = Beta.mean
    posteriors: ClassVar = {
        "exposure": Posterior(equations.relevance, equations.posterior_spread, DRAW, steady_loss)
    }

    def prior(self, scores: Floats) -> ItemPrior:
        mean = 1.0 / (1.0 + np.exp(-scores))
        return ItemPrior(6.0 * mean + 1e-6, 6.0 * (1.0 - mean) + 1e-6)

    def marginal_loss(self, prior: ItemPrior, sums: Sums) -> Floats:
        return equations.marginal_likelihood_loss(sums.clicks, sums.exposure, prior.a, prior.b)


def wrong_loss(score: float, hits: float, trials: float) -> tuple[float, float]:
    loss, slope = steady_loss(score, hits, trials)
    return loss, slope + 0.1


@dataclass(frozen=True)
class Wrong(Steady):
    """Its slope is not that of its loss."""

    name = "wrong"
    posteriors: ClassVar = {
        "exposure": Posterior(equations.relevance, equations.posterior_spread, DRAW, wrong_loss)
    }


def test_a_family_whose_second_number_differs_by_item_conforms() -> None:
    check_policy(policy.parse(f"ebrank:family={__name__}:Steady,estimator=exposure"))


def test_a_wrong_slope_is_noticed() -> None:
    with pytest.raises(AssertionError, match="slope"):
        check_policy(policy.parse(f"ebrank:family={__name__}:Wrong,estimator=exposure"))
