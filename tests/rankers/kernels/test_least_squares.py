from __future__ import annotations

import numpy as np
import pytest

from ebrank.rankers.kernels import least_squares


@pytest.mark.parametrize("n_rows", [0, 1, 7, 8, 9, 100])
@pytest.mark.parametrize("n_features", [1, 3, 40])
def test_gram_is_the_weighted_sum_of_outer_products(n_rows: int, n_features: int) -> None:
    rng = np.random.default_rng(n_rows)
    features = rng.normal(size=(150, n_features)).astype(np.float32)
    rows = rng.choice(150, n_rows, replace=False)
    weights = rng.integers(1, 9, n_rows).astype(np.float64)
    gram = least_squares.gram_sum(features, rows, weights, 0, n_rows)
    z = np.column_stack([features[rows].astype(np.float64), np.ones(n_rows)])
    np.testing.assert_allclose(gram, np.tril(z.T @ (weights[:, None] * z)), atol=1e-10)


def test_gram_adds_the_rows_from_start_to_stop() -> None:
    rng = np.random.default_rng(5)
    features = rng.random((60, 4), dtype=np.float32)
    rows, weights = rng.permutation(60), rng.random(60)
    parts = [least_squares.gram_sum(features, rows, weights, *pair) for pair in [(0, 13), (13, 60)]]
    whole = least_squares.gram_sum(features, rows, weights, 0, 60)
    np.testing.assert_allclose(parts[0] + parts[1], whole, rtol=1e-12)


def test_side_sums_are_products_with_behavior_and_target() -> None:
    rng = np.random.default_rng(6)
    features = rng.random((50, 6), dtype=np.float32)
    rows = rng.choice(50, 30, replace=False)
    weights, behavior, target = rng.random((3, 30))
    sums = least_squares.side_sums(features, rows, weights, behavior, target, 4, 25)
    z = np.column_stack([features[rows].astype(np.float64), np.ones(30), behavior])[4:25]
    np.testing.assert_allclose(sums[0], (weights * behavior)[4:25] @ z, rtol=1e-12)
    np.testing.assert_allclose(sums[1], (weights * target)[4:25] @ z, rtol=1e-12)


def test_sums_are_not_rounded_to_single_precision() -> None:
    features = np.full((100_000, 1), 0.1, np.float32)
    rows, ones = np.arange(100_000), np.ones(100_000)
    x = float(np.float32(0.1))
    gram = least_squares.gram_sum(features, rows, ones, 0, 100_000)
    sums = least_squares.side_sums(features, rows, ones, ones, ones, 0, 100_000)
    np.testing.assert_allclose(gram[0, 0], 100_000 * x * x, rtol=1e-11)
    np.testing.assert_allclose(sums[:, 0], 100_000 * x, rtol=1e-11)


def test_widths_are_norms_of_the_transformed_rows() -> None:
    rng = np.random.default_rng(7)
    features = rng.random((30, 6), dtype=np.float32)
    triangle = np.tril(rng.normal(size=(7, 7)))
    widths = np.full(30, -1.0)
    least_squares.write_widths(features, triangle, 4, 25, widths)
    z = np.column_stack([features.astype(np.float64), np.ones(30)])
    expected = np.linalg.norm(z @ triangle.T, axis=1)
    np.testing.assert_allclose(widths[4:25], expected[4:25], rtol=1e-12)
    assert set(widths[:4]) == set(widths[25:]) == {-1.0}
