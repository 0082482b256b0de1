"""How fast the linear prior is refitted, and how much its whitened coordinates save."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import optimize, special

from benchmarks.figure import Figure, best_seconds
from ebrank import BehaviorStats, EBRanker, Examination
from ebrank.model.prior.learners.linear import FIRST_RIDGE
from ebrank.model.prior.learners.minimization import value_and_gradient
from ebrank.typing import Features, Floats

ROWS, N_FEATURES = 2_000_000, 133
RIDGE = 1e-6
VALIDATION = 200_000  # rows that choose the ridge, or when to stop
SLICE = 100_000  # rows given to the peers, which are slow


def figures() -> Iterator[Figure]:
    """Yield the prior's figures."""
    features, relevance, stats = world()
    more = BehaviorStats(stats.counts + sessions(relevance, 0.3, seed=2).counts)
    EBRanker("ebrank", ridge=RIDGE).fit(features[:1000], stats[:1000])  # compiles
    ranker = EBRanker("ebrank", ridge=RIDGE)
    cold = best_seconds(lambda: ranker.fit(features, stats), repeats=1)
    learned = ranker.state_

    def refit() -> None:
        ranker.state_ = learned
        ranker.fit(features, more, warm_start=True)

    warm = best_seconds(refit)
    assert ranker.state_ is not None
    rows = ranker.policy.prior.rows(features, more, ranker.examination)
    theta = np.append(ranker.state_["weights"], ranker.state_["intercept"])
    one_pass = best_seconds(lambda: value_and_gradient(rows, theta, RIDGE))
    size = f"{ROWS / 1e6:.0f} M × {N_FEATURES}"
    yield Figure(
        f"refit on {size} rows from a warm start, 7 % new impressions, no subsampling",
        f"{warm:.2f} s ({warm / one_pass:.1f} passes over the matrix); "
        f"a fit from scratch {cold / warm:.1f}× as long",
        "about 1 s",
        warm <= 1.25,
    )
    part, few = features[:SLICE], more[:SLICE]
    ours = best_seconds(lambda: EBRanker("ebrank", ridge=RIDGE).fit(part, few), repeats=2)
    theirs = best_seconds(lambda: scipy_fit(part, few), repeats=1)
    yield Figure(
        f"fit from scratch on {SLICE:,} rows against SciPy's L-BFGS-B on vectorized NumPy",
        f"{theirs / ours:.0f}× as fast",
        "≥ 5×",
        theirs >= 5 * ours,
    )
    auto = refit_seconds(EBRanker("auto"), features, stats, more)
    yield Figure(
        f"refit of `auto` on {size} rows from a warm start: weights, shape and curve",
        f"{auto:.2f} s",
        "≤ 3 s",
        auto <= 3.0,
    )
    chosen = refit_seconds(EBRanker("ebrank"), features, stats, more)
    given = refit_seconds(EBRanker("ebrank", ridge=FIRST_RIDGE), features, stats, more)
    yield Figure(
        f"refit from a warm start where {VALIDATION // 1000} k of the rows choose the ridge",
        f"{chosen / given:.2f}× as long as under a given ridge, where they decide when to stop",
        "≤ 1.1×",
        chosen <= 1.1 * given,
    )


def refit_seconds(
    ranker: EBRanker, features: Features, stats: BehaviorStats, more: BehaviorStats
) -> float:
    """Return the time of a refit on more behavior, some of the rows held back for validation."""
    validation = (features[:VALIDATION], more[:VALIDATION])
    ranker.fit(features[VALIDATION:], stats[VALIDATION:], validation=validation)
    learned = ranker.state_

    def refit() -> None:
        ranker.state_ = learned
        ranker.fit(features[VALIDATION:], more[VALIDATION:], validation=validation, warm_start=True)

    return best_seconds(refit)


def world() -> tuple[Features, Floats, BehaviorStats]:
    """Return features, the items' true relevance, and what users did so far."""
    rng = np.random.default_rng(0)
    features = rng.random((ROWS, N_FEATURES), dtype=np.float32)
    score = features @ (0.3 * rng.normal(size=N_FEATURES)).astype(np.float32)
    alpha = np.exp(score - score.mean() - 0.5)
    relevance = (alpha / (alpha + 5)).astype(np.float64)
    return features, relevance, sessions(relevance, 4.0, seed=1)


def sessions(relevance: Floats, mean: float, seed: int) -> BehaviorStats:
    """Return the behavior of users who saw each item `mean` times on average, at ranks 1 to 5."""
    rng = np.random.default_rng(seed)
    items = np.arange(len(relevance))
    shown = rng.poisson(mean, len(items))
    ranks = rng.integers(1, 6, len(items))
    clicks = rng.binomial(shown, relevance / np.log2(ranks + 1))
    counts = np.zeros((len(items), 2, 5), np.int32)
    counts[items, 0, ranks - 1], counts[items, 1, ranks - 1] = shown, clicks
    return BehaviorStats(counts)


def scipy_fit(features: Features, stats: BehaviorStats) -> None:
    """Fit the same loss the ordinary way, to the same accuracy."""
    sums = stats.sums(Examination())
    seen = sums.shown > 0
    matrix = np.column_stack([features[seen], np.ones(seen.sum(), np.float32)]).astype(np.float64)
    clicks, trials = sums.weighted_clicks[seen], sums.shown[seen]
    lg, psi = special.gammaln, special.digamma

    def value_and_gradient(theta: Floats) -> tuple[float, Floats]:
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
