from __future__ import annotations

import numpy as np
import pytest

from ebrank.kernels import linalg


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_factor_and_solves_agree_with_lapack(size: int) -> None:
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size + 3, size))
    matrix = root.T @ root
    vector = rng.normal(size=size)
    lower = linalg.cholesky(matrix)
    np.testing.assert_allclose(lower, np.linalg.cholesky(matrix), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(lower @ linalg.solve_lower(lower, vector), vector, atol=1e-8)
    np.testing.assert_allclose(
        lower.T @ linalg.solve_lower_transposed(lower, vector), vector, atol=1e-8
    )


def test_only_the_lower_triangle_is_read() -> None:
    matrix = np.array([[4.0, 99.0], [2.0, 3.0]])
    np.testing.assert_allclose(linalg.cholesky(matrix), [[2.0, 0.0], [1.0, np.sqrt(2.0)]])


def test_collinear_columns_still_give_a_finite_factor() -> None:
    lower = linalg.cholesky(np.ones((3, 3)))
    assert np.all(np.isfinite(lower))
    assert np.all(np.diag(lower) > 0)
