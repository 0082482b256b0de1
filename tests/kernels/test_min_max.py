"""Per-query min–max against a slow computation, its invariances, and its extremes."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ebrank.errors import DataError
from ebrank.kernels.min_max import query_min_max
from ebrank.lab.data.varying import varying_features

Float32Array = npt.NDArray[np.float32]

values = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def ragged(
    draw: st.DrawFn, elements: st.SearchStrategy[float] = values
) -> tuple[Float32Array, list[int]]:
    """Features of a few queries, and their pointers."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    shape = (sum(sizes), draw(st.integers(1, 4)))
    features = draw(hnp.arrays(np.float32, shape, elements=elements))
    return features, [0, *np.cumsum(sizes).tolist()]


def slow_min_max(features: Float32Array, pointers: list[int]) -> Float32Array:
    """The definition in exact arithmetic, rounded once to double and once to single."""
    scaled = np.zeros_like(features)
    for start, stop in pairwise(pointers):
        for column in range(features.shape[1]):
            exact = [Fraction(float(value)) for value in features[start:stop, column]]
            low, span = min(exact), max(exact) - min(exact)
            for row, value in enumerate(exact, start):
                scaled[row, column] = float((value - low) / span) if span else 0.0
    return scaled


@given(ragged())
def test_agrees_with_exact_arithmetic(data: tuple[Float32Array, list[int]]) -> None:
    features, pointers = data
    scaled = query_min_max(features, pointers)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, slow_min_max(features, pointers), rtol=1e-6, atol=1e-44)


@given(ragged())
def test_varying_features_are_those_not_constant_once_scaled(
    data: tuple[Float32Array, list[int]],
) -> None:
    features, pointers = data
    expected = np.any(query_min_max(features, pointers) != 0, axis=0)
    np.testing.assert_array_equal(varying_features(features, pointers), expected)


def test_chosen_queries_and_columns_are_a_part_of_the_whole() -> None:
    features = np.random.default_rng(5).random((1000, 7), dtype=np.float32)
    pointers = np.arange(0, 1001, 5)
    queries, columns = [3, 4, 190, 7], [6, 0, 2]
    rows = np.concatenate([np.arange(pointers[q], pointers[q + 1]) for q in queries])
    np.testing.assert_array_equal(
        query_min_max(features, pointers, queries=queries, columns=columns),
        query_min_max(features, pointers)[rows][:, columns],
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    features = np.ones((4, 2), dtype=np.float32)
    features[2, 1] = bad
    with pytest.raises(DataError, match="row 2 has a feature that is not a finite number"):
        query_min_max(features, [0, 2, 4])
