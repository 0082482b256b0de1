"""Behavior of users who like some features, for tests of priors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebrank import BehaviorStats

Features = npt.NDArray[np.float32]


def made_up(rows: int, n_features: int, seed: int) -> tuple[Features, BehaviorStats]:
    """Return random features and the behavior of users who like some of them."""
    rng = np.random.default_rng(seed)
    features = rng.random((rows, n_features), dtype=np.float32)
    alpha = np.exp(features @ rng.normal(size=n_features) - 0.5)
    shown = rng.poisson(4, rows)
    ranks = rng.integers(1, 6, rows)
    p = 1 / np.log2(ranks + 1)
    clicks = rng.binomial(shown, p * alpha / (alpha + 5))
    return features, BehaviorStats.from_arrays(
        {"shown": shown, "clicks": clicks, "weighted_clicks": clicks / p, "exposure": shown * p}
    )
