from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination, Policy
from ebrank.bonus import Bonus
from ebrank.errors import ParameterError
from ebrank.parameters import param
from ebrank.policy import PRESETS, make, parse
from ebrank.priors.families.beta import CONJUGATE, Beta
from ebrank.priors.learners.linear import Linear

HERE = __name__


@dataclass(frozen=True)
class Fading(Bonus):
    """A bonus with a parameter of its own."""

    name = "fading"
    help = "Falls with the exposure."
    width: float = param(1.0, "its width", at_least=0)

    @staticmethod
    def value(exposure: float, spread: float, width: float) -> float:
        return width * spread / (1.0 + exposure)


@dataclass(frozen=True)
class Clash(Bonus):
    """A bonus whose parameter the family has, too."""

    name = "clash"
    help = "Clashes."
    beta: float = param(1.0, "another beta")

    @staticmethod
    def value(beta: float) -> float:
        return beta


@dataclass(frozen=True)
class Lost(Bonus):
    """A bonus that names what nothing explains."""

    name = "lost"
    help = "Lost."

    @staticmethod
    def value(gamma: float) -> float:
        return gamma


@dataclass(frozen=True)
class Picky(Beta):
    """A family that takes one kind of evidence only."""

    name = "picky"
    posteriors: ClassVar = {"exposure": CONJUGATE}


# --- text ---------------------------------------------------------------------------------------


@given(
    name=st.sampled_from(sorted(PRESETS)),
    values=st.fixed_dictionaries(
        {},
        optional={
            "estimator": st.sampled_from(["ips", "exposure", "exact"]),
            "part": st.sampled_from(["both", "prior", "behavior"]),
            "min_impressions": st.integers(0, 9),
            "clamp": st.booleans(),
            "beta": st.floats(0.01, 100),
            "ridge": st.none() | st.floats(0, 10),
            "patience": st.integers(1, 99),
            "bonus": st.sampled_from(["none", "draw", f"{HERE}:Fading"]),
        },
    ),
)
def test_text_reads_back_as_the_same_policy(name: str, values: dict[str, Any]) -> None:
    policy = make(name, **values)
    again = parse(str(policy))
    assert again == policy
    assert again.values() == policy.values()
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert {key: policy.values()[key] for key in values} == values


def test_text_shows_only_what_differs_from_the_preset() -> None:
    assert str(parse("ebrank")) == "ebrank"
    assert str(parse("ebrank:epsilon=20,estimator=ips")) == "ebrank"
    assert str(parse("thompson:estimator=exposure")) == "thompson"
    assert str(parse("thompson:estimator=ips")) == "thompson:estimator=ips"
    assert (
        str(parse(f"ebrank:width=2,bonus={HERE}:Fading")) == f"ebrank:bonus={HERE}:Fading,width=2"
    )


def test_presets_have_help_and_parameters() -> None:
    for name in PRESETS:
        policy = parse(name)
        assert policy.help.endswith(".")
        values = policy.values()
        assert {p.name: p.default for p in policy.parameters()} == values
        assert all(p.help for p in policy.parameters())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ebrnk", "no policy is called 'ebrnk'; did you mean ebrank"),
        ("", "no policy is called ''"),
        ("ebrank:epsilon=-1", "ebrank: epsilon takes a number of 0 or more, not -1.0"),
        ("ebrank:epsilon=x", "ebrank: epsilon takes a number of 0 or more, not 'x'"),
        ("ebrank:beta=0", "ebrank: beta takes a number of 1e-06 or more"),
        ("ebrank:estimator=dips", "ebrank: estimator takes ips or exposure or exact, not 'dips'"),
        ("ebrank:part=half", "part takes both or prior or behavior"),
        ("ebrank:clamp=1", "clamp takes true or false"),
        ("ebrank:min_impressions=-1", "min_impressions takes a whole number of 0 or more"),
        ("ebrank:bonus=never", "bonus takes marginal_certainty or none or draw or module:Class"),
        ("ebrank:epsilo=1", "ebrank has no parameter 'epsilo'; did you mean epsilon"),
        ("ebrank:epsilon=1,epsilon=2", "epsilon is given twice"),
        ("ebrank:epsilon", "epsilon needs a value, as in epsilon=20"),
        ("ebrank:bonus=none,epsilon=1", "no parameter 'epsilon'"),
        ("thompson:epsilon=1", "thompson has no parameter 'epsilon'"),
        ("ebrank:bonus=no_such_module:X", "no module is called 'no_such_module'"),
        (f"ebrank:bonus={HERE}:Picky", "does not derive from ebrank.bonus:Bonus"),
        (f"ebrank:learner={HERE}:Fading", "does not derive from ebrank.priors.base:Learner"),
    ],
)
def test_texts_that_are_no_policy_are_refused_in_words(text: str, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        parse(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"ebrank:bonus={HERE}:Clash", "two parts have a parameter 'beta'; rename one"),
        (f"ebrank:bonus={HERE}:Lost", "value takes 'gamma', which is neither a quantity"),
        (f"ebrank:family={HERE}:Picky", "picky does not take 'ips' evidence; it takes exposure"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        parse(text)


def test_parts_of_one_s_own_are_used() -> None:
    policy = parse(f"ebrank:bonus={HERE}:Fading,width=3")
    assert policy.bonus == Fading(3.0)
    picky = parse(f"ebrank:family={HERE}:Picky,estimator=exposure,beta=2")
    assert picky.family == Picky(beta=2.0)


# --- changes ------------------------------------------------------------------------------------


def test_a_changed_policy_keeps_the_rest() -> None:
    policy = parse("ebrank:epsilon=5,beta=2,ridge=0.5")
    assert str(policy.with_parameters(beta=3.0)) == "ebrank:epsilon=5,beta=3,ridge=0.5"
    assert policy.with_parameters() == policy
    with pytest.raises(ParameterError, match="no parameter 'gamma'"):
        policy.with_parameters(gamma=1.0)


def test_a_replaced_part_takes_its_parameters_with_it() -> None:
    policy = parse("ebrank:epsilon=5,beta=2")
    without = policy.with_parameters(bonus="none")
    assert str(without) == "ebrank:bonus=none,beta=2"
    assert str(policy.with_parameters(bonus=f"{HERE}:Fading", width=2.0)) == (
        f"ebrank:bonus={HERE}:Fading,width=2,beta=2"
    )
    assert str(without.with_parameters(bonus="marginal_certainty")) == "ebrank:beta=2"


def test_policies_made_of_the_same_parts_share_their_compiled_code() -> None:
    first, second = parse("ebrank:epsilon=5"), parse("ebrank:epsilon=7,ridge=1")
    assert first.score.formula is second.score.formula
    assert first.score.parameters.tolist() != second.score.parameters.tolist()


# --- scores, rows, priors -----------------------------------------------------------------------


def test_only_a_policy_that_draws_and_explores_is_noisy() -> None:
    noisy = {
        text: parse(text).noisy
        for text in ("ebrank", "thompson", "ebrank:bonus=draw", "thompson:part=prior")
    }
    assert list(noisy.values()) == [False, True, True, False]


def test_the_relevance_is_the_score_without_the_bonus() -> None:
    known = {"a": 2.0, "b": 5.0, "weighted_clicks": 3.0, "shown": 10.0, "exposure": 6.0}
    policy = parse("ebrank:epsilon=4")
    values = policy.values()
    relevance = policy.relevance.formula(**known, **values)
    assert relevance == pytest.approx((3 + 2) / (10 + 7))
    score = policy.score.formula(**known, **values)
    assert score == pytest.approx(relevance + 4 * relevance / (6 + 7) ** 2)


def test_without_a_state_all_items_are_alike() -> None:
    policy = parse("ebrank:beta=4")
    prior = policy.prior(None, np.random.default_rng(0).random((3, 2), np.float32))
    np.testing.assert_array_equal(prior.a, np.ones(3))
    np.testing.assert_array_equal(prior.b, [4.0])
    np.testing.assert_allclose(policy.prior_mean(prior), [0.2] * 3)


def test_the_prior_is_that_of_the_learner_s_scores() -> None:
    policy: Policy = parse("ebrank")
    state = {"weights": np.array([2.0]), "intercept": np.array([-1.0]), "ridge": np.array([0.0])}
    prior = policy.prior(state, np.array([[0.0], [0.5]], np.float32))
    np.testing.assert_allclose(prior.a, np.exp([-1.0, 0.0]))
    assert isinstance(policy.learner, Linear)


def test_rows_take_any_matrix_and_refuse_the_rest() -> None:
    policy, stats = parse("ebrank"), BehaviorStats.zeros(2)
    rows = policy.rows([[1, 2], [3, 4]], stats, Examination())  # type: ignore[arg-type]
    assert rows.features.dtype == np.float32
    assert not rows.features.flags.writeable
    with pytest.raises(ParameterError, match="3 rows of features, behavior of 2"):
        policy.rows(np.zeros((3, 1), np.float32), stats, Examination())
    with pytest.raises(ParameterError, match="must be a matrix"):
        policy.rows(np.zeros(2, np.float32), stats, Examination())
    with pytest.raises(ParameterError, match="must be a matrix"):
        policy.prior(None, np.zeros(2, np.float32))
