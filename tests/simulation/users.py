"""Users for the simulator, each told twice: compiled, and in plain Python for the reference.

The plain rules are written from the description of the users alone; a test compares both.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass, field

import numpy as np

from ebrank import streams
from ebrank.compiled import FirstClass
from ebrank.evidence import Behaviors, Examination
from ebrank.simulation.users import BROWSE, PositionBased, UserModel
from ebrank.testing import plain

# --- users who leave after their first click -----------------------------------------------------


def first_click_only(
    relevance: Sequence[float],
    examination: Sequence[float],
    minds: Sequence[float],
    length: int,
    key: np.uint64,
    outcomes: MutableSequence[int],
) -> None:
    clicked = False
    for rank in range(length):
        outcomes[rank] = not clicked and minds[rank] < examination[rank] * relevance[rank]
        clicked = clicked or outcomes[rank] > 0


FIRST_CLICK_ONLY = FirstClass(first_click_only, BROWSE)


@dataclass(frozen=True)
class Impatient:
    """Users who examine by a curve, and leave after their first click."""

    examination: Examination = field(default_factory=lambda: Examination(severity=0.5))

    @property
    def browse(self) -> FirstClass:
        return FIRST_CLICK_ONLY


# --- users who scan down -------------------------------------------------------------------------

STOPPING = 0.5


def scan_down(
    relevance: Sequence[float],
    examination: Sequence[float],
    minds: Sequence[float],
    length: int,
    key: np.uint64,
    outcomes: MutableSequence[int],
) -> None:
    for rank in range(length):
        outcomes[rank] = 0
    for rank in range(length):
        if minds[rank] < relevance[rank]:
            outcomes[rank] = 1
            if streams.uniform(streams.child(key, rank)) < STOPPING:
                break


SCAN_DOWN = FirstClass(scan_down, BROWSE)


@dataclass(frozen=True)
class Cascade:
    """Users who look at one item after the other, click with probability R, and may then stop.

    No curve describes them; rankers are left with that of users who look everywhere.
    """

    examination: Examination = field(default_factory=lambda: Examination(severity=0.0))

    @property
    def browse(self) -> FirstClass:
        return SCAN_DOWN


# --- users who buy -------------------------------------------------------------------------------

SHOP = Behaviors.of({"purchase": 1.0, "click": 0.3})


def click_or_buy(
    relevance: Sequence[float],
    examination: Sequence[float],
    minds: Sequence[float],
    length: int,
    key: np.uint64,
    outcomes: MutableSequence[int],
) -> None:
    for rank in range(length):
        likely = examination[rank] * relevance[rank]
        outcomes[rank] = (minds[rank] < likely) + (minds[rank] < 0.4 * likely)


CLICK_OR_BUY = FirstClass(click_or_buy, BROWSE)


@dataclass(frozen=True)
class Shoppers:
    """Users who examine by a curve, click, and buy two of five items that they click."""

    examination: Examination = field(default_factory=lambda: Examination(cutoff=5))

    @property
    def browse(self) -> FirstClass:
        return CLICK_OR_BUY


# --- the same in plain Python --------------------------------------------------------------------

Rule = Callable[[list[float], list[float], list[float], int], list[int]]
"""(relevance, examination, minds, key) → outcome at each rank."""


def _position_based(
    relevance: list[float], p: list[float], minds: list[float], _: int
) -> list[int]:
    return [int(mind < e * r) for r, e, mind in zip(relevance, p, minds, strict=True)]


def _impatient(relevance: list[float], p: list[float], minds: list[float], key: int) -> list[int]:
    clicks = _position_based(relevance, p, minds, key)
    return [int(click and not any(clicks[:rank])) for rank, click in enumerate(clicks)]


def _cascade(relevance: list[float], p: list[float], minds: list[float], key: int) -> list[int]:
    outcomes: list[int] = []
    leaves = False
    while len(outcomes) < len(relevance):
        rank = len(outcomes)
        outcomes.append(int(not leaves and minds[rank] < relevance[rank]))
        leaves |= bool(outcomes[-1]) and plain.uniform(plain.child(key, rank)) < 0.5
    return outcomes


def _shoppers(relevance: list[float], p: list[float], minds: list[float], _: int) -> list[int]:
    return [
        2 if mind < 0.4 * (e * r) else 1 if mind < e * r else 0
        for r, e, mind in zip(relevance, p, minds, strict=True)
    ]


RULES: dict[type, Rule] = {
    PositionBased: _position_based,
    Impatient: _impatient,
    Cascade: _cascade,
    Shoppers: _shoppers,
}


def plain_rule(users: UserModel) -> Rule:
    """Return how users go through a list, in plain Python."""
    return RULES[type(users)]
