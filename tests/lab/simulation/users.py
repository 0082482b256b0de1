"""Users for the simulator, each told twice: compiled, and in plain Python for the reference.

The plain rules are written from the description of the users alone; a test compares both.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ebrank.evidence import Behaviors, Examination
from ebrank.kernels.compiled import FirstClass
from ebrank.lab.simulation.users import (
    BROWSE,
    DBN,
    DCM,
    PBM,
    Cascade,
    Graded,
    PositionBased,
    UserModel,
)
from ebrank.testing import plain

# --- users who leave after their first click -----------------------------------------------------


def first_click_only(
    relevance: Sequence[float],
    stopping: Sequence[float],
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

    browse = FIRST_CLICK_ONLY


# --- users who buy -------------------------------------------------------------------------------

SHOP = Behaviors.of({"purchase": 1.0, "click": 0.3})


def click_or_buy(
    relevance: Sequence[float],
    stopping: Sequence[float],
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

    browse = CLICK_OR_BUY


# --- the same in plain Python --------------------------------------------------------------------


class Shown(NamedTuple):
    """An item in a list: P(click) and P(leave after the click) once examined, p of its rank."""

    click: float
    stop: float
    p: float
    mind: float


Rule = Callable[[list[Shown], int], list[int]]
"""(list, key) → outcome at each rank."""


def _position_based(items: list[Shown], _: int) -> list[int]:
    return [int(item.mind < item.p * item.click) for item in items]


def _impatient(items: list[Shown], key: int) -> list[int]:
    clicks = _position_based(items, key)
    return [int(click and not any(clicks[:rank])) for rank, click in enumerate(clicks)]


def _scanning(perseverance: float) -> Rule:
    def rule(items: list[Shown], key: int) -> list[int]:
        outcomes: list[int] = []
        left = False
        for rank, item in enumerate(items):
            left |= item.p == 0
            outcomes.append(int(not left and item.mind < item.click))
            left |= outcomes[-1] == 1 and plain.uniform(plain.child(key, 2 * rank)) < item.stop
            left |= plain.uniform(plain.child(key, 2 * rank + 1)) >= perseverance
        return outcomes

    return rule


def _shoppers(items: list[Shown], _: int) -> list[int]:
    likely = [item.p * item.click for item in items]
    minds = [item.mind for item in items]
    return [2 if m < 0.4 * x else 1 if m < x else 0 for m, x in zip(minds, likely, strict=True)]


def plain_rule(users: UserModel) -> Rule:
    """Return how users go through a list, in plain Python."""
    if isinstance(users, DBN):
        return _scanning(users.perseverance)
    rules: dict[type, Rule] = {
        PBM: _position_based,
        PositionBased: _position_based,
        Impatient: _impatient,
        Cascade: _scanning(1.0),
        DCM: _scanning(1.0),
        Shoppers: _shoppers,
    }
    return rules[type(users)]


PUBLISHED = {
    ("perfect", 4): ["0 .2 .4 .8 1", "0 0 0 0 0"],
    ("navigational", 4): [".05 .3 .5 .7 .95", ".2 .3 .5 .7 .9"],
    ("informational", 4): [".4 .6 .7 .8 .9", ".1 .2 .3 .4 .5"],
    ("perfect", 2): ["0 .5 1", "0 0 0"],
    ("navigational", 2): [".05 .5 .95", ".2 .5 .9"],
    ("informational", 2): [".4 .7 .9", ".1 .3 .5"],
}
"""P(click) and P(stop) by grade, from the papers, by the highest grade."""


def plain_habits(users: UserModel, label: int, highest: int) -> tuple[float, float]:
    """Return P(click) of an examined item with a label, and P(leave) after the click."""
    if not isinstance(users, Graded):
        return 0.1 + 0.9 * (2**label - 1) / (2**highest - 1), 0.0
    if users.setting == "none":
        noise = 0.1 if users.noise is None else users.noise
        click = stop = noise + (1 - noise) * (2**label - 1) / (2**highest - 1)
    else:
        clicks, stops = (
            [float(number) for number in line.split()] for line in PUBLISHED[users.setting, highest]
        )
        noise = users.noise or 0.0
        click, stop = noise + (1 - noise) * clicks[label], stops[label]
    return click, users.stop if isinstance(users, Cascade) else stop
