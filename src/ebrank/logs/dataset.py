"""Evidence for the lab: your own queries, items and features, labeled by how relevant they seem."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xxhash

from ebrank.data.dataset import Dataset
from ebrank.equations import relevance_probability
from ebrank.errors import DataError, ParameterError
from ebrank.logs.reading import Evidence

SPLITS = (0.6, 0.8)
"""Queries below the first share train, those up to the second validate, the others test."""


def lab_dataset(
    evidence: Evidence, relevance: npt.ArrayLike, *, name: str = "log", max_label: int = 4
) -> Dataset:
    """Return a dataset whose users click about as those of the log did.

    Args:
        evidence: with features, none of which is missing.
        relevance: of each row, from 0 to 1, as a fitted ranker estimates it. A row gets the label
            with the closest click probability.
        name: of the dataset.
        max_label: the largest label.
    """
    values, features = np.asarray(relevance, np.float64), evidence.features
    if features is None:
        raise DataError("no features were given", remedy="Read them with features=FILE.")
    if values.shape != (len(evidence),) or not np.isfinite(values).all():
        raise ParameterError(f"relevance must be {len(evidence)} finite numbers, one for each row")
    clicks = relevance_probability(np.arange(max_label + 1.0), max_label)
    middles = (clicks[1:] + clicks[:-1]) / 2
    shares = [xxhash.xxh3_64_intdigest(query.encode()) / 2**64 for query in evidence.queries]
    return Dataset(
        name=name,
        features=features,
        labels=np.searchsorted(middles, values).astype(np.int8),
        query_pointers=evidence.pointers,
        query_ids=np.array(evidence.queries, np.str_),
        query_splits=np.searchsorted(SPLITS, shares, side="right").astype(np.int8),
        baseline=np.zeros(len(evidence), np.float32),
        feature_ids=np.arange(1, features.shape[1] + 1, dtype=np.int32),
        max_label=max_label,
        feature_names=evidence.feature_names,
    )
