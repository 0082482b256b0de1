"""How fast the linear prior is refitted, and how much its whitened coordinates save."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from benchmarks.figure import Figure, best_seconds
from ebrank import BehaviorStats, LinearPrior
from ebrank.priors import training

ROWS, N_FEATURES = 2_000_000, 133
SLICE = 100_000  # rows given to the peers, which are slow


def figures() -> Iterator[Figure]:
    """Yield the prior's figures."""
    features, relevance, stats = world()
    more = stats.merge(sessions(relevance, 0.3, seed=2))
    prior = LinearPrior(warm_start=True)
    prior.fit(features[:1000], stats[:1000])  # compiles
    prior = LinearPrior(warm_start=True)
    cold = best_seconds(lambda: prior.fit(features, stats), repeats=1)
    learned = (prior.weights_, prior.intercept_)

    def refit() -> None:
        prior.weights_, prior.intercept_ = learned
        prior.fit(features, more)

    warm = best_seconds(refit)
    objective = training.objective(prior, features, more)
    theta = np.append(np.asarray(prior.weights_), prior.intercept_)
    one_pass = best_seconds(lambda: objective.value_and_gradient(theta))
    size = f"{ROWS / 1e6:.0f} M × {N_FEATURES}"
    yield Figure(
        f"refit on {size} rows from a warm start, 7 % new impressions, no subsampling",
        f"{warm:.2f} s ({warm / one_pass:.1f} passes over the matrix, {prior.iterations_} "
        f"iterations); a fit from scratch {cold / warm:.1f}× as long",
        "about 1 s",
        warm <= 1.25,
    )
    part, few = features[:SLICE], more[:SLICE]
    ours = best_seconds(lambda: LinearPrior().fit(part, few), repeats=2)
    theirs = best_seconds(lambda: scipy_fit(part, few), repeats=1)
    yield Figure(
        f"fit from scratch on {SLICE:,} rows against SciPy's L-BFGS-B on vectorized NumPy",
        f"{theirs / ours:.0f}× as fast",
        "≥ 5×",
        theirs >= 5 * ours,
    )


def world() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64], BehaviorStats]:
    """Return features, the items' true relevance, and what users did so far."""
    rng = np.random.default_rng(0)
    features = rng.random((ROWS, N_FEATURES), dtype=np.float32)
    score = features @ (0.3 * rng.normal(size=N_FEATURES)).astype(np.float32)
    alpha = np.exp(score - score.mean() - 0.5)
    relevance = (alpha / (alpha + 5)).astype(np.float64)
    return features, relevance, sessions(relevance, 4.0, seed=1)


def sessions(relevance: npt.NDArray[np.float64], mean: float, seed: int) -> BehaviorStats:
    """Return the behavior of users who saw each item `mean` times on average, at ranks 1 to 5."""
    rng = np.random.default_rng(seed)
    shown = rng.poisson(mean, len(relevance))
    p = 1 / np.log2(rng.integers(2, 7, len(relevance)))
    clicks = rng.binomial(shown, p * relevance)
    return BehaviorStats(shown, clicks, clicks / p, shown * p)


def scipy_fit(features: npt.NDArray[np.float32], stats: BehaviorStats) -> None:
    """Fit the same loss the ordinary way, to the same accuracy."""
    seen = stats.shown > 0
    matrix = np.column_stack([features[seen], np.ones(seen.sum(), np.float32)]).astype(np.float64)
    clicks, trials = (values[seen] for values in stats.evidence("ips"))
    lg, psi = special.gammaln, special.digamma

    def value_and_gradient(theta: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        a = np.exp(np.clip(matrix @ theta, -10, 10))
        loss = lg(a) - lg(a + 5) - lg(clicks + a) + lg(trials + a + 5)
        slope = a * (psi(a) - psi(a + 5) - psi(clicks + a) + psi(trials + a + 5))
        return float(loss.mean()), matrix.T @ slope / len(matrix)

    optimize.minimize(
        value_and_gradient,
        np.zeros(matrix.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1000, "gtol": 1e-5, "ftol": 1e-15},
    )
