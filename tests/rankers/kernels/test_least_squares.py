from __future__ import annotations

import numpy as np

from ebrank.rankers.kernels import least_squares


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
