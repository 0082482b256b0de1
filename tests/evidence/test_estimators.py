from __future__ import annotations

import numpy as np
import pytest

from ebrank import BehaviorStats, Examination
from ebrank.evidence import Sums
from ebrank.evidence.estimators import ESTIMATORS, EXACT, EXPOSURE, IPS, Estimator

STATS = BehaviorStats.zeros(2)
SUMS = Sums(
    shown=np.array([2.0, 4.0]),
    clicks=np.array([2.0, 1.0]),
    weighted_clicks=np.array([4.6, 1.0]),
    exposure=np.array([0.9, 3.0]),
)


@pytest.mark.parametrize(
    ("estimator", "clamp", "expected"),
    [
        (IPS, False, [[4.6, 2], [1.0, 4]]),
        (IPS, True, [[2.0, 2], [1.0, 4]]),
        (EXPOSURE, False, [[2, 0.9], [1, 3.0]]),
        (EXPOSURE, True, [[2, 2.0], [1, 3.0]]),
    ],
)
def test_evidence_of_hits_and_trials_and_its_clamp(
    estimator: Estimator, clamp: bool, expected: list[list[float]]
) -> None:
    np.testing.assert_allclose(estimator.matrix(STATS, SUMS, clamp=clamp), expected)


def test_exact_evidence_is_the_counts_themselves() -> None:
    stats = BehaviorStats.of(shown=[[5, 2], [0, 3]], clicks=[[1, 0], [0, 3]])
    rows = EXACT.matrix(stats, stats.sums(Examination()))
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows, [[5, 2, 1, 0], [0, 3, 0, 3]])


def test_the_rate_is_hits_over_trials_and_0_where_nobody_looked() -> None:
    unseen = Sums(*(np.append(values, 0.0) for values in SUMS))
    np.testing.assert_allclose(IPS.rate(unseen), [2.3, 0.25, 0.0])
    for estimator in (EXPOSURE, EXACT):
        np.testing.assert_allclose(estimator.rate(unseen), [2 / 0.9, 1 / 3, 0.0])


def test_estimators_go_by_their_names() -> None:
    assert {name: estimator.name for name, estimator in ESTIMATORS.items()} == {
        "ips": "ips",
        "exposure": "exposure",
        "exact": "exact",
    }
