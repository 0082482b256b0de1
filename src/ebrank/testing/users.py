"""What every user model must do, whoever its users are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ebrank.compiled import kernel
from ebrank.evidence import Behaviors
from ebrank.evidence.behaviors import CLICKS
from ebrank.pointers import pointer_to
from ebrank.simulation.users import UserModel
from ebrank.typing import Compiled, Floats

Outcomes = npt.NDArray[np.int8]
LISTS = 2000
LENGTH = 5


def check_users(users: UserModel, behaviors: Behaviors = CLICKS) -> None:
    """Show random lists to users and raise where they break a promise.

    Outcomes are those of declared behaviors. They are a pure function of the list, the users' minds
    and the key. Users write what happened at the ranks of the list and nowhere else. They click
    more when everything is relevant than when nothing is.
    """
    rng = np.random.default_rng(1)
    curve = users.examination(np.arange(1, LENGTH + 1))
    assert np.all((curve >= 0.0) & (curve <= 1.0)), "examination holds no probabilities"
    browse = users.browse.compiled
    total = 0
    for number in range(LISTS):
        length = int(rng.integers(0, LENGTH + 1))
        relevance, minds = rng.random((2, LENGTH))
        key = np.uint64(rng.integers(2**63))
        outcomes = shown(browse, relevance, curve, minds, length, key)
        _check_outcomes(outcomes, length, behaviors)
        again = shown(browse, relevance, curve, minds, length, key)
        assert np.array_equal(outcomes, again), f"list {number}: the same user did something else"
        total += int((outcomes[:length] > 0).sum())
    assert total > 0, "nobody ever clicks"
    rates = [_click_rate(browse, curve, relevance) for relevance in (0.0, 1.0)]
    assert rates[0] < rates[1], f"relevance does not matter: click rates {rates[0]} and {rates[1]}"


def _check_outcomes(outcomes: Outcomes, length: int, behaviors: Behaviors) -> None:
    inside = outcomes[:length]
    assert np.all((inside >= 0) & (inside < behaviors.outcomes)), (
        f"outcomes must be 0 to {behaviors.outcomes - 1}, not {inside.tolist()}"
    )
    assert np.all(outcomes[length:] == UNTOUCHED), "users wrote beyond the end of the list"


UNTOUCHED = -7


def shown(
    browse: Compiled,
    relevance: Floats,
    examination: Floats,
    minds: Floats,
    length: int,
    key: np.uint64,
) -> Outcomes:
    """Return what a user does with a list; what was not written is `UNTOUCHED`."""
    outcomes: Any = np.full(len(relevance) + 1, UNTOUCHED, np.int8)
    _show(browse, relevance, examination, minds, length, key, outcomes)
    return outcomes  # type: ignore[no-any-return]


@kernel
def _show(
    browse: Compiled,
    relevance: Floats,
    examination: Floats,
    minds: Floats,
    length: int,
    key: np.uint64,
    outcomes: Outcomes,
) -> None:
    browse(
        pointer_to(relevance, 0),
        pointer_to(examination, 0),
        pointer_to(minds, 0),
        length,
        key,
        pointer_to(outcomes, 0),
    )


def _click_rate(browse: Compiled, curve: Floats, relevance: float) -> float:
    """Return how many items of lists that are all alike are clicked."""
    rng = np.random.default_rng(2)
    clicks = 0
    for _ in range(LISTS):
        minds, key = rng.random(LENGTH), np.uint64(rng.integers(2**63))
        outcomes = shown(browse, np.full(LENGTH, relevance), curve, minds, LENGTH, key)
        clicks += int((outcomes[:LENGTH] > 0).sum())
    return clicks / (LISTS * LENGTH)
