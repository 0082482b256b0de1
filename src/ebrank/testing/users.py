"""What every user model must do."""

from __future__ import annotations

import pickle

import numpy as np
import numpy.typing as npt

from ebrank.evidence import Behaviors
from ebrank.evidence.behaviors import CLICKS
from ebrank.kernels.compiled import kernel
from ebrank.kernels.pointers import pointer_to
from ebrank.lab.simulation.users import UserModel, Users, habits_of, parse
from ebrank.testing.plain import plain
from ebrank.typing import Compiled, Floats

Outcomes = npt.NDArray[np.int8]
LISTS = 2000
LENGTH = 5
FARTHEST = 5.0
"""Standard errors that a click rate may be off by chance: one in a million is farther."""


def check_users(users: UserModel, behaviors: Behaviors = CLICKS, *, by_curve: bool = False) -> None:
    """Show random lists to users and raise where they break a rule.

    Habits are probabilities on every scale of grades, and a text form reads back. Outcomes are
    those of declared behaviors. They are a pure function of the list, the users' minds
    and the key. Users read and write at the ranks of the list and nowhere else. Compiled, they do
    what the plain function says. They click more when everything is relevant than when nothing is.

    Args:
        users: the model.
        behaviors: what its users may do.
        by_curve: whether they must also examine ranks as their curve says: an item that is alone in
            being relevant is clicked with the probability of its rank.
    """
    rng = np.random.default_rng(1)
    curve = users.examination(np.arange(1, LENGTH + 1))
    assert np.all((curve >= 0.0) & (curve <= 1.0)), "examination holds no probabilities"
    assert pickle.loads(pickle.dumps(users)) == users, "a pickled copy of the users is not equal"
    assert " at 0x" not in repr(users), "repr must say what the users are: results are kept by it"
    for max_label in (1, 2, 4, 9):
        habits_of(users, max_label)
    if isinstance(users, Users):
        assert parse(str(users)) == users, f"{users} reads back as {parse(str(users))!r}"
    browse, slow = users.browse.compiled, plain(users.browse.function)
    total = 0
    for number in range(LISTS):
        length = int(rng.integers(0, LENGTH + 1))
        relevance, stopping, minds = rng.random((3, LENGTH))
        key = np.uint64(rng.integers(2**63))
        read = relevance, stopping, curve, minds
        before = [values.tolist() for values in read]
        outcomes = shown(browse, *read, length, key)
        after = [values.tolist() for values in read]
        assert before == after, f"list {number}: users changed what they only read"
        _check_outcomes(outcomes, length, behaviors)
        expected = [0] * LENGTH
        slow(*before, length, int(key), expected)
        compiled = outcomes[:length].tolist()
        assert compiled == [int(outcome) for outcome in expected[:length]], (
            f"list {number}: compiled, users do {compiled}; the plain function does {expected}"
        )
        again = shown(browse, *read, length, key)
        assert np.array_equal(outcomes, again), f"list {number}: the same user did something else"
        columns = np.array(read)
        columns[:, length:] = 1.0 - columns[:, length:]
        relevance, stopping, examination, minds = columns
        elsewhere = shown(browse, relevance, stopping, examination, minds, length, key)
        assert np.array_equal(outcomes, elsewhere), (
            f"list {number}: users read beyond the end of the list"
        )
        total += int((outcomes[:length] > 0).sum())
    assert total > 0, "nobody ever clicks"
    rates = [_click_rate(browse, curve, relevance) for relevance in (0.0, 1.0)]
    assert rates[0] < rates[1], f"relevance does not matter: click rates {rates[0]} and {rates[1]}"
    if by_curve:
        _check_curve(browse, curve)


def _check_outcomes(outcomes: Outcomes, length: int, behaviors: Behaviors) -> None:
    inside = outcomes[:length]
    assert np.all((inside >= 0) & (inside < behaviors.outcomes)), (
        f"outcomes must be 0 to {behaviors.outcomes - 1}, not {inside.tolist()}"
    )
    assert np.all(outcomes[length:] == UNTOUCHED), "users wrote beyond the end of the list"


UNTOUCHED = -7


@kernel
def shown(
    browse: Compiled,
    relevance: Floats,
    stopping: Floats,
    examination: Floats,
    minds: Floats,
    length: int,
    key: np.uint64,
) -> Outcomes:
    """Return what a user does with a list; what was not written is `UNTOUCHED`."""
    outcomes = np.full(len(relevance) + 1, UNTOUCHED, np.int8)
    browse(
        pointer_to(relevance, 0),
        pointer_to(stopping, 0),
        pointer_to(examination, 0),
        pointer_to(minds, 0),
        length,
        key,
        pointer_to(outcomes, 0),
    )
    return outcomes


def _check_curve(browse: Compiled, curve: Floats) -> None:
    """An item that is alone in being relevant is clicked as often as its rank is examined."""
    rng = np.random.default_rng(3)
    for rank, p in enumerate(curve):
        relevance, never = np.zeros((2, LENGTH))
        relevance[rank] = 1.0
        clicks = 0
        for minds in rng.random((LISTS, LENGTH)):
            key = np.uint64(rng.integers(2**63))
            clicks += int(shown(browse, relevance, never, curve, minds, LENGTH, key)[rank] > 0)
        error = np.sqrt(max(p * (1.0 - p), 1e-9) / LISTS)
        assert abs(clicks / LISTS - p) <= FARTHEST * error, (
            f"rank {rank + 1} is examined with probability {p:.3f}, but {clicks} of {LISTS} users "
            "click a relevant item there that is alone"
        )


def _click_rate(browse: Compiled, curve: Floats, relevance: float) -> float:
    """Return how many items of lists that are all alike are clicked."""
    rng = np.random.default_rng(2)
    alike, never = np.full(LENGTH, relevance), np.zeros(LENGTH)
    clicks = 0
    for _ in range(LISTS):
        minds, key = rng.random(LENGTH), np.uint64(rng.integers(2**63))
        outcomes = shown(browse, alike, never, curve, minds, LENGTH, key)
        clicks += int((outcomes[:LENGTH] > 0).sum())
    return clicks / (LISTS * LENGTH)
