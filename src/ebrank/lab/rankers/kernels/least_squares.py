"""Sums of products over the rows of a float32 feature matrix, for least squares, compiled.

Rows are read in place: nothing is gathered, and only a few rows at a time become float64.
"""

from __future__ import annotations

import numpy as np

from ebrank.kernels.compiled import kernel
from ebrank.typing import Features, Floats, Ints

TOGETHER = 8  # rows per pass over the Gram matrix: each sum is loaded and stored once for all


@kernel
def gram_sum(features: Features, rows: Ints, weights: Floats, start: int, stop: int) -> Floats:
    """Return Σ ω z zᵀ with z = (x, 1), lower triangle, over rows[start:stop] and their ω."""
    n_features = features.shape[1]
    total = np.zeros((n_features + 1, n_features + 1))
    z = np.zeros((TOGETHER, n_features + 1))
    for first in range(start, stop, TOGETHER):
        for r in range(min(TOGETHER, stop - first)):
            for j in range(n_features):
                z[r, j] = features[rows[first + r], j]
            z[r, n_features] = 1.0
        add_outer_products(total, z, weights[first : min(first + TOGETHER, stop)])
    return total


@kernel
def add_outer_products(total: Floats, z: Floats, weights: Floats) -> None:
    """Add Σ_r ω_r z_r z_rᵀ to the lower triangle."""
    scale = np.zeros(TOGETHER)  # rows missing from the last group add nothing
    for i in range(len(total)):
        for r in range(len(weights)):
            scale[r] = weights[r] * z[r, i]
        for j in range(i + 1):
            product = 0.0
            for r in range(TOGETHER):
                product += scale[r] * z[r, j]
            total[i, j] += product


@kernel
def side_sums(
    features: Features,
    rows: Ints,
    weights: Floats,
    behavior: Floats,
    target: Floats,
    start: int,
    stop: int,
) -> Floats:
    """Return Σ ω x^b (x, 1, x^b) and Σ ω y (x, 1, x^b) over rows[start:stop], as two rows."""
    n_features = features.shape[1]
    sums = np.zeros((2, n_features + 2))
    for i in range(start, stop):
        row, xb = rows[i], behavior[i]
        s, t = weights[i] * xb, weights[i] * target[i]
        for j in range(n_features):
            x = np.float64(features[row, j])
            sums[0, j] += s * x
            sums[1, j] += t * x
        sums[0, n_features] += s
        sums[1, n_features] += t
        sums[0, n_features + 1] += s * xb
        sums[1, n_features + 1] += t * xb
    return sums


@kernel
def write_widths(
    features: Features, inverse: Floats, start: int, stop: int, widths: Floats
) -> None:
    """Write |M z| with z = (x, 1) for the rows start..stop; `inverse` is M, a lower triangle."""
    n = features.shape[1]
    z = np.ones(n + 1)
    for row in range(start, stop):
        for j in range(n):
            z[j] = features[row, j]
        total = 0.0
        for i in range(n + 1):
            product = 0.0
            for j in range(i + 1):
                product += inverse[i, j] * z[j]
            total += product * product
        widths[row] = np.sqrt(total)
