"""Small dense linear algebra whose bits never depend on how many threads a BLAS library uses.

LAPACK's results change in the last digits with its number of threads, and an optimizer turns these
into different iterates. These kernels take a millisecond at the sizes of linear rankers.
"""

from __future__ import annotations

import numpy as np

from ebrank.kernels.compiled import kernel
from ebrank.typing import Floats


@kernel
def cholesky(a: Floats) -> Floats:
    """Return the lower triangle L with L Lᵀ = a, for a symmetric positive definite `a`.

    Only the lower triangle of `a` is read. If rounding leaves a pivot that is not positive, because
    columns are collinear, it is replaced by the largest diagonal element times 1e-14.
    """
    n = len(a)
    lower = np.zeros((n, n))
    largest = 1e-300
    for i in range(n):
        largest = max(largest, a[i, i])
    for i in range(n):
        for j in range(i + 1):
            rest = a[i, j]
            for k in range(j):
                rest -= lower[i, k] * lower[j, k]
            if i == j:
                lower[i, i] = np.sqrt(max(rest, 1e-14 * largest))
            else:
                lower[i, j] = rest / lower[j, j]
    return lower


@kernel
def solve_lower(lower: Floats, b: Floats) -> Floats:
    """Return x with L x = b."""
    x = b.copy()
    for i in range(len(b)):
        for j in range(i):
            x[i] -= lower[i, j] * x[j]
        x[i] /= lower[i, i]
    return x


@kernel
def solve_lower_transposed(lower: Floats, b: Floats) -> Floats:
    """Return x with Lᵀ x = b."""
    x = b.copy()
    for i in range(len(b) - 1, -1, -1):
        x[i] /= lower[i, i]
        for j in range(i):
            x[j] -= lower[i, j] * x[i]
    return x
