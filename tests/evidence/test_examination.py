from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import Examination, ParameterError


@given(st.floats(0, 4), st.integers(1, 20))
def test_probabilities_fall_with_rank_and_end_at_the_cutoff(severity: float, cutoff: int) -> None:
    p = Examination(severity, cutoff)(np.arange(1, 41))
    assert np.all(np.diff(p) <= 0)
    assert np.all((p >= 0) & (p <= 1))
    assert np.count_nonzero(p) == cutoff


def test_a_measured_curve_is_used_as_it_is() -> None:
    curve = Examination(curve=(1.0, 0.4, 0.7))
    np.testing.assert_array_equal(curve([3, 1, 2, 4, 99]), [0.7, 1.0, 0.4, 0.0, 0.0])
    np.testing.assert_array_equal(Examination(curve=(1.0, 0.4), cutoff=1)([1, 2]), [1.0, 0.0])


@pytest.mark.parametrize(
    "bad",
    [
        *({"severity": -1.0}, {"severity": float("nan")}, {"cutoff": 0}),
        *({"curve": curve} for curve in ((), (0.5, 1.5), (float("nan"),), 5, ("a",), (0.0, 0.0))),
        *({"curve": (1.0, 0.5), "severity": 2.0}, {"curve": (0.0, 0.5), "cutoff": 1}),
    ],
)
def test_what_is_no_curve_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Examination(**bad)


def test_ranks_are_counted_from_one() -> None:
    for curve in (Examination(), Examination(curve=(1.0,))):
        with pytest.raises(ParameterError, match="from 1"):
            curve([1, 0])
