"""Special functions that work on NumPy arrays and inside compiled kernels alike.

`log_gamma` and `digamma` shift their argument up by eight and use Stirling's series there: no
branches, no tables, an absolute error near 1e-14 for arguments of ordinary size (DLMF 5.11.1, 5.11.2
and the recurrences 5.5.1, 5.5.2 at dlmf.nist.gov).

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


def log_gamma(x: Real) -> Real:
    """Return log Γ(x) for x > 0."""
    y = x + 8.0
    z = 1.0 / (y * y)
    series = (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z / 1188)))) / y
    low = x * (x + 1.0) * (x + 2.0) * (x + 3.0)
    high = (x + 4.0) * (x + 5.0) * (x + 6.0) * (x + 7.0)
    return (y - 0.5) * np.log(y) - y + HALF_LOG_TWO_PI + series - np.log(low) - np.log(high)


def digamma(x: Real) -> Real:
    """Return ψ(x) = d log Γ(x)/dx for x > 0."""
    y = x + 8.0
    z = 1.0 / (y * y)
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z / 132))))
    # 1/x + 1/(x+7) = (2x+7)/(x(x+7)), and so on inwards: half the divisions
    s = x * (x + 7.0)
    pairs = 1.0 / s + 1.0 / (s + 6.0) + 1.0 / (s + 10.0) + 1.0 / (s + 12.0)
    return np.log(y) - 0.5 / y - series - (2.0 * x + 7.0) * pairs


def beta_quantile(a: Real, b: Real, probability: float) -> Real:
    """Return the value below which a Beta(a, b) variable lies with this probability.

    On arrays this is SciPy's `betaincinv`; kernels use the scalar search in `compiled`.

    >>> print(f"{beta_quantile(1.0, 1.0, 0.05):.4f}")
    0.0500
    """
    from scipy.special import betaincinv  # SciPy takes a while to import

    return betaincinv(a, b, probability)  # type: ignore[return-value]
