"""The linear prior's training loss over a set of rows, summed in blocks on all cores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebrank import linalg
from ebrank.priors import linear_kernel
from ebrank.threads import map_blocks
from ebrank.typing import Floats

BLOCK = 8192  # rows per task: small enough to share out evenly, large enough to forget the overhead
CURVATURE_ROWS = 16_384
CURVATURE_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class Objective:
    """Mean loss of the included rows plus l2/2 · |weights|², as a function of θ."""

    features: npt.NDArray[np.float32]
    clicks: Floats
    trials: Floats
    included: npt.NDArray[np.bool_]
    beta: float
    l2: float
    threads: int | None

    @property
    def n_rows(self) -> int:
        """Number of included rows."""
        return int(np.count_nonzero(self.included))

    def loss(self, theta: Floats) -> float:
        """Return the mean loss without the penalty."""
        sums = map_blocks(
            lambda start, stop: linear_kernel.loss_sum(*self._data(theta), start, stop),
            total=len(self.features),
            block=BLOCK,
            threads=self.threads,
        )
        return sum(sums) / self.n_rows

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the penalized mean loss and its gradient in one pass over the features."""
        sums = map_blocks(
            lambda start, stop: linear_kernel.loss_and_gradient_sum(
                *self._data(theta), start, stop
            ),
            total=len(self.features),
            block=BLOCK,
            threads=self.threads,
        )
        n_rows = self.n_rows
        penalty = self._penalty(theta)
        value = sum(loss for loss, _ in sums) / n_rows + 0.5 * float(penalty @ theta)
        gradient = np.add.reduce([part for _, part in sums]) / n_rows + penalty
        return value, gradient

    def metric(self, theta: Floats) -> Floats:
        """Return L with L Lᵀ ≈ the second derivative at θ, from an even sample of rows.

        In the coordinates u = Lᵀθ the loss bends about equally in every direction, so that a
        quasi-Newton method needs a handful of passes over the features instead of hundreds. The
        sample only sets the speed: the optimum is that of all rows.
        """
        rows = np.flatnonzero(self.included)
        rows = rows[:: max(1, len(rows) // CURVATURE_ROWS)]
        parts = map_blocks(
            lambda start, stop: linear_kernel.curvature_sum(
                self.features, self.clicks, self.trials, rows, theta, self.beta, start, stop
            ),
            total=len(rows),
            block=CURVATURE_BLOCK,
            threads=self.threads,
        )
        curvature = np.add.reduce(parts) / len(rows)
        # the floor, relative to each feature's own scale, keeps directions that no sampled row
        # bends from looking infinitely easy
        floor = np.maximum(1e-6 * np.diagonal(curvature), 1e-12)
        return linalg.cholesky(curvature + np.diag(self.l2 + floor))

    def _penalty(self, theta: Floats) -> Floats:
        penalty = self.l2 * theta
        penalty[-1] = 0.0  # the intercept is free
        return penalty

    def _data(
        self, theta: Floats
    ) -> tuple[npt.NDArray[np.float32], Floats, Floats, npt.NDArray[np.bool_], Floats, float]:
        return self.features, self.clicks, self.trials, self.included, theta, self.beta
