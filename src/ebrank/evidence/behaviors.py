"""What users may do with an item, and how much each behavior is worth.

An impression has one outcome: nothing, or the most valuable behavior that followed. `click` alone
is the paper's setting, and the default. A shop may declare more:

>>> behaviors = Behaviors.parse(["click=0.2", "dwell>=30=0.6", "purchase"], negative=["return"])
>>> behaviors.names, behaviors.weights
(('click', 'dwell>=30', 'purchase'), (0.2, 0.6, 1.0))

Events have a type and, if a behavior starts at a threshold, a value:

>>> [behaviors.of_event(*event) for event in [("purchase",), ("dwell", 42.0), ("dwell", 3.0)]]
['purchase', 'dwell>=30', None]

After a negative behavior the impression is worth nothing, whatever came before or comes after:

>>> [behaviors.outcome(name) for name in ("click", "purchase", "return")]
[1, 3, -1]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ebrank.errors import ParameterError
from ebrank.parameters import check_number, require

SHOWN = 0
"""The outcome of every impression: the item was shown. Behaviors count from 1."""
NEGATIVE = -1
"""The outcome of a negative behavior. It is not counted: the impression counts as passed over."""

_AT_LEAST = ">="


@dataclass(frozen=True)
class Behavior:
    """Something users do with an item they were shown.

    >>> Behavior("dwell>=30", 0.6).type, Behavior("dwell>=30", 0.6).at_least
    ('dwell', 30.0)

    Attributes:
        name: the type of its events, and the threshold of their value, if any.
        weight: its worth, above 0 and up to 1, where 1 is the worth of a fully relevant item.
    """

    name: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Raise if the name is invalid or the weight outside (0, 1]."""
        named = isinstance(self.name, str) and self.type not in ("", "impression")
        require(named, f"{self.name!r} cannot name a behavior")
        require(
            math.isfinite(self.at_least or 0.0), f"{self.name!r} has no threshold: write dwell>=30"
        )
        check_number(f"the weight of {self.name}", self.weight, above=0)
        require(self.weight <= 1, f"the weight of {self.name} must be at most 1, not {self.weight}")

    @classmethod
    def parse(cls, text: str) -> Behavior:
        """Return the behavior that a text declares: `click`, `click=0.2` or `dwell>=30=0.6`."""
        kind, threshold, rest = text.partition(_AT_LEAST)
        last, _, weight = (rest if threshold else kind).partition("=")
        name = f"{kind.strip()}{_AT_LEAST}{last.strip()}" if threshold else last.strip()
        try:
            worth = float(weight or 1.0)
        except ValueError:
            raise ParameterError(f"{text!r} has no weight: write {name}=0.5") from None
        return cls(name, worth)

    @property
    def type(self) -> str:
        """The type of its events."""
        return self.name.partition(_AT_LEAST)[0]

    @property
    def at_least(self) -> float | None:
        """The least value of its events; None if any will do, NaN if it is not a number."""
        _, threshold, least = self.name.partition(_AT_LEAST)
        try:
            return float(least) if threshold else None
        except ValueError:
            return math.nan


@dataclass(frozen=True)
class Behaviors:
    """All declared behaviors, the least valuable first; outcome i + 1 is `all[i]`.

    Attributes:
        all: behaviors that are worth something.
        negative: types of events after which an impression is worth nothing.
    """

    all: tuple[Behavior, ...]
    negative: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise if the declaration is empty or ambiguous, and sort by weight."""
        require(len(self.all) > 0, "declare at least one behavior")
        require(len(set(self.names)) == len(self.all), "a behavior is declared twice")
        by_weight = tuple(sorted(self.all, key=lambda behavior: (behavior.weight, behavior.name)))
        object.__setattr__(self, "all", by_weight)
        taken = {"", "impression", *(behavior.type for behavior in self.all)}
        for name in self.negative:
            require(name not in taken, f"{name!r} cannot name a negative behavior")

    @classmethod
    def of(cls, weights: Mapping[str, float], negative: Iterable[str] = ()) -> Behaviors:
        """Return the behaviors with these weights by name."""
        declared = tuple(Behavior(name, weight) for name, weight in weights.items())
        return cls(declared, tuple(negative))

    @classmethod
    def parse(cls, declared: Iterable[str], negative: Iterable[str] = ()) -> Behaviors:
        """Return the behaviors that texts declare, as in the settings."""
        return cls(tuple(Behavior.parse(text) for text in declared), tuple(negative))

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

    def of_event(self, type: str, value: float | None = None) -> str | None:
        """Return the most valuable behavior that an event counts as; None if it counts as none."""
        for behavior in reversed(self.all):
            least = behavior.at_least
            if behavior.type == type and (least is None or (value is not None and value >= least)):
                return behavior.name
        return type if type in self.negative else None

    def outcome(self, name: str) -> int:
        """Return the outcome number of a behavior."""
        if name in self.negative:
            return NEGATIVE
        if name not in self.names:
            names = ", ".join([*self.names, *self.negative])
            raise ParameterError(f"no behavior is called {name!r}; known: {names}")
        return 1 + self.names.index(name)


CLICKS = Behaviors((Behavior("click"),))
"""The default: users click or pass."""
