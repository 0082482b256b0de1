"""Parts of policies of one's own: one that has two numbers for each item, and some with a fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ebrank.equations import posterior_spread, prior_alpha, prior_loss_and_gradient
from ebrank.evidence import Sums
from ebrank.model.bonus import Bonus
from ebrank.model.prior import ItemPrior, Posterior
from ebrank.model.prior.families.beta import DRAW, Beta
from ebrank.typing import Floats

# --- β of each item ------------------------------------------------------------------------------


def mean_by_two(beta: float, alpha: float, hits: float, trials: float) -> float:
    return (alpha + hits) / (beta + alpha + trials)


USUAL = Beta.posteriors["ips"]
BY_TWO = Posterior(mean_by_two, posterior_spread, DRAW, USUAL.loss)


@dataclass(frozen=True)
class BetaOfEach(Beta):
    """Both numbers of the prior depend on the score: what promises more is known better."""

    name = "beta_of_each"
    help = "Beta prior with an α and a β for each item."
    posteriors: ClassVar = {"ips": BY_TWO, "exposure": BY_TWO}

    def prior(self, scores: Floats) -> ItemPrior:
        alpha = prior_alpha(scores)
        return ItemPrior(alpha, self.beta * (1.0 + alpha / (1.0 + alpha)))


# --- parts with a fault --------------------------------------------------------------------------


@dataclass(frozen=True)
class Endless(Bonus):
    name = "endless"
    help = "Not a number where nobody looked."

    @staticmethod
    def value(clicks: float, exposure: float) -> float:
        return clicks / exposure


@dataclass(frozen=True)
class Silent(Bonus):
    name = "silent"
    help = "Says that it draws, and does not."
    noisy = True

    @staticmethod
    def value(shown: float, exposure: float) -> float:
        return 1.0 / (1.0 + shown + exposure)


def halved(trials: float, hits: float, alpha: float, beta: float) -> float:
    return 0.5 * (hits + alpha) / (trials + alpha + beta)


def wrong_slope(score: float, trials: float, hits: float, beta: float) -> tuple[float, float]:
    alpha = prior_alpha(score)
    loss, slope = prior_loss_and_gradient(hits, trials, alpha, beta)
    return loss, 1.1 * alpha * slope


@dataclass(frozen=True)
class Doubtful(Beta):
    name = "doubtful"
    help = "Believes half of everything."
    posteriors: ClassVar = {"ips": Posterior(halved, USUAL.spread, USUAL.draw, USUAL.loss)}


@dataclass(frozen=True)
class Steep(Beta):
    name = "steep"
    help = "Takes its loss to be steeper than it is."
    posteriors: ClassVar = {
        "ips": Posterior(USUAL.relevance, USUAL.spread, USUAL.draw, wrong_slope)
    }


@dataclass(frozen=True)
class Stubborn(Beta):
    name = "stubborn"
    help = "Has the prior's interval, whatever users do."

    def interval(self, prior: ItemPrior, sums: Sums, level: float) -> tuple[Floats, Floats]:
        return super().interval(prior, Sums(*(0.0 * column for column in sums)), level)
