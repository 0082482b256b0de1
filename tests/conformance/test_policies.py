"""Every policy that the built-in parts can make conforms, and the checks notice what does not."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ebrank.evidence.estimators import ESTIMATORS
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.model.policy import policies
from ebrank.model.policy.policies import Policy
from ebrank.testing import check_policy, check_ranker
from tests.lab.simulation.comparison import assert_whole_run_agrees
from tests.lab.simulation.tiny import tiny

PARTS = "tests.conformance.parts"
BONUSES = ("marginal_certainty", "horizon", "none", "draw")
POLICIES = [  # with every pair of EBRank's choices, and every choice of auto
    *(
        policies.make("ebrank", estimator=estimator, bonus=bonus)
        for estimator, bonus in itertools.product(ESTIMATORS, BONUSES)
    ),
    *(
        policies.make("ebrank", estimator=estimator, bonus=bonus, part=part)
        for part in ("prior", "behavior")
        for estimator, bonus in zip(itertools.cycle(ESTIMATORS), BONUSES, strict=False)
    ),
    *(
        policies.parse(text)
        for text in (
            *("auto", "auto:bonus=none", "auto:bonus=draw", "auto:examination=given"),
            *("auto:part=prior", "auto:part=behavior,bonus=draw"),
        )
    ),
]
QUICK = {"ebrank", "ebrank:estimator=exposure", "ebrank:bonus=draw", "auto", "auto:part=prior"}
"""Those of the fast lane; each of the others takes seconds to compile."""


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(policy, id=str(policy), marks=() if str(policy) in QUICK else pytest.mark.slow)
        for policy in POLICIES
    ],
)
def test_policies_conform(policy: Policy) -> None:
    check_policy(policy)


@pytest.mark.parametrize(
    "text",
    [
        "thompson",
        "ebrank:beta=0.1,epsilon=0",
        "ebrank:min_impressions=3",
        "ebrank:ridge=0.001,early_stopping=false,estimator=exposure",
        "ebrank:tolerance=0.1",
        "ebrank:bonus=horizon,estimator=exposure,horizon=50",
        "auto:horizon=50",
        "auto:min_impressions=3",
        "auto:examination=given,bonus=draw",
    ],
)
def test_policies_conform_with_other_parameters(text: str) -> None:
    check_policy(policies.parse(text))


# --- a family with two numbers for each item ------------------------------------------------------

OF_EACH = f"ebrank:family={PARTS}:BetaOfEach"


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
def test_a_prior_may_have_a_second_number_for_each_item(estimator: str) -> None:
    text = f"{OF_EACH},estimator={estimator}"
    check_policy(policies.parse(text))
    check_ranker(registry.parse(text))
    assert_whole_run_agrees(text, SimulationConfig(updates=4), tiny(seed=4))


# --- the checks notice ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"bonus": f"{PARTS}:Endless"}, "the score of an item shown .* is nan"),
        ({"bonus": f"{PARTS}:Silent"}, "noisy if, and only if, its scores depend on the key"),
        ({"family": f"{PARTS}:Doubtful"}, "the relevance of an unseen item is not the prior's"),
        ({"family": f"{PARTS}:Steep"}, "slope .* of row"),
        ({"family": f"{PARTS}:Stubborn"}, r"the relevance 0\.\d+, outside its interval"),
    ],
    ids=str,
)
def test_a_part_that_breaks_a_rule_is_found_out(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        check_policy(policies.make("ebrank", **parameters))
