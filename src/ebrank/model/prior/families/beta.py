"""Beta(α, β), the paper's prior: α from the features, β fixed (eq:priorModel, eq:releEsti).

Clicks over trials update it to a posterior with mean (hits + α)/(trials + α + β). The evidence says
what hits and trials are: C of n (`ips`), c of E (`exposure`). With `exact` evidence the posterior
is that of the position-based model itself (see `beta_exact`).

>>> import numpy as np
>>> alpha, beta = Beta().prior(np.array([0.0, 1.0]))
>>> Beta.mean(alpha, beta).round(3)
array([0.167, 0.352])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ebrank import equations
from ebrank.equations import (
    HIGHEST_LOG_ALPHA,
    LOWEST_LOG_ALPHA,
    Real,
    posterior_spread,
    prior_alpha,
    prior_loss_and_gradient,
)
from ebrank.evidence import Sums
from ebrank.model.formula import ItemPrior
from ebrank.model.prior.base import Family, Posterior, mean_of, spread_of
from ebrank.parameters import param
from ebrank.typing import Floats


def beta_loss(score: float, hits: float, trials: float, beta: float) -> tuple[float, float]:
    """Return the loss of a score (eq:PriorlossM) and its slope ∂loss/∂score = α ∂loss/∂α.

    The slope is 0 where the score is clipped.
    """
    alpha = prior_alpha(score)
    loss, slope = prior_loss_and_gradient(hits, trials, alpha, beta)
    return loss, slope * alpha * (LOWEST_LOG_ALPHA <= score <= HIGHEST_LOG_ALPHA)


DRAW = "ebrank.model.prior.families.beta_draw:posterior_draw"
EXACT = "ebrank.model.prior.families.beta_exact:"
CONJUGATE = Posterior(equations.relevance, posterior_spread, DRAW, beta_loss)


@dataclass(frozen=True)
class Beta(Family):
    """α = exp(score), with one β for all items."""

    name = "beta"
    help = "Beta prior: α from the features, one β for all items."
    item: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    posteriors: ClassVar = {
        "ips": CONJUGATE,
        "exposure": CONJUGATE,
        "exact": Posterior(
            mean_of,
            spread_of,
            DRAW,
            f"{EXACT}exact_loss",
            given={"moments": f"{EXACT}exact_moments"},
        ),
    }

    beta: float = param(
        5.0,
        "β of the prior: the larger, the more the prior weighs against clicks",
        at_least=1e-6,
    )

    def prior(self, scores: Floats) -> ItemPrior:
        """Return α = exp(score), the score clipped to ±10, and β."""
        return ItemPrior(equations.prior_alpha(scores), np.array([float(self.beta)]))

    @staticmethod
    def mean(alpha: Real, beta: Real) -> Real:
        """Return α/(α + β)."""
        return alpha / (alpha + beta)

    def interval(self, prior: ItemPrior, sums: Sums, level: float) -> tuple[Floats, Floats]:
        """Return the interval of Beta(c + α, max(E − c, 0) + β), a proper posterior."""
        return equations.posterior_interval(sums.clicks, sums.exposure, prior.a, prior.b, level)

    def log_prior(self, prior: ItemPrior, learned: Floats, u: Floats) -> Floats:
        """Return log R^α (1 − R)^β."""
        alpha, beta = prior.a[:, None], prior.b[:, None]
        density: Floats = -alpha * np.logaddexp(0.0, -u) - beta * np.logaddexp(0.0, u)
        return density

    def marginal_loss(self, prior: ItemPrior, sums: Sums) -> Floats:
        """Return the loss of plain clicks over exposure, which every item has."""
        return equations.marginal_likelihood_loss(sums.clicks, sums.exposure, prior.a, prior.b)
