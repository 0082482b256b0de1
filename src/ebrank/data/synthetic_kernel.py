"""The compiled part of `synthetic`: labels and features of a block of queries from random draws."""

from __future__ import annotations

import numpy as np

from ebrank.compiled import kernel
from ebrank.typing import Bools, Features, Ints, Labels


@kernel
def grade(
    pointers: Ints,
    ease: Features,
    needs_relevant: Bools,
    relevance: Features,
    thresholds: Features,
    labels: Labels,
) -> None:
    """Set each label to the number of thresholds below the document's relevance + its query's ease.

    Where a query must have a relevant document and has none, its most relevant one gets label 1.
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


@kernel
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


@kernel
def _shaped(latent: np.float32, shape: Features) -> np.float32:
    """Return the value of a feature with this shape; see `synthetic_features.Feature`."""
    cut, tail, scale, step, ceiling, offset = shape
    value = max(latent - cut, np.float32(0.0))
    if tail > 0:
        value = (np.exp(tail * value) - np.float32(1.0)) / tail
    value = min(scale * value, ceiling)
    if step > 0:
        value = np.floor(value / step) * step
    return np.float32(offset + value)
