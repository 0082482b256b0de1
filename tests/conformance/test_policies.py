"""Every policy that the built-in parts can make conforms, and the checks notice what does not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from ebrank.evidence import CLICKS, Behaviors, BehaviorStats, Examination
from ebrank.evidence.estimators import ESTIMATORS
from ebrank.policy import policies
from ebrank.policy.policies import Policy
from ebrank.policy.scoring import scores
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig
from ebrank.testing import check_policy, check_ranker
from ebrank.testing import policies as checks
from tests.simulation.comparison import assert_whole_run_agrees
from tests.simulation.tiny import tiny
from tests.simulation.users import SHOP

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
        "ebrank:clamp=true,min_impressions=3",
        "ebrank:ridge=0.001,early_stopping=false,estimator=exposure",
        "ebrank:max_iterations=3,tolerance=0.1,patience=1",
        "ebrank:bonus=horizon,estimator=exposure,horizon=50",
        "auto:horizon=50",
        "auto:smoothness=0.1,min_impressions=3",
        "auto:examination=given,bonus=draw",
    ],
)
def test_policies_conform_with_other_parameters(text: str) -> None:
    check_policy(policies.parse(text))


# --- one score for lab and library ---------------------------------------------------------------

N = tiny().n_rows


@st.composite
def reachable(draw: st.DrawFn) -> tuple[BehaviorStats, Examination]:
    """Return what users may have done with N items, and how far down they are believed to look."""
    behaviors: Behaviors = draw(st.sampled_from([CLICKS, SHOP]))
    slots = draw(st.integers(1, 10))
    most = draw(st.sampled_from([1, 3, 50, 10**6]))
    counts = npst.arrays(np.int32, (8, behaviors.outcomes, slots), elements=st.integers(0, most))
    few = draw(counts)
    few[:, 0] += few[:, 1:].sum(axis=1)
    curve = draw(
        st.one_of(
            st.builds(Examination, severity=st.floats(0, 2), cutoff=st.integers(1, 12)),
            st.builds(
                Examination,
                curve=st.lists(st.just(0.0) | st.floats(0.01, 1.0), min_size=1, max_size=10).filter(
                    any
                ),
            ),
        )
    )
    return BehaviorStats(np.resize(few, (N, *few.shape[1:])), behaviors), curve


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",  # each kind of argument that a formula takes: sums, counts, draws, what was learned
    [
        "ebrank",
        "ebrank:bonus=draw",
        "ebrank:estimator=exposure,bonus=horizon",
        "ebrank:estimator=exact",
        "auto",
        "auto:bonus=draw",
    ],
)
@settings(max_examples=25)
@given(state=reachable(), seed=st.integers(0, 2**32))
def test_the_labs_scores_are_the_librarys(
    text: str, state: tuple[BehaviorStats, Examination], seed: int
) -> None:
    policy = policies.parse(text)
    rng = np.random.default_rng(seed)
    stats, curve = state
    prior = policy.family.prior(rng.normal(scale=3.0, size=N))
    keys = rng.integers(2**63, size=N).astype(np.uint64)
    bound = policy.scores(None, stats.valuation(curve))
    for score in (bound.score, bound.relevance):
        library = scores(score, prior, stats, curve, keys)
        lab = checks.simulated_scores(score, prior, stats, curve, keys)
        assert library.tobytes() == lab.tobytes()


# --- a family with two numbers for each item ------------------------------------------------------

OF_EACH = f"ebrank:family={PARTS}:BetaOfEach"


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
class TestBetaOfEach:
    """A prior whose second number differs from item to item; once the first item's served all."""

    def test_keeps_the_rules(self, estimator: str) -> None:
        check_policy(policies.parse(f"{OF_EACH},estimator={estimator}"))
        check_ranker(registry.parse(f"{OF_EACH},estimator={estimator}"))

    def test_in_the_simulator(self, estimator: str) -> None:
        data = tiny(seed=4)
        text = f"{OF_EACH},estimator={estimator}"
        assert_whole_run_agrees(text, SimulationConfig(updates=4), data)


# --- the checks notice ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"bonus": f"{PARTS}:Endless"}, "the score of an item shown .* is nan"),
        ({"bonus": f"{PARTS}:Silent"}, "noisy if, and only if, its scores depend on the key"),
        ({"family": f"{PARTS}:Doubtful"}, "the relevance of an unseen item is not the prior's"),
        ({"family": f"{PARTS}:Steep"}, "slope .* of row"),
        ({"family": f"{PARTS}:Backwards"}, r"an interval of relevance from 0\.\d+ to 0\.\d+"),
        ({"family": f"{PARTS}:Stubborn"}, r"the relevance 0\.\d+, outside its interval"),
    ],
    ids=str,
)
def test_a_part_that_breaks_a_rule_is_found_out(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        check_policy(policies.make("ebrank", **parameters))
