"""Behavior of users who like some features, for tests of priors."""

from __future__ import annotations

import numpy as np

from ebrank import BehaviorStats
from ebrank.typing import Features, Floats


def made_up(rows: int, n_features: int, seed: int) -> tuple[Features, BehaviorStats]:
    """Return random features and the behavior of users who like some of them."""
    rng = np.random.default_rng(seed)
    features = rng.random((rows, n_features), dtype=np.float32)
    alpha = np.exp(features @ rng.normal(size=n_features) - 0.5)
    return features, clicked(rng, alpha / (alpha + 5))


def clicked(rng: np.random.Generator, relevance: Floats, mean: float = 4.0) -> BehaviorStats:
    """Return the behavior of users who saw each item `mean` times on average, at one rank."""
    items = np.arange(len(relevance))
    shown, ranks = rng.poisson(mean, len(items)), rng.integers(1, 6, len(items))
    clicks = rng.binomial(shown, relevance / np.log2(ranks + 1))
    counts = np.zeros((len(items), 2, 5), np.int32)
    counts[items, 0, ranks - 1], counts[items, 1, ranks - 1] = shown, clicks
    return BehaviorStats(counts)
