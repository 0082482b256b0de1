"""Special functions for NumPy arrays and compiled kernels.

log Γ and ψ shift their argument up by eight and use Stirling's series there: no branches, no
tables, an error below 1e-12 of the value or of 1, whichever is larger (DLMF 5.11.1, 5.11.2 and the
recurrences 5.5.1, 5.5.2 at dlmf.nist.gov).

>>> print(f"{log_gamma_and_digamma(1.0)[1]:.12f}")  # minus Euler's constant
-0.577215664902
>>> print(f"{log_gamma(5.0):.12f}")  # log 4!
3.178053830348
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ebrank.kernels.registry import register

Real = TypeVar("Real", float, npt.NDArray[np.float64])

HALF_LOG_TWO_PI = 0.9189385332046727
LOG_2 = 0.6931471805599453

_FRACTION = np.int64(52)
"""Bits of the fraction of a float64."""
_BITS_OF_ROOT = np.int64(0x3FE6A09E667F3BCD)
"""The bits of √½."""


def log(x: Real) -> Real:
    """Return log x for normal numbers x > 0, to 1e-15 of the value or of 1.

    Kernels inline it and compute several at once, which they cannot do with the platform's own.
    log x = e·log 2 + log m with √½ ≤ m < √2, and log m = 2·artanh((m − 1)/(m + 1)).

    >>> print(f"{log(10.0):.12f}")
    2.302585092994
    """
    bits = np.float64(x).view(np.int64)
    exponent = (bits - _BITS_OF_ROOT) >> _FRACTION
    m: Real = np.int64(bits - (exponent << _FRACTION)).view(np.float64)  # type: ignore[assignment]
    z = (m - 1.0) / (m + 1.0)
    w = z * z
    low, high = 1 / 3 + w * (1 / 5), 1 / 11 + w * (1 / 13)
    middle, highest = 1 / 7 + w * (1 / 9), 1 / 15 + w * (1 / 17)
    series = low + w * w * (middle + w * w * (high + w * w * highest))
    return exponent * LOG_2 + 2.0 * (z + z * w * series)


def log_gamma(x: Real) -> Real:
    """Return log Γ(x) for 0 < x < 1e38."""
    return log_gamma_and_digamma(x)[0]


def log_gamma_and_digamma(x: Real) -> tuple[Real, Real]:
    """Return log Γ(x) and ψ(x) = d log Γ(x)/dx, which share the costly parts."""
    shifted, slope, steps = shifted_log_gamma(x)
    return shifted - np.log(steps), slope


def shifted_log_gamma(x: Real) -> tuple[Real, Real, Real]:
    """Return log Γ(x + 8), ψ(x), and the product x (x+1) ... (x+7) that the two log Γ differ by.

    A sum of several log Γ needs the logarithm of just one product.
    """
    y = x + 8.0
    log_y = np.log(y)
    inverse = 1.0 / y
    z = inverse * inverse
    series = inverse * (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z / 1188))))
    series_slope = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z / 132))))
    s = x * (x + 7.0)
    steps = s * (s + 6.0) * (s + 10.0) * (s + 12.0)
    steps_slope = (2.0 * x + 7.0) * (((4.0 * s + 84.0) * s + 504.0) * s + 720.0)
    value = (y - 0.5) * log_y - y + HALF_LOG_TWO_PI + series
    return value, log_y - 0.5 * inverse - series_slope - steps_slope / steps, steps


register(__name__)
