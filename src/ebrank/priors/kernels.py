"""The family's loss of rows, compiled; the loss itself is passed by its address."""

from __future__ import annotations

import numpy as np

from ebrank.kernels.compiled import inner, kernel
from ebrank.kernels.pointers import call_at, pointer_to
from ebrank.priors.rows import LossTask
from ebrank.typing import Floats


@inner
def evaluate(task: LossTask, row: int, score: float, out: Floats) -> None:
    """Write the loss of a row's score, and its slope by the score."""
    evidence, table = pointer_to(task.evidence, row), pointer_to(task.table, 0)
    numbers, result = pointer_to(task.parameters, 0), pointer_to(out, 0)
    call_at(task.loss, (score, evidence, task.slots, task.behaviors, table, numbers, result))


@kernel
def write_losses(
    task: LossTask, scores: Floats, start: int, stop: int, losses: Floats, slopes: Floats
) -> None:
    """Write the loss and the slope of each included row among start..stop."""
    out = np.empty(2)
    for i in range(start, stop):
        if task.included[i]:
            evaluate(task, i, scores[i], out)
            losses[i] = out[0]
            slopes[i] = out[1]
