"""What a user model is, and the paper's model.

A user model says how users go through a list. It sees the whole list at once. For each rank it gets
the probability that users examine it; for the item there, the probability of a click once examined
and of leaving after that click; and one uniform draw per item, this user's mind about it, which is
the same no matter which ranker shows the item. It writes the outcome at each rank: 0 for nothing, 1
for a click, and so on for further behaviors.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from ebrank.equations import click_probability, relevance_probability
from ebrank.errors import ParameterError
from ebrank.evidence import Examination
from ebrank.kernels.compiled import FirstClass, shared
from ebrank.typing import Floats

NOISE = 0.1
"""ε of the paper's R = ε + (1 − ε)(2^y − 1)/(2^y_max − 1)."""
BROWSE = "void(CPointer(f8), CPointer(f8), CPointer(f8), CPointer(f8), i8, u8, CPointer(i1))"
"""Types of a browse function's arguments."""


class UserModel(Protocol):
    """What the simulator needs from a user model.

    Users click what they examine with probability R, the relevance of the paper. A model whose
    users judge grades differently, or leave after a click, also has a method `habits`; one whose R
    of grade 0 is not 0.1 has it as `floor`.
    """

    @property
    def examination(self) -> Examination:
        """How users examine ranks; rankers believe this curve unless configured otherwise."""
        ...

    @property
    def browse(self) -> FirstClass:
        """`f(relevance, stopping, examination, minds, length, key, outcomes)`, see `BROWSE`.

        `relevance` and `stopping` are the `Habits` for the item at each rank. The function writes
        `outcomes[rank]` for each rank below `length`, and reads no others. `key` addresses further
        draws.
        """
        ...


class Habits(NamedTuple):
    """What users do with an item that they examine, by its grade 0, 1, ..., max_label.

    Attributes:
        click: probability of a click.
        stop: probability of leaving after the click.
    """

    click: Floats
    stop: Floats


@runtime_checkable
class HasHabits(Protocol):
    """Users who judge grades in their own way."""

    def habits(self, max_label: int) -> Habits:
        """Return what they do with an item, by its grade."""
        ...


def habits_of(users: UserModel, max_label: int) -> Habits:
    """Return users' habits on a scale of grades; by default they click with R and never stop.

    >>> habits_of(PositionBased(), 2).click
    array([0.1, 0.4, 1. ])
    """
    if not isinstance(users, HasHabits):
        return Habits(relevance_of(users, max_label), np.zeros(max_label + 1))
    habits = Habits(*(np.asarray(values, np.float64) for values in users.habits(max_label)))
    for name, values in habits._asdict().items():
        if values.shape != (max_label + 1,) or not np.all((values >= 0.0) & (values <= 1.0)):
            raise ParameterError(
                f"{users}: habits must hold a probability to {name} for each of the grades "
                f"0 to {max_label}"
            )
    return habits


def relevance_of(users: UserModel, max_label: int) -> Floats:
    """Return R by grade, which lists are measured by; users may have their own R of grade 0.

    >>> relevance_of(PositionBased(), 2)
    array([0.1, 0.4, 1. ])
    """
    floor = getattr(users, "floor", NOISE)
    grades = np.arange(max_label + 1.0)
    return np.minimum(relevance_probability(grades, max_label, floor), 1.0)  # rounding


@shared
def position_based(
    relevance: Sequence[float],
    examination: Sequence[float],
    minds: Sequence[float],
    length: int,
    key: np.uint64,
    outcomes: MutableSequence[int],
) -> None:
    """Click each item with probability p·R, independently of the rest of the list."""
    for rank in range(length):
        outcomes[rank] = minds[rank] < click_probability(examination[rank], relevance[rank])


def browse_by_position(
    relevance: Sequence[float],
    stopping: Sequence[float],
    examination: Sequence[float],
    minds: Sequence[float],
    length: int,
    key: np.uint64,
    outcomes: MutableSequence[int],
) -> None:
    """Go through a list by `position_based`; such users never leave."""
    position_based(relevance, examination, minds, length, key, outcomes)


POSITION_BASED = FirstClass(browse_by_position, BROWSE)


@dataclass(frozen=True)
class PositionBased:
    """Users who examine rank k with probability p_k and click what they find relevant there.

    These are the paper's users (eq:clickProb, eq:selectionBias), with any curve.
    """

    examination: Examination = field(default_factory=lambda: Examination(cutoff=5))

    @property
    def browse(self) -> FirstClass:
        """How they go through a list."""
        return POSITION_BASED
