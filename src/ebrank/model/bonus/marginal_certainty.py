"""The paper's bonus: ε times the certainty that one more look at the item would add (eq:MCesti)."""

from __future__ import annotations

from dataclasses import dataclass

from ebrank import equations
from ebrank.model.bonus import Bonus
from ebrank.parameters import param


@dataclass(frozen=True)
class MarginalCertainty(Bonus):
    """ε·R̂/(E + α + β)²."""

    name = "marginal_certainty"
    help = "ε times the certainty gained by showing the item once more."

    epsilon: float = param(
        20.0,
        "ε, what a unit of certainty gained is worth; 0 never explores",
        at_least=0,
        grid=(0.0, 5.0, 10.0, 20.0, 30.0, 50.0, 70.0, 100.0),
    )

    @staticmethod
    def value(
        relevance: float, exposure: float, alpha: float, beta: float, epsilon: float
    ) -> float:
        """Return ε·MC (eq:sortRankingscore)."""
        return epsilon * equations.marginal_certainty(relevance, exposure, alpha, beta)
