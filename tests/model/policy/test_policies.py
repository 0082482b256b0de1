"""Policies: four parts, one text form, and errors that name policy, parameter and range."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination, ParameterError, Policy, equations
from ebrank.model.bonus.draw import Draw
from ebrank.model.bonus.marginal_certainty import MarginalCertainty
from ebrank.model.bonus.none import NoBonus
from ebrank.model.policy.policies import PRESETS, make, parse
from ebrank.model.prior import ItemPrior
from ebrank.model.scoring import scores
from ebrank.parameters import Parameter
from tests.bound import unfitted
from tests.test_parameters import valued

MINE = """
from dataclasses import dataclass
from ebrank.model.bonus import Bonus
from ebrank.parameters import param
from ebrank.model.prior import Family, ItemPrior, Learner, Posterior
from ebrank.model.prior.families.beta import Beta
import numpy as np

@dataclass(frozen=True)
class Optimist(Bonus):
    name, help = "optimist", "Some standard deviations."
    deviations: float = param(1.0, "how many", at_least=0)
    label: str = param("plain", "a text, which no function may name")

    @staticmethod
    def value(spread, deviations):
        return deviations * spread

@dataclass(frozen=True)
class Lost(Bonus):
    name, help = "lost", "Names what no family has."

    @staticmethod
    def value(kurtosis):
        return kurtosis

@dataclass(frozen=True)
class Rival(Bonus):
    name, help = "rival", "Has a parameter that a family has."
    beta: float = param(1.0, "taken already")

    @staticmethod
    def value(beta):
        return beta

def shrunk(hits, trials, level, weight):
    return (hits + weight * level) / (trials + weight)

def apart(hits, trials, weight):
    return 1.0 / (trials + weight)

def squared(score, hits, trials, weight):
    return (score - hits) ** 2, 2.0 * (score - hits)

@dataclass(frozen=True)
class Level(Family):
    name, help = "level", "One number per item, and a parameter that its functions name."
    item = ("level",)
    posteriors = {"exposure": Posterior(shrunk, apart, shrunk, squared)}
    weight: float = param(2.0, "strength of the prior", at_least=0)

    @staticmethod
    def mean(level):
        return level

    def prior(self, scores):
        return ItemPrior(scores, np.zeros(1))
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write parts of one's own to import."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_policy_parts.py").write_text(MINE)


def some_items() -> tuple[ItemPrior, BehaviorStats]:
    rng = np.random.default_rng(0)
    shown = rng.integers(0, 9, (20, 5))
    alpha = rng.uniform(0.2, 3.0, 20)
    return ItemPrior(alpha, np.array([5.0])), BehaviorStats.of(shown, rng.binomial(shown, 0.3))


# --- text ----------------------------------------------------------------------------------------


def test_a_text_names_parts_and_parameters() -> None:
    policy = parse("ebrank:epsilon=5,estimator=exposure")
    assert policy.bonus == MarginalCertainty(epsilon=5.0)
    assert policy.prior.estimator.name == "exposure"
    assert policy == make("ebrank", epsilon=5, estimator="exposure")
    assert str(policy) == "ebrank:epsilon=5,estimator=exposure"
    assert str(parse("ebrank")) == str(make()) == "ebrank"
    assert parse("thompson").bonus == Draw()
    assert str(parse("thompson:bonus=none,estimator=ips")) == "thompson:bonus=none,estimator=ips"
    assert parse("ebrank").learner.ridge is None  # type: ignore[attr-defined]
    assert str(parse("ebrank:ridge=auto")) == "ebrank"
    assert parse("ebrank:beta=2").help == PRESETS["ebrank"].help


BONUSES = {
    "beta": ["marginal_certainty", "horizon", "none", "draw"],
    "shape": ["horizon", "none", "draw"],
}
TIED = {
    "beta": {"family", "bonus", "learner", "examination", "shared"},
    "shape": {"family", "bonus", "learner", "estimator"},
}
"""Parameters of which the family takes just some values, or that bring others along."""


def free(policy: Policy) -> list[Parameter]:
    """Return the parameters that may have any value of their domain."""
    tied = TIED[policy.choices.family]
    return [parameter for parameter in policy.parameters() if parameter.name not in tied]


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Draw any policy of built-in parts."""
    policy = make(draw(st.sampled_from(sorted(PRESETS))))
    bonus = draw(st.sampled_from(BONUSES[policy.choices.family]))
    policy = policy.with_parameters(bonus=bonus)
    taken = {parameter.name: valued(parameter) for parameter in free(policy)}
    return policy.with_parameters(**draw(st.fixed_dictionaries({}, optional=taken)))


@given(policies())
def test_any_policy_reads_back_from_its_text(policy: Policy) -> None:
    again = parse(str(policy))
    assert again == policy
    assert again.values() == policy.values()
    assert str(again) == str(policy)
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_a_part_that_is_replaced_takes_its_parameters_with_it() -> None:
    policy = parse("ebrank:epsilon=5,beta=2").with_parameters(bonus="none")
    assert policy.bonus == NoBonus()
    assert str(policy) == "ebrank:bonus=none,beta=2"
    assert policy.with_parameters(bonus="marginal_certainty").bonus == MarginalCertainty()


# --- refusals ------------------------------------------------------------------------------------


def outside(parameter: Parameter) -> Iterator[Any]:
    """Yield values that a parameter does not take."""
    yield from ([1], "no such value") if parameter.kind is str else ("text", [1], 10**400)
    if parameter.kind in (float, int):
        yield from (float("nan"), float("inf"), True)
    if parameter.at_least is not None:
        yield parameter.at_least - 1
    if parameter.at_most is not None:
        yield parameter.at_most + 1
    if parameter.default is not None:
        yield None


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_parameter_out_of_range_is_refused_by_policy_parameter_and_range(name: str) -> None:
    for parameter in make(name).parameters():
        for value in outside(parameter):
            with pytest.raises(ParameterError) as caught:
                make(name, **{parameter.name: value})
            problem = str(caught.value)
            assert problem == f"{name}: {parameter.name} takes {parameter.domain}, not {value!r}"
            if isinstance(value, str):
                with pytest.raises(ParameterError) as caught:
                    parse(f"{name}:{parameter.name}={value}")
                assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ebrnk", "unknown policy 'ebrnk'; did you mean ebrank?"),
        ("", "unknown policy ''. Known: ebrank, thompson, auto."),
        ("os:system", "unknown policy 'os'"),
        ("ebrank:bonus=none,epsilon=3", "ebrank has no parameter 'epsilon'"),
        (
            "ebrank:bonus=huge",
            "ebrank: bonus takes marginal_certainty or horizon or upper or none or draw",
        ),
        ("ebrank:bonus=no_such:Bonus", "no module is called 'no_such'"),
        ("ebrank:family=ebrank.model.bonus.none:NoBonus", "does not derive from"),
        (
            "ebrank:family=shape",
            "the family shape does not support 'ips' evidence; it supports exact",
        ),
        ("auto:family=beta", "auto: the family beta cannot learn the examination; shape can"),
        ("ebrank:estimator=exact,family=shape", "bonus marginal_certainty does not go with the"),
        ("auto:bonus=marginal_certainty", "takes 'alpha', which is neither a quantity"),
    ],
)
def test_mistakes_in_a_text_are_named(text: str, problem: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse(text)
    assert problem in str(caught.value)


# --- parts of one's own --------------------------------------------------------------------------


@pytest.mark.usefixtures("mine")
def test_a_bonus_of_ones_own_goes_by_its_class() -> None:
    text = "ebrank:bonus=my_policy_parts:Optimist,deviations=2,label=bold,estimator=exposure"
    policy = parse(text)
    assert str(policy) == text
    assert parse(str(policy)) == policy
    prior, stats = some_items()
    sums = stats.sums(Examination())
    mean = equations.relevance(sums.clicks, sums.exposure, prior.a, prior.b)
    spread = equations.posterior_spread(sums.clicks, sums.exposure, prior.a, prior.b)
    found = scores(unfitted(policy).score, prior, stats, Examination())
    np.testing.assert_allclose(found, mean + 2 * spread)


@pytest.mark.usefixtures("mine")
def test_a_family_of_ones_own_may_name_its_parameters() -> None:
    policy = parse("ebrank:family=my_policy_parts:Level,estimator=exposure,bonus=none,weight=3")
    prior, stats = policy.family.prior(np.linspace(0, 1, 20)), some_items()[1]
    sums = stats.sums(Examination())
    found = scores(unfitted(policy).relevance, prior, stats, Examination())
    np.testing.assert_allclose(found, (sums.clicks + 3 * prior.a) / (sums.exposure + 3))
    np.testing.assert_array_equal(
        scores(unfitted(policy).prior, prior, stats, Examination()), prior.a
    )
    features = np.zeros((20, 1), np.float32)
    losses, slopes = policy.prior.rows(features, stats, Examination()).losses_and_slopes(
        np.ones(20)
    )
    seen = sums.shown > 0
    np.testing.assert_allclose(losses[seen], (1 - sums.clicks[seen]) ** 2)
    np.testing.assert_allclose(slopes[seen], 2 * (1 - sums.clicks[seen]))
    with pytest.raises(
        ParameterError, match="the family level does not support 'ips' evidence; it"
    ):
        policy.with_parameters(estimator="ips")


@pytest.mark.usefixtures("mine")
def test_parts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ParameterError, match="takes 'kurtosis', which is neither a quantity"):
        parse("ebrank:bonus=my_policy_parts:Lost")
    with pytest.raises(ParameterError, match="two parts have a parameter 'beta'; rename one"):
        parse("ebrank:bonus=my_policy_parts:Rival")
    with pytest.raises(ParameterError, match="takes 'alpha'"):  # the bonus names what is Beta's
        parse("ebrank:family=my_policy_parts:Level,estimator=exposure")


# --- scores --------------------------------------------------------------------------------------


def test_policies_made_of_the_same_parts_share_their_machine_code() -> None:
    first, second = make(epsilon=1.0), make(epsilon=2.0, beta=3.0, ridge=1e-3)
    assert unfitted(first).score.formula is unfitted(second).score.formula
    assert unfitted(first).score.parameters[0] == 1.0
    assert unfitted(second).score.parameters[0] == 2.0
    assert unfitted(make(bonus="none")).score.formula is not unfitted(first).score.formula
