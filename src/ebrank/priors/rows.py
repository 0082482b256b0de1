"""Rows to fit a learner on: features, what users did with each, and the family's loss of a score.

Work is split into blocks, each summed by one thread, so the number of threads never changes a
result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ebrank.arrays import read_only
from ebrank.priors.base import State
from ebrank.threads import map_blocks
from ebrank.typing import Bools, Features, Floats, Ints

BLOCK = 8192  # rows per task: small enough to share evenly, large enough to hide the overhead

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of features with evidence, and the loss that says how well a score explains it.

    Attributes:
        features: float32, shape (rows, features).
        evidence: a row of numbers per item, as the policy's evidence lays them out.
        included: which rows count.
        loss: the compiled loss (see `ebrank.formula.COUNTS_LOSS`).
        table: what counts are worth, for losses that read counts; with slots and behaviors.
        parameters: of the loss, followed by what the model learned.
        learned: where the latter begins.
        threads: cores to use, None for all; never changes a result.
    """

    features: Features
    evidence: Floats
    included: Bools
    loss: Any
    table: Ints
    slots: int
    behaviors: int
    parameters: Floats
    learned: int = 0
    threads: int | None = None

    @cached_property
    def count(self) -> int:
        """Number of included rows."""
        return int(np.count_nonzero(self.included))

    def losses_and_slopes(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the loss of each row's score and its slope by the score; 0 where not included.

        This is all that your own learner needs.
        """
        from ebrank.priors import kernels

        losses, slopes = np.zeros((2, len(scores)))
        self.blocks(
            lambda start, stop: kernels.write_losses(
                *self.task, scores, start, stop, losses, slopes
            )
        )
        return losses, slopes

    def subset(self, chosen: Bools) -> Rows:
        """Return the same rows with only the chosen ones included."""
        return replace(self, included=read_only(self.included & chosen))

    @property
    def task(self) -> tuple[Floats, Bools, int, Ints, int, int, Floats]:
        """What kernels need to compute losses; the loss, passed by address, must outlive them."""
        return (
            self.evidence,
            self.included,
            self.loss.address,
            self.table,
            self.slots,
            self.behaviors,
            self.parameters,
        )

    def blocks(self, work: Callable[[int, int], T]) -> list[T]:
        """Return `work(start, stop)` for all blocks of rows, in order."""
        return map_blocks(work, total=len(self.features), block=BLOCK, threads=self.threads)


def number(state: State, name: str) -> float:
    """Return a single number of a state."""
    return float(state[name].reshape(-1)[0])
