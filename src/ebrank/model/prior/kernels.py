"""The family's loss of rows, compiled; the loss itself is passed by its address."""

from __future__ import annotations

import numpy as np

from ebrank.kernels.compiled import inner, kernel
from ebrank.kernels.pointers import call_at, pointer_to
from ebrank.model.prior.rows import LossTask
from ebrank.typing import Floats, SmallInts

WIDTH = 1.0
"""Variance of u + e that keeps the mode of a likelihood finite, in squared logits."""
OWN_VARIANCE = 0.25
"""σ², the variance of a query's own share of an item's effect."""
STEPS, CLOSE = 30, 1e-6


@inner
def evaluate(task: LossTask, row: int, score: float, out: Floats) -> None:
    """Write the loss of a row's score plus its offset, and its slope by the score."""
    score += task.offsets[min(row, len(task.offsets) - 1)]
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


@kernel
def write_messages(
    mean: Floats, clicks: Floats, exposure: Floats, units: float, out: SmallInts
) -> None:
    """Write what each row says about its item (see `ebrank.model.prior.item_effects`).

    The mode of c·log R + (E − c)·log(1 − R) − θ²/(2·WIDTH), with logit R = logit(mean) + θ, by
    Newton's steps of at most 1.
    """
    for i in range(len(mean)):
        c, trials = clicks[i], max(exposure[i], clicks[i])
        if trials == 0.0:
            out[i] = 0
            continue
        center = np.log(mean[i]) - np.log1p(-mean[i])
        theta, relevance = 0.0, mean[i]
        for _ in range(STEPS):
            slope = c - trials * relevance - theta / WIDTH
            step = slope / (trials * relevance * (1.0 - relevance) + 1.0 / WIDTH)
            theta += min(max(step, -1.0), 1.0)
            relevance = 1.0 / (1.0 + np.exp(-center - theta))
            if abs(step) < CLOSE:
                break
        precision = trials * relevance * (1.0 - relevance)
        pull = precision * theta + c - trials * relevance
        share = units / (1.0 + precision * OWN_VARIANCE)
        out[i, 0] = round(pull * share)
        out[i, 1] = max(round(precision * share), 1)  # which also says that it was shown
