"""An upper confidence bound of the posterior: its mean plus some standard deviations.

This is Bayes-UCB (Kaufmann, Cappé and Garivier, On Bayesian upper confidence bounds for bandit
problems, AISTATS 2012), which ranks by a quantile of the posterior, with two changes: the quantile
is that of a normal distribution with the same mean and spread, and its level is fixed instead of
1 − 1/t, so that `width` can be tuned.
"""

from __future__ import annotations

from dataclasses import dataclass

from ebrank.model.bonus import Bonus
from ebrank.parameters import param


@dataclass(frozen=True)
class Upper(Bonus):
    """width·σ."""

    name = "upper"
    help = "Upper confidence bound: some standard deviations of the posterior (Bayes-UCB)."

    width: float = param(
        1.0,
        "how many standard deviations; 0 never explores",
        at_least=0,
        grid=(0.0, 0.25, 0.5, 1.0, 2.0),
    )

    @staticmethod
    def value(spread: float, width: float) -> float:
        """Return what turns the mean into the bound."""
        return width * spread
