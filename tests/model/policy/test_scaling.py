from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ebrank.errors import ParameterError
from ebrank.kernels.min_max import query_min_max
from ebrank.model.policy.scaling import Scaling

FINITE = st.floats(-(2.0**100), 2.0**100, width=32)
MATRICES = hnp.arrays(np.float32, st.tuples(st.integers(1, 8), st.just(3)), elements=FINITE)


@given(MATRICES)
def test_within_a_query_it_is_the_labs_function(features: np.ndarray) -> None:
    scaled = Scaling("query")(features)
    np.testing.assert_array_equal(scaled, query_min_max(features, [0, len(features)]))


@given(MATRICES, MATRICES)
def test_global_ranges_are_those_of_the_rows_learned_from(
    rows: np.ndarray, others: np.ndarray
) -> None:
    scaling = Scaling.learn("global", rows)
    same = scaling(rows)
    varying = rows.min(axis=0) < rows.max(axis=0)
    np.testing.assert_array_equal(same.max(axis=0), varying.astype(np.float32))
    assert not same.min(axis=0).any()
    assert scaling(others).min() >= 0.0
    assert scaling(others).max() <= 1.0


def test_several_queries_are_scaled_each_by_itself() -> None:
    rows = np.array([[1], [3], [10], [20]], dtype=np.float32)
    np.testing.assert_array_equal(Scaling("query")(rows, [0, 2, 4]).ravel(), [0, 1, 0, 1])


def test_none_and_no_rows_change_nothing() -> None:
    rows = np.array([[np.nan, 7]], dtype=np.float32)
    assert Scaling()(rows) is rows
    assert Scaling("query")(rows[:0]).shape == (0, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("minmax",),
        ("query", (0.0,), (1.0,)),
        ("global",),
        ("global", (0.0,), None),
        ("global", (0.0, 1.0), (1.0,)),
        ("global", (2.0,), (1.0,)),
        ("global", (float("nan"),), (1.0,)),
        ("global", ("0",), (1.0,)),
    ],
)
def test_invalid_scalings_are_rejected(arguments: tuple[object, ...]) -> None:
    with pytest.raises(ParameterError):
        Scaling(*arguments)  # type: ignore[arg-type]


def test_ranges_of_other_features_are_refused() -> None:
    with pytest.raises(ParameterError, match="of 1 features, not 2"):
        Scaling("global", (0.0,), (1.0,))(np.zeros((1, 2), np.float32))
    with pytest.raises(ParameterError, match="needs rows"):
        Scaling.learn("global", np.zeros((0, 2), np.float32))
