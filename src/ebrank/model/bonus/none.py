"""No bonus: rank by relevance alone, and never explore."""

from __future__ import annotations

from dataclasses import dataclass

from ebrank.model.bonus import Bonus


@dataclass(frozen=True)
class NoBonus(Bonus):
    """Nothing."""

    name = "none"
    help = "No exploration: rank by relevance alone."

    @staticmethod
    def value() -> float:
        """Return 0."""
        return 0.0
