"""Boosted trees evaluated, compiled: serving needs no library that grows them."""

from __future__ import annotations

from ebrank.compiled import kernel
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
    """Add what the trees say of rows start..stop; see `trees.NODES` for how they are laid out."""
    for i in range(start, stop):
        total = 0.0
        for root in tree_starts:
            node = root
            while split_feature[node] >= 0:
                value = float(features[i, split_feature[node]])
                node = node + 1 if value <= threshold[node] else right_child[node]
            total += leaf_value[node]
        out[i] += total
