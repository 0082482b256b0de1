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

from ebrank.lab.simulation.records import cum_ndcg
from ebrank.paper.framework.measures import behavior_and_other, exploitation_ratio

SERVED = st.lists(st.floats(0.0, 1.0), max_size=40)
GAMMA = st.floats(0.01, 0.999)
WEIGHTS = st.lists(st.integers(-1000, 1000), min_size=2, max_size=20).filter(any)


def by_definition(served: list[float], gamma: float) -> float:
    """Σ_τ γ^(t−τ)·NDCG_τ, τ = 1..t (eq:cumDCG)."""
    t = len(served)
    return math.fsum(gamma ** (t - tau) * value for tau, value in enumerate(served, start=1))


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
        "import numpy as np; from ebrank.lab.simulation.records import cum_ndcg; "
        "served = np.random.default_rng(0).random(1_000_001); "
        "print(cum_ndcg(served, 0.99999).hex())"
    )
    printed = set()
    for threads in ("1", "2", "4"):
        variables = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
        environment = os.environ | dict.fromkeys(variables, threads)
        command = [sys.executable, "-c", program]
        printed.add(subprocess.check_output(command, env=environment, text=True))
    assert len(printed) == 1


@given(WEIGHTS)
def test_ratios_are_shares_of_all_absolute_weights(weights: list[int]) -> None:
    total = sum(map(abs, weights))
    expected = [float(Fraction(abs(weight), total)) for weight in weights]
    ratios = exploitation_ratio(weights)
    np.testing.assert_allclose(ratios, expected, rtol=1e-14)
    np.testing.assert_allclose(exploitation_ratio(-8 * np.array(weights)), ratios)
    assert behavior_and_other(weights) == (ratios[-1], max(ratios[:-1]))
    assert behavior_and_other([0.0, 0.0]) == (0.0, 0.0), "a model of nothing exploits nothing"
