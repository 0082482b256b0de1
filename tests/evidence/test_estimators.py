from __future__ import annotations

import numpy as np
import pytest

from ebrank import BehaviorStats, Examination
from ebrank.evidence.estimators import ESTIMATORS

CURVE = Examination(curve=(1.0, 0.5))
STATS = BehaviorStats.of(shown=[[0, 2], [2, 2], [0, 0]], clicks=[[0, 2], [1, 0], [0, 0]])
# n, c, C, E: 2, 2, 4, 1 and 4, 1, 1, 3


@pytest.mark.parametrize(
    ("name", "evidence", "rates"),
    [
        ("ips", [[4, 2], [1, 4], [0, 0]], [2, 0.25, 0]),
        ("exposure", [[2, 1], [1, 3], [0, 0]], [2, 1 / 3, 0]),
        ("exact", [[0, 2, 0, 2], [2, 2, 1, 0], [0, 0, 0, 0]], [2, 1 / 3, 0]),
    ],
)
def test_evidence_and_the_rate_of_hits_which_is_0_for_what_nobody_saw(
    name: str, evidence: list[list[float]], rates: list[float]
) -> None:
    estimator, sums = ESTIMATORS[name], STATS.sums(CURVE)
    matrix = estimator.matrix(STATS, sums)
    assert matrix.dtype == np.float64
    np.testing.assert_array_equal(matrix, evidence)
    np.testing.assert_allclose(estimator.rate(sums), rates)
