"""A horizon instead of ε: the worth of exploration in units that an engineer can name.

The score is Gittins' index in Brezzi and Lai's approximation: what an item is worth if H more lists
of its query matter. Trying an uncertain item pays off if enough lists are left to profit from it. H
is twice the lists that a query is expected to get in the planning period; results hardly change
from half to four times that.
"""

from __future__ import annotations

from dataclasses import dataclass

from ebrank import equations
from ebrank.bonus import Bonus
from ebrank.parameters import param


@dataclass(frozen=True)
class Horizon(Bonus):
    """σ·ψ(σ²·H/(R̂(1 − R̂)))."""

    name = "horizon"
    help = "What an item is worth if H more lists of its query matter (Gittins' index)."

    horizon: float | None = param(
        None,
        "H, how many more lists of a query matter; auto is twice the lists expected of it",
        at_least=0,
        kind=float,
    )

    @staticmethod
    def value(relevance: float, spread: float, horizon: float) -> float:
        """Return what showing the item is worth beyond its relevance."""
        return equations.horizon_bonus(relevance, spread, horizon)
