"""Special functions that work on NumPy arrays and inside compiled kernels alike.

`log_gamma` and `digamma` shift their argument up by eight and use Stirling's series there: no
branches, no tables, an error below 1e-12 of the value or of 1, whichever is larger (DLMF 5.11.1,
5.11.2 and the recurrences 5.5.1, 5.5.2 at dlmf.nist.gov).

>>> print(f"{digamma(1.0):.12f}")  # minus Euler's constant
-0.577215664902
>>> print(f"{log_gamma(5.0):.12f}")  # log 4!
3.178053830348
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Real = TypeVar("Real", float, npt.NDArray[np.float64])

HALF_LOG_TWO_PI = 0.9189385332046727
LOG_TWO = 0.6931471805599453
LOG2_E = 1.4426950408889634
ROUNDER = 1.5 * 2.0**52
"""What is added to a number to round it: the sum has no bits for a fraction."""
LOWEST_EXPONENT = -700.0


def log_gamma(x: Real) -> Real:
    """Return log Γ(x) for 0 < x < 1e38."""
    return log_gamma_and_digamma(x)[0]


def digamma(x: Real) -> Real:
    """Return ψ(x) = d log Γ(x)/dx for 0 < x < 1e38."""
    return log_gamma_and_digamma(x)[1]


def log_gamma_and_digamma(x: Real) -> tuple[Real, Real]:
    """Return both: they share what is costly."""
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


def exp_below_one(x: float) -> float:
    """Return exp(x) for a number x ≤ 0, to 11 digits; that of −700 below −700.

    Loops that call it use the processor's vector units, which the platform's exp does not: e^x is
    2^n·e^r with |r| ≤ ½ log 2, the first factor made of bits, the second a polynomial.

    >>> print(f"{exp_below_one(-1.0):.10f}")
    0.3678794412
    """
    y = max(x, LOWEST_EXPONENT) * LOG2_E
    rounded = y + ROUNDER
    r = (y - (rounded - ROUNDER)) * LOG_TWO
    n = np.float64(rounded).view(np.int64) + np.int64(1023)
    scale = np.int64(n << np.int64(52)).view(np.float64)
    value = 1.0 / 362880.0
    value = 1.0 / 40320.0 + r * value
    value = 1.0 / 5040.0 + r * value
    value = 1.0 / 720.0 + r * value
    value = 1.0 / 120.0 + r * value
    value = 1.0 / 24.0 + r * value
    value = 1.0 / 6.0 + r * value
    value = 0.5 + r * value
    value = 1.0 + r * value
    return (1.0 + r * value) * scale


def beta_quantile(a: Real, b: Real, probability: float) -> Real:
    """Return the value below which a Beta(a, b) variable lies with this probability.

    This is SciPy's `betaincinv`, which kernels cannot call.

    >>> print(f"{beta_quantile(1.0, 1.0, 0.05):.4f}")
    0.0500
    """
    from scipy.special import betaincinv  # SciPy takes a while to import

    return betaincinv(a, b, probability)  # type: ignore[return-value]
