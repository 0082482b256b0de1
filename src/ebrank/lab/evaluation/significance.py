"""Is one ranker better than another, or was it luck? Fisher's randomization test over test queries.

If two rankers were equally good, a query's difference might as well have had the other sign. So the
signs are flipped at random many times: the p-value is the share of flips whose sum is at least as
far from zero as the observed one. The unit is the test query, because a test set is a sample of
queries; trials only make a query's difference more precise, and are added up.

With seven queries, all better, 2 of the 2⁷ ways to choose the signs go as far:

>>> fisher_randomization([0.1, 0.2, 0.1, 0.3, 0.2, 0.1, 0.4])
0.015625
>>> holm([0.01, 0.04, 0.03])
array([0.03, 0.06, 0.06])
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from ebrank.errors import ParameterError
from ebrank.kernels import streams
from ebrank.kernels.compiled import kernel
from ebrank.kernels.threads import map_blocks
from ebrank.lab.simulation.result import Result, TrialResult
from ebrank.typing import Floats

Metric = Literal["cold_ndcg", "warm_ndcg", "cum_ndcg", "run_ndcg"]
ADDS_UP = ("cum_ndcg", "run_ndcg")
"""The metrics to which each query adds a part; the others are means over queries."""

FLIPS = 100_000
FLIPS_PER_BLOCK = 4096
BITS = 8
SUBSETS = 1 << BITS
OCTETS_PER_WORD = 8
ROUNDING = 1e-12
"""Sums that differ by less than this share of the sum of absolute values count as equal."""


def fisher_randomization(
    differences: npt.ArrayLike,
    *,
    flips: int = FLIPS,
    seed: int = 0,
    threads: int | None = None,
) -> float:
    """Return the two-sided p-value of paired differences, shape (queries,).

    If there are at most `flips` ways to choose the signs, all 2ⁿ are counted. Otherwise `flips` of
    them are drawn, and p = (b + 1)/(flips + 1), where b of them go as far as the observed one: the
    +1 is that one itself, without which p could be 0. Queries without a difference do not matter
    and are left out.
    """
    values = np.asarray(differences, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ParameterError("differences must be a list of finite numbers")
    values = values[values != 0.0]
    exact = 2 ** len(values) <= flips
    drawn = 2 ** len(values) if exact else flips
    reached = _as_far(values, drawn, seed, exact, threads)
    return reached / drawn if exact else (reached + 1) / (drawn + 1)


def holm(p_values: npt.ArrayLike) -> Floats:
    """Return p-values adjusted for making several comparisons at once (Holm 1979).

    The smallest of m is multiplied by m, the next by m − 1, and so on; none may fall below a
    smaller one, or rise above 1.
    """
    given = np.asarray(p_values, np.float64)
    order = np.argsort(given, kind="stable")
    steps = given[order] * np.arange(len(given), 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def query_differences(a: Result, b: Result, metric: Metric) -> Floats:
    """Return by how much `a` exceeds `b` on each test query, averaged over trials."""
    if metric not in get_args(Metric):
        raise ParameterError(f"no metric {metric!r}; choose one of {', '.join(get_args(Metric))}")
    pairs = _paired_trials(a, b)
    name = metric.replace("_ndcg", "_by_query")
    total = np.sum([getattr(x, name) - getattr(y, name) for x, y in pairs], axis=0)
    return np.asarray(total / len(pairs))


def _paired_trials(a: Result, b: Result) -> list[tuple[TrialResult, TrialResult]]:
    """Return the trials of both; raise unless they met the same queries at the same times."""
    paired = len(a.trials) == len(b.trials) > 0 and a.config["discount"] == b.config["discount"]
    if not paired or not all(
        np.array_equal(x.test_queries, y.test_queries)
        and len(x.cold_by_query) == len(y.cold_by_query)
        for x, y in zip(a.trials, b.trials, strict=True)
    ):
        raise ParameterError(
            f"{a.ranker} and {b.ranker} did not meet the same queries; compare runs with the same "
            "dataset, config, seed and number of trials"
        )
    return list(zip(a.trials, b.trials, strict=True))


def _as_far(values: Floats, drawn: int, seed: int, exact: bool, threads: int | None) -> int:
    """Return how many sign assignments give a sum at least as far from zero as the observed one."""
    sums = _octet_sums(values)
    whole = float(values.sum())
    border = abs(whole) - ROUNDING * float(np.abs(values).sum())
    key = np.uint64(streams.child(np.uint64(0), seed))
    return sum(
        map_blocks(
            lambda start, stop: _count_as_far(sums, whole, border, key, exact, start, stop),
            total=drawn,
            block=FLIPS_PER_BLOCK,
            threads=threads,
        )
    )


@kernel
def _octet_sums(values: Floats) -> Floats:
    """Return the sum over each subset of each eight values, shape (octets, 256).

    Flipping the signs of all values not in a set S turns their sum into 2·Σ_S − Σ. With the sums
    over subsets of eight in a table, a flip of 1,600 queries is 200 additions.
    """
    octets = (len(values) + BITS - 1) // BITS
    sums = np.zeros((octets, SUBSETS))
    for octet in range(octets):
        for subset in range(SUBSETS):
            for bit in range(min(BITS, len(values) - octet * BITS)):
                if (subset >> bit) & 1:
                    sums[octet, subset] += values[octet * BITS + bit]
    return sums


@kernel
def _count_as_far(
    sums: Floats, whole: float, border: float, key: np.uint64, exact: bool, start: int, stop: int
) -> int:
    """Return how many of the flips start to stop have an absolute sum of `border` or more.

    An exact flip chooses the signs by the bits of its number, any other by its own random bits.
    """
    count = 0
    for flip in range(start, stop):
        chosen = 0.0
        own = streams.child(key, flip)
        for octet in range(len(sums)):
            if octet % OCTETS_PER_WORD == 0:
                word = np.uint64(flip)
                if not exact:
                    word = streams.child(own, octet // OCTETS_PER_WORD)
            chosen += sums[octet, np.int64(word & np.uint64(SUBSETS - 1))]
            word >>= np.uint64(BITS)
        count += abs(2.0 * chosen - whole) >= border
    return count
