"""A horizon instead of ε: the worth of exploration in units that an engineer can name.

The score is an index like Gittins': what an item is worth if H more lists of its query matter (see
`equations.exploration_weight`). Trying an uncertain item pays off if enough lists are left to
profit from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ebrank.model.bonus import Bonus
from ebrank.parameters import param

SHORTEST = 10.0
"""H is at least this many lists."""
USUAL = 50.0
"""H if nobody says how many lists to plan for."""


def lists_ahead(had: float) -> float:
    """Return H, how many lists of a query to plan for: as many as it has had.

    Nobody knows how long it goes on, in the lab or in the service. If all durations are equally
    likely on a logarithmic scale, the past is the median of what is left (Gott 1993).
    """
    return max(had, SHORTEST)


@dataclass(frozen=True)
class Horizon(Bonus):
    """λ − R̂, where λ = R̂ + w·E[(R − λ)⁺]."""

    name = "horizon"
    help = "What an item is worth if H more lists of its query matter (Gittins' index)."

    horizon: float | None = param(
        None,
        "H, how many more lists of a query matter; auto is as many as it has had",
        at_least=0,
        kind=float,
    )

    @staticmethod
    def value(upside: float) -> float:
        """Return λ − R̂."""
        return upside
