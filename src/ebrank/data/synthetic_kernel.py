"""The compiled part of `synthetic`: labels and features of a block of queries from random draws.

Nothing here depends on the processor: arithmetic is done as written (`exact`), and the exponential
is our own, because platforms round theirs differently.
"""

from __future__ import annotations

import numpy as np

from ebrank.compiled import exact
from ebrank.typing import Bools, Features, Ints, Labels

LOG2_E = 1.4426950408889634
LOG_2 = 0.6931471805599453


@exact
def grade(
    pointers: Ints,
    ease: Features,
    needs_relevant: Bools,
    relevance: Features,
    thresholds: Features,
    labels: Labels,
) -> None:
    """Set each label to the number of thresholds below the document's relevance + its query's ease.

    If a query must have a relevant document and has none, its most relevant one gets label 1.
    """
    for q in range(len(ease)):
        best = pointers[q]
        relevant = False
        for row in range(pointers[q], pointers[q + 1]):
            label = 0
            for threshold in thresholds:
                label += relevance[row] + ease[q] > threshold
            labels[row] = label
            relevant |= label > 0
            if relevance[row] > relevance[best]:
                best = row
        if needs_relevant[q] and not relevant:
            labels[best] = 1


@exact
def express(
    pointers: Ints,
    factors: Features,
    query_factors: Features,
    weights: Features,
    noise: Features,
    shapes: Features,
    features: Features,
) -> None:
    """Turn `features`, given as standard normal noise, into feature values, in place.

    The latent value of feature f is noise[f]·features[row, f] + Σ_k weights[k, f]·(factors[row, k]
    + query_factors[q, k]); `shapes` holds cut, tail, scale, step, ceiling, offset, in this order.
    """
    n_factors, n_features = weights.shape
    latent = np.empty(n_features, np.float32)
    for q in range(len(query_factors)):
        for row in range(pointers[q], pointers[q + 1]):
            values = features[row]
            for f in range(n_features):
                latent[f] = noise[f] * values[f]
            for k in range(n_factors):
                factor = factors[row, k] + query_factors[q, k]
                for f in range(n_features):
                    latent[f] += weights[k, f] * factor
            for f in range(n_features):
                values[f] = _shaped(latent[f], shapes[:, f])


@exact
def _shaped(latent: np.float32, shape: Features) -> np.float32:
    """Return the value of a feature with this shape; see `synthetic_features.Feature`."""
    cut, tail, scale, step, ceiling, offset = shape
    value = max(latent - cut, np.float32(0.0))
    if tail > 0:
        value = np.float32((_exp(tail * value) - 1.0) / tail)
    value = min(scale * value, ceiling)
    if step > 0:
        value = np.floor(value / step) * step
    return np.float32(offset + value)


@exact
def _exp(x: float) -> float:
    """Return e^x to eight digits, for 0 ≤ x < 700: 2^k times a polynomial in the rest."""
    k = np.floor(x * LOG2_E + 0.5)
    r = x - k * LOG_2
    p = 1 / 5040
    for inverse in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
        p = p * r + inverse
    return p * np.int64((np.int64(k) + 1023) << 52).view(np.float64)
