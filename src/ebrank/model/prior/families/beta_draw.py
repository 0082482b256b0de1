"""Draws from a Beta posterior, each addressed by its key."""

from __future__ import annotations

import numpy as np

from ebrank.kernels import streams
from ebrank.kernels.compiled import kernel

TINY = 1e-300


def posterior_draw(
    alpha: float, beta: float, clicks: float, exposure: float, key: np.uint64
) -> float:
    """Return a draw from the proper posterior Beta(c + α, max(E − c, 0) + β)."""
    hits = gamma(streams.child(key, 0), clicks + alpha)
    misses = gamma(streams.child(key, 1), max(exposure - clicks, 0.0) + beta)
    return hits / max(hits + misses, TINY)  # both may underflow if α and β are tiny


@kernel
def gamma(key: np.uint64, shape: float) -> float:
    """Return the key's Gamma(shape, 1) number, by Marsaglia and Tsang's rejection (2000).

    A shape under 1 is drawn as Gamma(shape + 1)·U^(1/shape).
    """
    boosted = shape if shape >= 1.0 else shape + 1.0
    d = boosted - 1.0 / 3.0
    width = 1.0 / np.sqrt(9.0 * d)
    cube = 0.0
    draw = 1
    while cube <= 0.0:
        x = streams.normal(streams.child(key, draw))
        u = streams.open_uniform(streams.child(key, draw + 1))
        cube = (1.0 + width * x) ** 3
        if cube > 0.0 and np.log(u) >= 0.5 * x * x + d - d * cube + d * np.log(cube):
            cube = 0.0  # rejected
        draw += 2
    if shape >= 1.0:
        return d * cube
    return float(d * cube * streams.open_uniform(streams.child(key, 0)) ** (1.0 / shape))
