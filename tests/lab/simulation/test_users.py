from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from ebrank.errors import ParameterError
from ebrank.evidence import CLICKS, Behaviors, Examination
from ebrank.kernels import streams
from ebrank.kernels.compiled import FirstClass
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import simulate
from ebrank.lab.simulation.users import (
    BROWSE,
    DBN,
    DCM,
    PBM,
    Cascade,
    Habits,
    PositionBased,
    UserModel,
    Users,
    built_in,
    habits_of,
    parse,
)
from ebrank.parameters import param
from ebrank.testing import check_users
from ebrank.testing.users import shown
from tests.lab.simulation.tiny import tiny
from tests.lab.simulation.users import SHOP, Impatient, Shoppers, Shown, plain_habits, plain_rule

SHORT = SimulationConfig(updates=2, sessions=60)


USERS: list[tuple[UserModel, Behaviors]] = [
    (PositionBased(), CLICKS),
    (PositionBased(Examination(curve=(0.9, 0.0, 0.5))), CLICKS),
    (Impatient(), CLICKS),
    (Shoppers(), SHOP),
    (parse("pbm:severity=0.4,cutoff=3"), CLICKS),
    (parse("pbm:setting=navigational"), CLICKS),
    (parse("cascade"), CLICKS),
    (parse("cascade:stop=1,setting=perfect,cutoff=3"), CLICKS),
    (parse("dcm"), CLICKS),
    (parse("dcm:setting=informational,noise=0.1"), CLICKS),
    (parse("dbn"), CLICKS),
    (parse("dbn:perseverance=0.5,setting=perfect"), CLICKS),
]
every_user = pytest.mark.parametrize(("users", "behaviors"), USERS, ids=str)


@pytest.mark.slow
@every_user
def test_users_keep_the_rules(users: UserModel, behaviors: Behaviors) -> None:
    check_users(users, behaviors, by_curve=not isinstance(users, Cascade | DCM | DBN))


@pytest.mark.slow
@every_user
def test_users_do_what_their_description_says(users: UserModel, behaviors: Behaviors) -> None:
    """Compiled, they do what the reference's own rule does, written without a look at theirs."""
    rng, rule, seen = np.random.default_rng(1), plain_rule(users), set()
    for length in (1, 2, 5, 8) * 100:
        relevance = rng.choice([0.0, 1.0, *rng.random(3)], length)
        stopping = rng.choice([0.0, 1.0, *rng.random(3)], length)
        curve, minds = users.examination(np.arange(1, length + 1)), rng.random(length)
        key = int(rng.integers(2**63))
        arrays = relevance, stopping, curve, minds
        items = [Shown(*values) for values in zip(*map(np.ndarray.tolist, arrays), strict=True)]
        expected = rule(items, key)
        outcomes = shown(users.browse.compiled, *arrays, length, np.uint64(key))
        assert outcomes[:length].tolist() == expected
        seen |= set(expected)
    assert seen == set(range(behaviors.outcomes))


# --- habits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_label", [2, 4])
@every_user
def test_habits_are_those_published(users: UserModel, behaviors: Behaviors, max_label: int) -> None:
    click, stop = habits_of(users, max_label)
    for label in range(max_label + 1):
        assert (click[label], stop[label]) == plain_habits(users, label, max_label)


def test_other_scales_are_between_the_published_ones() -> None:
    users = parse("dcm:setting=informational")
    assert [values.tolist() for values in habits_of(users, 1)] == [[0.4, 0.9], [0.1, 0.5]]
    click, stop = habits_of(users, 3)
    assert click == pytest.approx([0.4, 0.6 + 0.1 / 3, 0.7 + 0.2 / 3, 0.9])
    assert stop == pytest.approx([0.1, 0.1 + 0.4 / 3, 0.1 + 0.8 / 3, 0.5])


@pytest.mark.parametrize("max_label", [1, 2, 3, 4])
def test_any_noise_leaves_probabilities(max_label: int) -> None:
    for noise in np.linspace(0.0, 1.0, 101).tolist():
        click, stop = habits_of(PBM(noise=noise), max_label)
        assert click[-1] == stop[-1] == pytest.approx(1.0)


def test_habits_that_are_no_probabilities_are_refused() -> None:
    with pytest.raises(ParameterError, match="a probability to click for each of the grades 0 to"):
        simulate(tiny(), registry.parse("bm25"), replace(SHORT, users=Boastful()))


@dataclass(frozen=True)
class Boastful(Users):
    """Users with impossible habits."""

    name = "boastful"
    help = "Click more often than always."
    excess: float = param(0.5, "how much more", at_least=0)

    @property
    def browse(self) -> FirstClass:
        return ODD["eager"]

    def habits(self, max_label: int) -> Habits:
        return Habits(np.full(max_label + 1, 1.0 + self.excess), np.zeros(max_label + 1))


# --- texts ---------------------------------------------------------------------------------------


def test_users_have_a_text_form() -> None:
    assert [str(parse(name)) for name in built_in()] == ["pbm", "cascade", "dcm", "dbn"]
    assert parse("pbm") == SimulationConfig().users
    assert str(parse("dbn:perseverance=0.8,setting=perfect")) == (
        "dbn:setting=perfect,perseverance=0.8"
    )
    own = parse(f"{__name__}:Boastful:excess=2")
    assert str(own) == f"{__name__}:Boastful:excess=2"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cascad", "no users are called 'cascad'; did you mean cascade"),
        ("cascade:stop=2", "cascade: stop takes a number from 0 to 1, not 2"),
        (
            "tests.lab.simulation.users:Impatient",
            "does not derive from ebrank.lab.simulation.users",
        ),
    ],
)
def test_texts_that_name_no_users_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        parse(text)


# --- the checks notice ---------------------------------------------------------------------------


RULES = {
    "too_high": "out[rank] = 2 * (minds[rank] < p[rank] * relevance[rank])",
    "below_zero": "out[rank] = -(minds[rank] < p[rank] * relevance[rank])",
    "forgetful": "if minds[rank] < p[rank] * relevance[rank]: out[rank] = 1",
    "beyond": "out[rank] = out[rank + 1] = minds[0] < 0.5",
    "peeking": "out[rank] = minds[rank] < p[rank] * relevance[rank] * relevance[4]",
    "meddling": "out[rank] = minds[rank] < p[rank] * relevance[rank]; minds[rank] = 0.0",
    "eager": "out[rank] = minds[rank] < 1.2 * p[rank] * relevance[rank]",
    "moody": "out[rank] = minds[rank] < p[rank] * relevance[rank] * (uniform(key) < 0.5)",
}
"""What users who break a rule do at each rank."""


def odd(name: str) -> FirstClass:
    names: dict[str, Any] = {"uniform": streams.uniform, "__name__": __name__}
    head = f"def {name}(relevance, stop, p, minds, n, key, out):\n    for rank in range(n):\n"
    exec(f"{head}        {RULES[name]}\n", names)
    return FirstClass(names[name], BROWSE)


ODD = {name: odd(name) for name in RULES}


@dataclass(frozen=True)
class Odd:
    """Users who break a rule."""

    rule: str
    examination: Examination = field(default_factory=lambda: Examination(cutoff=5))

    @property
    def browse(self) -> FirstClass:
        return ODD[self.rule]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("too_high", r"outcomes must be 0 to 1, not \[.*2"),
        ("below_zero", r"outcomes must be 0 to 1, not \[.*-1"),
        ("forgetful", r"outcomes must be 0 to 1, not \[.*-7"),
        ("beyond", "users wrote beyond the end of the list"),
        ("peeking", "users read beyond the end of the list"),
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
