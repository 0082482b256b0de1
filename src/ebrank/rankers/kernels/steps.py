"""The learning rate of each step, in order of time."""

from __future__ import annotations

import numpy as np

from ebrank.compiled import kernel
from ebrank.typing import Bools, Floats


@kernel
def step_rates(stepped: Bools, rate: float, decay: float) -> Floats:
    """Return the rate of each session's step, 0 if it takes none; each step lowers the next.

    >>> step_rates(np.array([True, False, True, True]), 0.1, 0.5).tolist()
    [0.1, 0.0, 0.05, 0.025]
    """
    rates = np.zeros(len(stepped))
    for t in range(len(stepped)):
        if stepped[t]:
            rates[t] = rate
            rate *= decay
    return rates
