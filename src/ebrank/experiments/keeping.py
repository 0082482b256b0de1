"""What is kept of results while experiments speak: hundreds of long trials must fit in memory.

Sessions long past have no weight in Cum-NDCG: γ^age is 0 in floating point beyond some age, some
150,000 sessions for γ = 0.995. They are dropped, and with them nothing that a comparison sees. The
queries that were asked are the same for all rankers, and are kept once.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ebrank.simulation.result import Result, TrialResult

SMALLEST = sys.float_info.min * sys.float_info.epsilon
"""The smallest number above 0."""


def kept(results: Sequence[Result]) -> list[Result]:
    """Return results of rankers that met the same queries, without what no comparison sees."""
    slim = [
        replace(one, trials=tuple(_recent(trial, one.config.discount) for trial in one.trials))
        for one in results
    ]
    return [replace(one, trials=tuple(map(_sharing, one.trials, slim[0].trials))) for one in slim]


def weighed_sessions(discount: float) -> int:
    """Return how many of the last sessions can have any weight in Cum-NDCG, if not fewer.

    >>> 0.9 ** weighed_sessions(0.9), 0.9 ** (weighed_sessions(0.9) - 10) > 0.0
    (0.0, True)
    """
    vanishing = math.log(SMALLEST) - math.log(2)  # anything smaller is rounded to 0
    return math.ceil(vanishing / math.log(discount)) + 1


def _recent(trial: TrialResult, discount: float) -> TrialResult:
    start = max(0, len(trial.test_ndcg) - weighed_sessions(discount))
    if start == 0:
        return trial
    return replace(
        trial,
        test_queries=trial.test_queries[start:].copy(),  # a view would keep the rest alive
        test_ndcg=trial.test_ndcg[start:].copy(),
    )


def _sharing(trial: TrialResult, first: TrialResult) -> TrialResult:
    same = np.array_equal(trial.test_queries, first.test_queries)
    return replace(trial, test_queries=first.test_queries) if same else trial
