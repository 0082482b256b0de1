"""Datasets of a hundred rows, for checks that run a whole simulation in no time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ebrank.lab.data.dataset import Dataset

SIZES = (9, 1, 6, 14, 2, 7, 11, 5, 8, 17, 3, 12)


def tiny(
    seed: int = 0,
    sizes: Sequence[int] = SIZES,
    *,
    n_features: int = 3,
    max_label: int = 2,
    interleaved: bool = True,
    **arrays: Any,  # noqa: ANN401 (any of the dataset's arrays, instead of the drawn one)
) -> Dataset:
    """Return a dataset with one query of each size: the first feature tells the label, noisily.

    BM25 scores are coarse, so that there are ties. Splits alternate, or are contiguous.
    """
    rng = np.random.default_rng(seed)
    rows, queries = sum(sizes), len(sizes)
    splits = np.arange(queries) % 3
    features = rng.random((rows, n_features), dtype=np.float32)
    noisy = features[:, 0] + rng.normal(scale=0.2, size=rows)
    made: dict[str, Any] = {
        "features": features,
        "labels": np.clip(np.floor(noisy * (max_label + 1)), 0, max_label).astype(np.int8),
        "query_pointers": np.cumsum([0, *sizes]),
        "query_ids": np.array([f"q{i}" for i in range(queries)]),
        "query_splits": (splits if interleaved else np.sort(splits)).astype(np.int8),
        "baseline": np.round(noisy + rng.normal(size=rows), 1).astype(np.float32),
        "feature_ids": np.arange(1, n_features + 1, dtype=np.int32),
    }
    return Dataset(name="tiny", max_label=max_label, **(made | arrays))
