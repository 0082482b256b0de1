"""How the linear prior finds its weights: quasi-Newton steps in whitened coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ebrank import linalg
from ebrank.arrays import read_only
from ebrank.behavior import BehaviorStats
from ebrank.errors import ParameterError
from ebrank.priors import linear_kernel
from ebrank.priors.base import check_rows
from ebrank.priors.objective import BLOCK, Objective
from ebrank.threads import map_blocks, one_blas_thread
from ebrank.typing import Features, Floats

if TYPE_CHECKING:
    from ebrank.priors.linear import LinearPrior


class Fitted(NamedTuple):
    """Outcome of a fit: θ (weights, intercept last), iterations, validation loss if any."""

    theta: Floats
    iterations: int
    validation_loss: float | None


def objective(prior: LinearPrior, features: Features, behavior: BehaviorStats) -> Objective:
    """Return the loss of `prior` on these rows, which must be finite and equal in number."""
    check_rows(features, behavior)
    clicks, trials = behavior.evidence(prior.estimator, prior.clamp)
    included = behavior.shown > prior.min_impressions
    return Objective(
        read_only(features),
        read_only(clicks),
        read_only(trials),
        read_only(included),
        float(prior.beta),
        float(prior.l2),
        prior.threads,
    )


def scores(features: Features, theta: Floats, threads: int | None) -> Floats:
    """Return the linear score of every row."""
    out = np.empty(len(features))
    matrix = read_only(features)
    map_blocks(
        lambda start, stop: linear_kernel.write_scores(matrix, theta, start, stop, out),
        total=len(features),
        block=BLOCK,
        threads=threads,
    )
    if not np.all(np.isfinite(out)):
        row = int(np.flatnonzero(~np.isfinite(out))[0])
        raise ParameterError(f"row {row} of the features holds a number that is not finite")
    return out


def minimize(
    prior: LinearPrior, train: Objective, check: Objective | None, start: Floats
) -> Fitted:
    """Return the θ that minimizes the training loss, or the validation loss on the way there."""
    from scipy import optimize  # takes a while to import, and a server never needs it

    if train.n_rows == 0:
        return Fitted(start, 0, None)
    lower = train.metric(start)

    def theta_at(u: Floats) -> Floats:
        return start + linalg.solve_lower_transposed(lower, u)

    def whitened(u: Floats) -> tuple[float, Floats]:
        value, gradient = train.value_and_gradient(theta_at(u))
        if not np.isfinite(value):
            raise ParameterError("the features hold a number that is not finite, or overflow")
        return value, linalg.solve_lower(lower, gradient)

    watch = None
    if check is not None and check.n_rows > 0:
        watch = _Watch(check, start, prior.patience)
    with one_blas_thread:
        result = optimize.minimize(
            whitened,
            np.zeros(len(start)),
            jac=True,
            method="L-BFGS-B",
            callback=None if watch is None else lambda u: watch.see(theta_at(u)),
            options={
                "maxiter": prior.max_iterations,
                "gtol": prior.tolerance,
                "ftol": 1e-15,
                "maxcor": 20,
            },
        )
    if watch is None:
        return Fitted(theta_at(result.x), int(result.nit), None)
    if result.nit == 0:  # the start is the optimum, and the only candidate
        watch.see(start)
    return Fitted(watch.best, int(result.nit), watch.loss)


class _Watch:
    """Follows the validation loss and remembers where it was lowest."""

    def __init__(self, check: Objective, start: Floats, patience: int) -> None:
        self._check = check
        self._patience = patience
        self._waited = 0
        self.best = start
        self.loss = np.inf  # the start is no candidate: a warm one would rather stay as it is

    def see(self, theta: Floats) -> None:
        """Look at one iterate; stop the optimizer when patience is used up."""
        loss = self._loss(theta)
        if loss < self.loss:
            self.loss, self.best, self._waited = loss, theta, 0
            return
        self._waited += 1
        if self._waited >= self._patience:
            raise StopIteration

    def _loss(self, theta: Floats) -> float:
        loss = self._check.loss(theta)
        if not np.isfinite(loss):
            raise ParameterError("the validation features hold a number that is not finite")
        return loss
