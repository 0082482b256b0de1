"""The family's loss over many rows, compiled; the loss itself is passed by its address."""

from __future__ import annotations

import numpy as np

from ebrank.kernels.compiled import kernel
from ebrank.kernels.pointers import call_at, pointer_to
from ebrank.typing import Bools, Floats, Ints


@kernel
def write_losses(
    evidence: Floats,
    included: Bools,
    loss: int,
    table: Ints,
    slots: int,
    behaviors: int,
    parameters: Floats,
    scores: Floats,
    start: int,
    stop: int,
    losses: Floats,
    slopes: Floats,
) -> None:
    """Write the loss and the slope of each included row among start..stop."""
    out = np.empty(2)
    shared = pointer_to(table, 0), pointer_to(parameters, 0), pointer_to(out, 0)
    for i in range(start, stop):
        if included[i]:
            call_at(loss, (scores[i], pointer_to(evidence, i), slots, behaviors, *shared))
            losses[i] = out[0]
            slopes[i] = out[1]
