"""Evaluation of boosted trees, compiled: serving does not need the library that grows them."""

from __future__ import annotations

from ebrank.kernels.compiled import kernel
from ebrank.typing import Features, Floats, Ints


@kernel
def add_scores(
    features: Features,
    tree_starts: Ints,
    split_feature: Ints,
    threshold: Floats,
    right_child: Ints,
    leaf_value: Floats,
    start: int,
    stop: int,
    out: Floats,
) -> None:
    """Add the trees' values for rows start..stop; `trees.NODES` describes the layout."""
    for i in range(start, stop):
        total = 0.0
        for root in tree_starts:
            node = root
            while split_feature[node] >= 0:
                value = float(features[i, split_feature[node]])
                node = node + 1 if value <= threshold[node] else right_child[node]
            total += leaf_value[node]
        out[i] += total
