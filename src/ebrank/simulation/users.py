"""Simulated users: what they look at and what they do.

A user model says how users go through a list. It sees the whole list at once: the relevance of the
item at each rank, how likely each rank is to be examined, and one uniform draw per item, this
user's mind about it, which is the same whichever ranker shows the item. It writes the outcome at
each rank: 0 for nothing, 1 for a click, and so on for further behaviors. `PositionBased` is the
paper's (eq:clickProb, eq:selectionBias); `docs/extending.md` adds users who scan down and stop.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ebrank.compiled import FirstClass
from ebrank.equations import click_probability
from ebrank.evidence import Examination

BROWSE = "void(CPointer(f8), CPointer(f8), CPointer(f8), i8, u8, CPointer(i1))"
"""Types of a browse function's arguments."""


class UserModel(Protocol):
    """What the simulator asks of a user model."""

    @property
    def examination(self) -> Examination:
        """How users examine ranks; rankers believe this curve unless configured otherwise."""
        ...

    @property
    def browse(self) -> FirstClass:
        """`f(relevance, examination, minds, length, key, outcomes)`, see `BROWSE`.

        It writes `outcomes[rank]` for each rank below `length`. `key` addresses further draws.
        """
        ...


def position_based(
    relevance: Sequence[float],
    examination: Sequence[float],
    minds: Sequence[float],
    length: int,
    key: np.uint64,
    outcomes: MutableSequence[int],
) -> None:
    """Click each item with probability p·R, whatever happens elsewhere in the list."""
    for rank in range(length):
        outcomes[rank] = minds[rank] < click_probability(examination[rank], relevance[rank])


POSITION_BASED = FirstClass(position_based, BROWSE)


@dataclass(frozen=True)
class PositionBased:
    """Users who examine rank k with probability p_k and click what they find relevant there."""

    examination: Examination = field(default_factory=lambda: Examination(cutoff=5))

    @property
    def browse(self) -> FirstClass:
        """How they go through a list."""
        return POSITION_BASED
