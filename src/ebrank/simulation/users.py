"""Simulated users: what they look at and what they click.

A user model is a small thing: which ranks can be examined, and whether a user who meets an item of
some relevance at some rank clicks it, given one uniform draw that is this user's mind about this
item. `PositionBased` is the paper's (eq:clickProb, eq:selectionBias).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ebrank.compiled import FirstClass
from ebrank.equations import click_probability
from ebrank.examination import Examination

CLICK = "b1(f8, f8, i8, f8)"


class UserModel(Protocol):
    """What the simulator asks of a user model."""

    @property
    def examination(self) -> Examination:
        """How users examine ranks."""
        ...

    @property
    def click(self) -> FirstClass:
        """`f(examination, relevance, earlier_clicks, draw)`: does the user click? See `CLICK`."""
        ...


def position_based_click(p: float, relevance: float, earlier_clicks: int, draw: float) -> bool:
    """Return whether an item is examined and found relevant: probability p·R."""
    return draw < click_probability(p, relevance)


POSITION_BASED_CLICK = FirstClass(position_based_click, CLICK)


@dataclass(frozen=True)
class PositionBased:
    """Users who examine rank k with probability p_k and click what they find relevant there."""

    examination: Examination = field(default_factory=lambda: Examination(cutoff=5))

    @property
    def click(self) -> FirstClass:
        """The click rule."""
        return POSITION_BASED_CLICK
