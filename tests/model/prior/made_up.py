"""Behavior of users who like some features, for tests of priors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ebrank import BehaviorStats, EBRanker, Examination, Policy
from ebrank.model.policy.policies import make
from ebrank.model.prior.rows import Rows
from ebrank.typing import Features, Floats, State

CURVE = Examination()


def made_up(
    rows: int, n_features: int, seed: int, weights: Floats | None = None, mean: float = 4.0
) -> tuple[Features, BehaviorStats]:
    """Return random features and the behavior of users who like some of them.

    Each item is always shown at the same rank. `weights` say what users like.
    """
    rng = np.random.default_rng(seed)
    features = rng.random((rows, n_features), dtype=np.float32)
    liked = rng.normal(size=n_features) if weights is None else weights
    alpha = np.exp(features @ liked - 0.5)
    return features, clicked(rng, alpha / (alpha + 5), mean)


def clicked(rng: np.random.Generator, relevance: Floats, mean: float = 4.0) -> BehaviorStats:
    """Return the behavior of users who saw each item `mean` times on average, at one rank."""
    shown, ranks = rng.poisson(mean, len(relevance)), rng.integers(1, 6, len(relevance))
    return at_rank(ranks, shown, rng.binomial(shown, CURVE(ranks) * relevance))


def at_rank(ranks: Any, shown: Any, clicks: Any) -> BehaviorStats:  # noqa: ANN401 (arrays)
    """Return statistics of items that were each shown at one rank."""
    stats = BehaviorStats.zeros(len(shown), slots=5)
    items = np.arange(len(shown))
    stats.counts[items, 0, np.asarray(ranks) - 1] = shown
    stats.counts[items, 1, np.asarray(ranks) - 1] = clicks
    return stats


def rows_of(
    features: Features,
    stats: BehaviorStats,
    *,
    curve: Examination = CURVE,
    threads: int | None = None,
    **parameters: Any,  # noqa: ANN401 (a policy's)
) -> Rows:
    """Return rows to fit on, with the loss of a policy."""
    return make(**parameters).prior.rows(features, stats, curve, threads)


def fitted(
    features: Features,
    stats: BehaviorStats,
    *,
    validation: tuple[Features, BehaviorStats] | None = None,
    start: State | None = None,
    threads: int | None = None,
    **parameters: Any,  # noqa: ANN401 (a policy's)
) -> State:
    """Return what a policy's learner learns; without validation rows, some are held out."""
    rows = rows_of(features, stats, threads=threads, **parameters)
    rows = replace(rows, groups=np.arange(len(stats)))
    unseen = validation and rows_of(*validation, threads=threads, **parameters)
    return make(**parameters).learner.fit(rows, unseen, start)


def learned(
    policy: Policy | str,
    features: Features,
    stats: BehaviorStats,
    curve: Examination = CURVE,
    **options: Any,  # noqa: ANN401 (of the fit)
) -> State:
    """Return all that a policy learns."""
    state = EBRanker(policy, examination=curve).fit(features, stats, **options).state_
    assert state is not None
    return state


def mean_loss(ranker: EBRanker, *log: Any) -> float:  # noqa: ANN401 (features, behavior, items)
    """Return the mean loss of the rows that were shown."""
    return float(np.nanmean(ranker.losses(*log)))


def theta_of(state: State) -> Floats:
    """Return learned weights and, last, the intercept."""
    return np.append(state["weights"], state["intercept"])
