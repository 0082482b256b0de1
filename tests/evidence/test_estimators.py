from __future__ import annotations

import numpy as np
import pytest

from ebrank import BehaviorStats, Examination
from ebrank.evidence.estimators import ESTIMATORS

CURVE = Examination(curve=(1.0, 0.5))
STATS = BehaviorStats.of(shown=[[0, 2], [2, 2], [0, 0]], clicks=[[0, 2], [1, 0], [0, 0]])
# n, c, C, E: 2, 2, 4, 1 and 4, 1, 1, 3


@pytest.mark.parametrize(
    ("name", "clamp", "expected"),
    [
        ("ips", False, [[4, 2], [1, 4], [0, 0]]),
        ("ips", True, [[2, 2], [1, 4], [0, 0]]),
        ("exposure", False, [[2, 1], [1, 3], [0, 0]]),
        ("exposure", True, [[2, 2], [1, 3], [0, 0]]),
        ("exact", False, [[0, 2, 0, 2], [2, 2, 1, 0], [0, 0, 0, 0]]),
        ("exact", True, [[0, 2, 0, 2], [2, 2, 1, 0], [0, 0, 0, 0]]),
    ],
)
def test_evidence_and_its_clamp(name: str, clamp: bool, expected: list[list[float]]) -> None:
    matrix = ESTIMATORS[name].matrix(STATS, STATS.sums(CURVE), clamp=clamp)
    assert matrix.dtype == np.float64
    np.testing.assert_array_equal(matrix, expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ips", [2, 0.25, 0]), ("exposure", [2, 1 / 3, 0]), ("exact", [2, 1 / 3, 0])],
)
def test_the_rate_is_hits_over_trials_and_0_for_what_nobody_saw(
    name: str, expected: list[float]
) -> None:
    np.testing.assert_allclose(ESTIMATORS[name].rate(STATS.sums(CURVE)), expected)
