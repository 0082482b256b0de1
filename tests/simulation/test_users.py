from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import streams
from ebrank.compiled import FirstClass
from ebrank.errors import ParameterError
from ebrank.evidence import CLICKS, Behaviors, Examination
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import simulate
from ebrank.simulation.users import BROWSE, PositionBased, UserModel, position_based
from ebrank.testing import check_users
from ebrank.testing.users import browsed, lists
from tests.simulation.tiny import tiny
from tests.simulation.users import SHOP, Cascade, Impatient, Shoppers, plain_rule

SHARE = st.floats(0.0, 1.0)
SHORT = SimulationConfig(updates=2, sessions=60)


@given(SHARE, SHARE, st.floats(0.0, 1.0, exclude_max=True))
def test_a_click_needs_examination_and_relevance(p: float, relevance: float, mind: float) -> None:
    outcomes = [0, 0]
    position_based([1.0, relevance], [1.0, p], [0.0, mind], 2, np.uint64(0), outcomes)
    assert outcomes == [True, mind < p * relevance]
    if p == 0 or relevance == 0:
        assert not outcomes[1]
    if p == relevance == 1:
        assert outcomes[1]


USERS: list[tuple[UserModel, Behaviors]] = [
    (PositionBased(), CLICKS),
    (PositionBased(Examination(curve=(0.9, 0.0, 0.5))), CLICKS),
    (Impatient(), CLICKS),
    (Cascade(), CLICKS),
    (Shoppers(), SHOP),
]
every_user = pytest.mark.parametrize(("users", "behaviors"), USERS, ids=str)


@every_user
def test_users_keep_the_rules(users: UserModel, behaviors: Behaviors) -> None:
    check_users(users, behaviors=behaviors)


@every_user
def test_users_do_what_their_description_says(users: UserModel, behaviors: Behaviors) -> None:
    """Compiled, they do what the reference's own rule does, written without a look at theirs."""
    rule, seen = plain_rule(users), set()
    for shown in lists(users):
        expected = rule(*(array.tolist() for array in shown[:3]), shown.key)
        assert browsed(users, shown).tolist() == expected
        seen |= set(expected)
    assert seen == set(range(behaviors.outcomes))


def test_users_who_scan_down_stop_after_half_of_their_clicks() -> None:
    shown = [each for each in lists(Cascade(), 3000) if each.relevance.all()]
    clicks = [browsed(Cascade(), each._replace(minds=0 * each.minds)) for each in shown]
    stopped = sum(int(not each.all()) for each in clicks if len(each) == 2)
    pairs = sum(len(each) == 2 for each in clicks)
    assert 0.3 < stopped / pairs < 0.7
    assert all(list(each) == sorted(each, reverse=True) for each in clicks)


# --- the checks notice ---------------------------------------------------------------------------

Browse = Callable[..., None]


@dataclass(frozen=True)
class Odd:
    """Users who break a rule."""

    browse: FirstClass
    examination: Examination = field(default_factory=lambda: Examination(cutoff=5))


def too_high(relevance: Any, examination: Any, minds: Any, n: Any, key: Any, out: Any) -> None:  # noqa: ANN401
    for rank in range(n):
        out[rank] = 2 * (minds[rank] < examination[rank] * relevance[rank])


def below_zero(relevance: Any, examination: Any, minds: Any, n: Any, key: Any, out: Any) -> None:  # noqa: ANN401
    for rank in range(n):
        out[rank] = -(minds[rank] < examination[rank] * relevance[rank])


def forgetful(relevance: Any, examination: Any, minds: Any, n: Any, key: Any, out: Any) -> None:  # noqa: ANN401
    for rank in range(n):
        if minds[rank] < examination[rank] * relevance[rank]:
            out[rank] = 1


def beyond(relevance: Any, examination: Any, minds: Any, n: Any, key: Any, out: Any) -> None:  # noqa: ANN401
    for rank in range(n + 1):
        out[rank] = minds[0] < 0.5


def meddling(relevance: Any, examination: Any, minds: Any, n: Any, key: Any, out: Any) -> None:  # noqa: ANN401
    for rank in range(n):
        out[rank] = minds[rank] < examination[rank] * relevance[rank]
        minds[rank] = 0.0


def eager(relevance: Any, examination: Any, minds: Any, n: Any, key: Any, out: Any) -> None:  # noqa: ANN401
    for rank in range(n):
        out[rank] = minds[rank] < 1.2 * examination[rank] * relevance[rank]


def moody(relevance: Any, examination: Any, minds: Any, n: Any, key: Any, out: Any) -> None:  # noqa: ANN401
    for rank in range(n):
        likely = examination[rank] * relevance[rank]
        out[rank] = minds[rank] < likely * (streams.uniform(key) < 0.5)


@pytest.mark.parametrize(
    ("browse", "problem"),
    [
        (too_high, r"outcomes are 0 to 1, not \[.*2"),
        (below_zero, r"outcomes are 0 to 1, not \[.*-1"),
        (forgetful, "write one at every rank"),
        (beyond, "browse writes below the end of the list"),
        (meddling, "browse changes what it only reads"),
        (eager, r"rank 2 is examined with probability 0\.631, but"),
        (moody, r"rank 1 is examined with probability 1\.000, but"),
    ],
)
def test_users_who_break_a_rule_are_found_out(browse: Browse, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        check_users(Odd(FirstClass(browse, BROWSE)))


def test_users_may_click_for_other_reasons() -> None:
    check_users(Odd(FirstClass(eager, BROWSE)), by_curve=False)


@pytest.mark.parametrize("browse", [too_high, below_zero])
def test_outcomes_without_a_behavior_never_reach_the_counts(browse: Browse) -> None:
    users = Odd(FirstClass(browse, BROWSE))
    with pytest.raises(ParameterError, match="wrote an outcome that is not one of 0 to 1; declare"):
        simulate(tiny(), registry.parse("bm25"), replace(SHORT, users=users))
    if browse is too_high:
        simulate(tiny(), registry.parse("bm25"), replace(SHORT, users=users, behaviors=SHOP))


def test_users_are_the_papers_by_default_and_compare_by_value() -> None:
    users = PositionBased()
    assert users.examination([1, 3, 5, 6]) == pytest.approx([1, 0.5, 0.386853, 0], abs=1e-6)
    assert users == PositionBased(Examination(cutoff=5))
    assert pickle.loads(pickle.dumps(users)) == users
