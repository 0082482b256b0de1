"""What every user model must do, whoever its users are."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ebrank.evidence import CLICKS, Behaviors, Examination
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import run_trial
from ebrank.simulation.users import UserModel
from ebrank.testing.datasets import tiny
from ebrank.testing.plain import plain
from ebrank.testing.rankers import check_same
from ebrank.typing import Floats

LISTS = 300
LONGEST = 12
ALONE = 20_000
"""Lists that show how often users click an item that is alone in being relevant."""
LIMIT = 5.0
"""Standard errors that a click rate may be away from the claimed one; by chance, one in a million.
"""

Outcomes = npt.NDArray[np.int8]


def check_users(users: UserModel, *, behaviors: Behaviors = CLICKS, by_curve: bool = True) -> None:
    """Raise where users break a rule that all simulated users keep.

    Args:
        users: the model.
        behaviors: what its users may do: outcomes are 0 for nothing, 1 for the first of these...
        by_curve: whether an item that is alone in being relevant is clicked with the probability
            that the examination curve gives its rank. That is so unless users also click, or
            refuse to click, for other reasons.
    """
    check_declaration(users)
    check_outcomes(users, behaviors)
    check_compiled(users)
    check_runs(users, behaviors)
    if by_curve:
        check_curve(users)


class List(NamedTuple):
    """A list as its user meets it."""

    relevance: Floats
    examination: Floats
    minds: Floats
    key: int


def lists(users: UserModel, count: int = LISTS) -> list[List]:
    """Return lists of all lengths, with items that are certainly, perhaps, or never relevant."""
    rng = np.random.default_rng(1)
    made = []
    for number in range(count):
        length = 1 + number % LONGEST
        relevance = rng.choice([0.0, 1.0, *rng.random(3)], length)
        curve = users.examination(np.arange(1.0, length + 1.0))
        made.append(List(relevance, curve, rng.random(length), int(rng.integers(2**63))))
    return made


def browsed(users: UserModel, shown: List, fill: int = 0) -> Outcomes:
    """Return the outcome at each rank; the room for them held something else before."""
    length = len(shown.relevance)
    guard = 8
    outcomes = np.full(length + guard, fill, np.int8)
    arrays = [shown.relevance.copy(), shown.examination.copy(), shown.minds.copy()]
    pointers = [*(array.ctypes.data for array in arrays), outcomes.ctypes.data]
    users.browse.compiled.ctypes(*pointers[:3], length, np.uint64(shown.key), pointers[3])
    for array, before in zip(arrays, shown[:3], strict=True):
        assert np.array_equal(array, before), "browse changes what it only reads"
    assert np.all(outcomes[length:] == fill), "browse writes below the end of the list"
    return outcomes[:length]


def check_declaration(users: UserModel) -> None:
    """Users say how far they look, and can be copied, compared and stored."""
    assert isinstance(users.examination, Examination), "users need an examination curve"
    copy = pickle.loads(pickle.dumps(users))
    assert copy == users, "a pickled copy is not equal: make the class a frozen dataclass"
    assert hash(copy) == hash(users), "equal users have different hashes"
    assert " at 0x" not in repr(users), "repr must say what the users are: results are kept by it"


def check_outcomes(users: UserModel, behaviors: Behaviors) -> None:
    """Every rank gets an outcome that exists, by the list, the minds and the key alone."""
    highest = len(behaviors.all)
    for shown in lists(users):
        outcomes = browsed(users, shown, fill=0)
        again = browsed(users, shown, fill=1)
        assert np.array_equal(outcomes, again), (
            "outcomes depend on more than relevance, examination, minds and key: "
            f"{outcomes.tolist()}, then {again.tolist()}; write one at every rank"
        )
        assert np.all((outcomes >= 0) & (outcomes <= highest)), (
            f"outcomes are 0 to {highest}, not {outcomes.tolist()}"
        )


def check_compiled(users: UserModel) -> None:
    """Compiled users do what the plain function says."""
    slow = plain(users.browse.function)
    for shown in lists(users):
        expected = [0] * len(shown.relevance)
        slow(*(array.tolist() for array in shown[:3]), len(expected), shown.key, expected)
        outcomes = browsed(users, shown).tolist()
        assert outcomes == [int(outcome) for outcome in expected], (
            f"compiled {outcomes}, plain {expected} for the list {shown}"
        )


def check_runs(users: UserModel, behaviors: Behaviors) -> None:
    """Simulations with these users can be repeated, on any number of threads."""
    from ebrank.rankers import registry

    config = SimulationConfig(updates=2, sessions=120, users=users, behaviors=behaviors)
    ranker, data = registry.parse("ebrank"), tiny(sizes=[3 + i % 8 for i in range(150)])
    first = run_trial(data, ranker, config, seed=1, trial=0, threads=1)
    for threads in (1, 3):
        again = run_trial(data, ranker, config, seed=1, trial=0, threads=threads)
        check_same(first, again, "a run with the same seed is another")


def check_curve(users: UserModel) -> None:
    """An item that is alone in being relevant is clicked as often as its rank is examined."""
    rng = np.random.default_rng(2)
    curve = users.examination(np.arange(1.0, LONGEST + 1.0))
    for rank, p in enumerate(curve):
        relevance = np.zeros(LONGEST)
        relevance[rank] = 1.0
        clicks = 0
        for minds in rng.random((ALONE // LONGEST, LONGEST)):
            shown = List(relevance, curve, minds, int(rng.integers(2**63)))
            clicks += int(browsed(users, shown)[rank] > 0)
        trials = ALONE // LONGEST
        error = np.sqrt(max(p * (1 - p), 1e-9) / trials)
        assert abs(clicks / trials - p) <= LIMIT * error, (
            f"rank {rank + 1} is examined with probability {p:.3f}, but {clicks} of {trials} "
            "users click a relevant item there that is alone"
        )
