from __future__ import annotations

import math
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.errors import ParameterError
from ebrank.evaluation.metrics import behavior_and_other, cum_ndcg, exploitation_ratio

SERVED = st.lists(st.floats(0.0, 1.0), max_size=40)
GAMMA = st.floats(0.01, 0.999)
WEIGHTS = st.lists(st.integers(-1000, 1000), min_size=2, max_size=20).filter(any)


def by_definition(served: list[float], gamma: float) -> float:
    """Σ_τ γ^(t−τ)·NDCG_τ, τ = 1..t (eq:cumDCG)."""
    t = len(served)
    return math.fsum(gamma ** (t - tau) * value for tau, value in enumerate(served, start=1))


@given(SERVED, GAMMA)
def test_agrees_with_the_definition(served: list[float], gamma: float) -> None:
    expected = by_definition(served, gamma)
    assert cum_ndcg(np.array(served), gamma) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(st.lists(SERVED, max_size=6), GAMMA)
def test_parts_of_a_run_give_the_whole(parts: list[list[float]], gamma: float) -> None:
    value = 0.0
    for part in parts:
        value = cum_ndcg(np.array(part), gamma, before=value)
    expected = by_definition([x for part in parts for x in part], gamma)
    assert value == pytest.approx(expected, rel=1e-11, abs=1e-300)


def test_the_ceiling_of_the_paper_is_200() -> None:
    assert cum_ndcg(np.ones(100_000), 0.995) == pytest.approx(200.0)
    assert cum_ndcg(np.ones(100), 0.995) == pytest.approx((1 - 0.995**100) / 0.005)


@pytest.mark.slow
def test_bits_do_not_depend_on_the_threads_of_a_blas_library() -> None:
    program = (
        "import numpy as np; from ebrank.evaluation.metrics import cum_ndcg; "
        "served = np.random.default_rng(0).random(1_000_001); "
        "print(cum_ndcg(served, 0.99999).hex())"
    )
    printed = set()
    for threads in ("1", "2", "4"):
        variables = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
        environment = os.environ | dict.fromkeys(variables, threads)
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        printed.add(done.stdout)
    assert len(printed) == 1


@given(WEIGHTS)
def test_ratios_are_shares_of_all_absolute_weights(weights: list[int]) -> None:
    total = sum(map(abs, weights))
    expected = [float(Fraction(abs(weight), total)) for weight in weights]
    np.testing.assert_allclose(exploitation_ratio(weights), expected, rtol=1e-14)


@given(WEIGHTS)
def test_behavior_is_last_and_the_largest_other_beside_it(weights: list[int]) -> None:
    behavior, other = behavior_and_other(weights)
    total = sum(map(abs, weights))
    assert behavior == pytest.approx(abs(weights[-1]) / total, rel=1e-14)
    assert other == pytest.approx(max(map(abs, weights[:-1])) / total, rel=1e-14)


def test_the_scale_of_a_model_does_not_matter() -> None:
    weights = np.array([0.1, -0.7, 0.4])
    np.testing.assert_allclose(exploitation_ratio(weights), exploitation_ratio(-8 * weights))


def test_a_model_of_nothing_exploits_nothing() -> None:
    assert behavior_and_other([0.0, 0.0]) == (0.0, 0.0)


@pytest.mark.parametrize("weights", [[np.nan, 1.0], [[1.0, 2.0]]])
def test_invalid_weights_are_rejected(weights: list[float]) -> None:
    with pytest.raises(ParameterError, match="finite"):
        exploitation_ratio(weights)


def test_a_lone_weight_has_no_other() -> None:
    with pytest.raises(ParameterError, match="at least two"):
        behavior_and_other([1.0])
