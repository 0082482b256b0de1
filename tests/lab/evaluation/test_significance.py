"""Fisher's randomization test against enumeration and SciPy; Holm against its definition."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ebrank.errors import ParameterError
from ebrank.lab.evaluation.significance import (
    Metric,
    fisher_randomization,
    holm,
    query_differences,
)
from ebrank.lab.simulation.result import Result
from ebrank.typing import Floats
from tests.paper.made import result, with_trials


def enumerated(differences: list[int]) -> float:
    """Return the p-value by going through all signs, in whole numbers."""
    observed = abs(sum(differences))
    signs = list(itertools.product((-1, 1), repeat=len(differences)))
    sums = [sum(s * d for s, d in zip(choice, differences, strict=True)) for choice in signs]
    return sum(abs(total) >= observed for total in sums) / len(signs)


@given(st.lists(st.integers(-4, 4), max_size=10))
def test_small_samples_are_enumerated(differences: list[int]) -> None:
    assert fisher_randomization(differences) == enumerated(differences)


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=10))
def test_rounding_does_not_split_ties(tenths: list[int]) -> None:
    # 0.1 + 0.2 is not 0.3: sums that are equal but for rounding must count as equal
    assert fisher_randomization(np.array(tenths) / 10) == enumerated(tenths)


def test_sixteen_queries_are_the_most_that_100_000_flips_enumerate() -> None:
    assert fisher_randomization(np.ones(16)) == 2 / 2**16
    assert fisher_randomization(np.full(17, 2.0), seed=1) >= 1 / 100_001
    assert fisher_randomization(np.linspace(0.1, 1, 100), flips=5000) == 1 / 5001


def by_scipy(differences: Floats, resamples: int) -> float:
    tested = scipy.stats.permutation_test(
        (differences,),
        lambda x, axis: x.sum(axis=axis),
        permutation_type="samples",
        n_resamples=resamples,
        vectorized=True,
        batch=2000,
        rng=np.random.default_rng(2),
    )
    return float(tested.pvalue)


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.2, 0.3])
def test_agrees_with_scipy(shift: float) -> None:
    differences = np.random.default_rng(1).normal(shift, 1.0, 150)
    theirs = by_scipy(differences, 20_000)
    noise = math.sqrt(theirs * (1 - theirs) * (1 / 20_000 + 1 / 100_000))
    assert abs(fisher_randomization(differences) - theirs) < 4 * noise + 1e-4


@pytest.mark.parametrize("flips", [1, 4096, 4097, 50_000])
def test_threads_do_not_matter_and_the_seed_does(flips: int) -> None:
    differences = np.random.default_rng(4).normal(0.1, 1, 130)
    each, two = (fisher_randomization(differences, flips=flips, threads=n) for n in (1, 2))
    assert each == two
    if flips > 1:
        assert each != fisher_randomization(differences, flips=flips, seed=1)


def test_sign_scale_order_and_zeros_do_not_matter() -> None:
    differences = np.random.default_rng(5).normal(0.2, 1, 60)
    p = fisher_randomization(differences)
    assert fisher_randomization(-differences) == p
    assert fisher_randomization(differences * 1e-9) == p
    assert fisher_randomization(np.insert(differences, [0, 7, 60], 0.0)) == p
    assert fisher_randomization(differences[::-1]) == pytest.approx(p, abs=0.01)
    assert fisher_randomization([]) == fisher_randomization([0.0, 0.0]) == 1.0


@pytest.mark.parametrize("bad", [[np.nan], [np.inf, 1.0], [[1.0]]])
def test_bad_differences_are_refused(bad: list[float]) -> None:
    with pytest.raises(ParameterError, match="finite"):
        fisher_randomization(bad)


# --- Holm --------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_rejects_what_its_procedure_rejects(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    for level in (0.01, 0.05, 0.3, 0.9):
        rejected = set()
        left = len(p_values)
        for index in sorted(range(len(p_values)), key=lambda i: p_values[i]):
            if p_values[index] * left > level:  # the first that stands ends the procedure
                break
            rejected.add(index)
            left -= 1
        assert {i for i, p in enumerate(adjusted) if p <= level} == rejected


# --- comparisons of results --------------------------------------------------------------------


BY_QUERY = ("cold_by_query", "warm_by_query", "cum_by_query", "run_by_query")


def measured(ranker: str, seed: int) -> Result:
    """Return a result of three trials with values of its own; all meet the same queries."""
    values = np.random.default_rng(seed).random((3, 4, 12))
    return with_trials(
        replace(result("bm25", [(0.5, 0.5, 0.5)] * 3), ranker=ranker),
        **{name: list(values[:, place]) for place, name in enumerate(BY_QUERY)},
        test_queries=[np.random.default_rng(i).integers(20, 32, 50) for i in range(3)],
    )


A, B = measured("a", 1), measured("b", 2)


@pytest.mark.parametrize("metric", get_args(Metric))
def test_queries_are_averaged_over_trials(metric: Metric) -> None:
    name = metric.replace("_ndcg", "_by_query")
    values = [np.mean([getattr(trial, name) for trial in each.trials], axis=0) for each in (A, B)]
    differences = query_differences(A, B, metric)
    np.testing.assert_allclose(differences, values[0] - values[1])


def test_only_runs_with_the_same_queries_are_compared() -> None:
    other = replace(B.trials[0], test_queries=B.trials[0].test_queries[::-1])
    for unlike in (
        replace(B, trials=B.trials[:2]),
        replace(B, trials=(other, *B.trials[1:])),
        replace(B, config={"discount": 0.5}),
    ):
        with pytest.raises(ParameterError, match="a and b did not meet the same queries"):
            query_differences(A, unlike, "warm_ndcg")
    with pytest.raises(ParameterError, match="no metric 'ndcg'"):
        query_differences(A, B, "ndcg")  # type: ignore[arg-type]
