"""What users may do with an item, and how much each behavior is worth.

An impression has one outcome: nothing, or the most valuable behavior that followed. `click` alone
is the paper's setting, and the default. A shop may declare more:

>>> behaviors = Behaviors.of({"click": 0.3, "purchase": 1.0})
>>> behaviors.names, behaviors.outcome("purchase")
(('click', 'purchase'), 2)
>>> behaviors.better(behaviors.outcome("click"), behaviors.outcome("purchase"))
2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ebrank.errors import ParameterError
from ebrank.parameters import check_number, require

SHOWN = 0
"""The outcome that every impression has: it was shown. Behaviors count from 1."""


@dataclass(frozen=True)
class Behavior:
    """Something users do with an item they were shown.

    Attributes:
        name: what events call it.
        weight: its worth, above 0 and up to 1, where 1 is what a fully relevant item earns.
    """

    name: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a behavior without a name or a weight outside (0, 1]."""
        named = isinstance(self.name, str) and self.name not in ("", "impression")
        require(named, f"{self.name!r} cannot name a behavior")
        check_number(f"the weight of {self.name}", self.weight, above=0)
        require(self.weight <= 1, f"the weight of {self.name} must be at most 1, not {self.weight}")


@dataclass(frozen=True)
class Behaviors:
    """All declared behaviors, the least valuable first; outcome i + 1 is `all[i]`."""

    all: tuple[Behavior, ...]

    def __post_init__(self) -> None:
        """Refuse an empty or ambiguous declaration, and sort by weight."""
        require(len(self.all) > 0, "declare at least one behavior")
        require(len(set(self.names)) == len(self.all), "a behavior is declared twice")
        by_weight = tuple(sorted(self.all, key=lambda behavior: (behavior.weight, behavior.name)))
        object.__setattr__(self, "all", by_weight)

    @classmethod
    def of(cls, weights: Mapping[str, float]) -> Behaviors:
        """Return the behaviors with these weights by name."""
        return cls(tuple(Behavior(name, weight) for name, weight in weights.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, the least valuable first."""
        return tuple(behavior.name for behavior in self.all)

    @property
    def weights(self) -> tuple[float, ...]:
        """Their weights, in the order of the names."""
        return tuple(float(behavior.weight) for behavior in self.all)

    @property
    def outcomes(self) -> int:
        """How many counters an item has for each slot: one for impressions, one per behavior."""
        return 1 + len(self.all)

    def outcome(self, name: str) -> int:
        """Return the number of the outcome that a behavior is."""
        if name not in self.names:
            raise ParameterError(f"no behavior is called {name!r}; known: {', '.join(self.names)}")
        return 1 + self.names.index(name)

    def better(self, outcome: int, other: int) -> int:
        """Return the more valuable of two outcomes: an impression keeps its best."""
        return max(outcome, other)


CLICKS = Behaviors((Behavior("click"),))
"""The default: users click or pass."""
