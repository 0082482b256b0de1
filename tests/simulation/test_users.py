from __future__ import annotations

import pickle
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
from ebrank.testing.users import shown
from tests.simulation.tiny import tiny
from tests.simulation.users import SHOP, Cascade, Impatient, Shoppers, plain_rule

SHARE = st.floats(0.0, 1.0)
SHORT = SimulationConfig(updates=2, sessions=60)
DRAW = st.floats(0.0, 1.0, exclude_max=True)


@given(SHARE, SHARE, DRAW)
def test_a_click_needs_examination_and_relevance(p: float, relevance: float, draw: float) -> None:
    outcomes = [-1]
    position_based([relevance], [p], [draw], 1, np.uint64(0), outcomes)
    assert outcomes[0] == (draw < p * relevance)
    if p == 0 or relevance == 0:
        assert not outcomes[0]
    if p == relevance == 1:
        assert outcomes[0]


@given(st.lists(st.tuples(SHARE, SHARE, DRAW), min_size=1, max_size=8), st.data())
def test_the_compiled_rule_is_the_plain_one(
    ranks: list[tuple[float, float, float]], data: st.DataObject
) -> None:
    relevance, examination, minds = (np.array(column) for column in zip(*ranks, strict=True))
    length = data.draw(st.integers(0, len(ranks)))
    plain = [0] * len(ranks)
    position_based(
        relevance.tolist(), examination.tolist(), minds.tolist(), length, np.uint64(0), plain
    )
    compiled = shown(
        PositionBased().browse.compiled, relevance, examination, minds, length, np.uint64(0)
    )
    assert compiled[:length].tolist() == plain[:length]


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
    check_users(users, behaviors, by_curve=True)


@every_user
def test_users_do_what_their_description_says(users: UserModel, behaviors: Behaviors) -> None:
    """Compiled, they do what the reference's own rule does, written without a look at theirs."""
    rng, rule, seen = np.random.default_rng(1), plain_rule(users), set()
    for length in (1, 2, 5, 8) * 100:
        relevance = rng.choice([0.0, 1.0, *rng.random(3)], length)
        curve, minds = users.examination(np.arange(1, length + 1)), rng.random(length)
        key = int(rng.integers(2**63))
        expected = rule(relevance.tolist(), curve.tolist(), minds.tolist(), key)
        outcomes = shown(users.browse.compiled, relevance, curve, minds, length, np.uint64(key))
        assert outcomes[:length].tolist() == expected
        seen |= set(expected)
    assert seen == set(range(behaviors.outcomes))


# --- the checks notice ---------------------------------------------------------------------------


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


ODD = {
    rule.__name__: FirstClass(rule, BROWSE)
    for rule in (too_high, below_zero, forgetful, beyond, meddling, eager, moody)
}


@dataclass(frozen=True)
class Odd:
    """Users who break a rule."""

    rule: str
    examination: Examination = field(default_factory=lambda: Examination(cutoff=5))

    @property
    def browse(self) -> FirstClass:
        return ODD[self.rule]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("too_high", r"outcomes must be 0 to 1, not \[.*2"),
        ("below_zero", r"outcomes must be 0 to 1, not \[.*-1"),
        ("forgetful", r"outcomes must be 0 to 1, not \[.*-7"),
        ("beyond", "users wrote beyond the end of the list"),
        ("meddling", "users changed what they only read"),
        ("eager", r"rank 2 is examined with probability 0\.631, but"),
        ("moody", r"rank 1 is examined with probability 1\.000, but"),
    ],
)
def test_users_who_break_a_rule_are_found_out(rule: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        check_users(Odd(rule), by_curve=True)


def test_users_may_click_for_other_reasons() -> None:
    check_users(Odd("eager"))


@pytest.mark.parametrize("rule", ["too_high", "below_zero"])
def test_outcomes_without_a_behavior_never_reach_the_counts(rule: str) -> None:
    users = Odd(rule)
    with pytest.raises(ParameterError, match="wrote an outcome that is not one of 0 to 1; declare"):
        simulate(tiny(), registry.parse("bm25"), replace(SHORT, users=users))
    if rule == "too_high":
        simulate(tiny(), registry.parse("bm25"), replace(SHORT, users=users, behaviors=SHOP))


def test_users_are_the_papers_by_default_and_compare_by_value() -> None:
    users = PositionBased()
    assert users.examination([1, 3, 5, 6]) == pytest.approx([1, 0.5, 0.386853, 0], abs=1e-6)
    assert users == PositionBased(Examination(cutoff=5))
    assert pickle.loads(pickle.dumps(users)) == users
