"""Thompson sampling: rank by a draw from the posterior instead of its mean (Thompson 1933)."""

from __future__ import annotations

from dataclasses import dataclass

from ebrank.model.bonus import Bonus


@dataclass(frozen=True)
class Draw(Bonus):
    """The draw minus the mean, so that the score is the draw."""

    name = "draw"
    help = "Thompson sampling: rank by a draw from the posterior."
    noisy = True

    @staticmethod
    def value(relevance: float, draw: float) -> float:
        """Return what turns the relevance into the draw."""
        return draw - relevance
