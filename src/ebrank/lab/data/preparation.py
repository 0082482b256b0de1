"""From a published dataset to the one experiments run on.

1. behavior features are removed: behavior must come only from the simulated users;
2. queries with at most five candidates are removed, and so are test queries without a relevant
   item, whose NDCG is always the same;
3. each feature is scaled to [0, 1] within each query (`ebrank.kernels.min_max`), or over the whole
   dataset if queries share the items of a catalog: an item keeps its features in all of them;
4. features that are then constant over the training partition are removed.

The production ranker's score (`baseline`) stays as it was, for the rows that are kept.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ebrank.errors import DataError
from ebrank.lab.data.dataset import SPLITS, Dataset
from ebrank.lab.data.interpretation import AUTO, Auto, ColumnChoices
from ebrank.typing import Bools

MIN_CANDIDATES = 6


def prepare(dataset: Dataset, *, drop_features: Collection[int] | Auto | None = AUTO) -> Dataset:
    """Return the dataset filtered and scaled, ready for experiments.

    Args:
        dataset: as `ebrank.lab.data.read` or `ebrank.lab.data.generate` returns it; left unchanged.
        drop_features: numbers of the features to remove because they are derived from clicks; by
            default the dataset's `behavior_features`.
    """
    from ebrank.kernels.min_max import query_min_max  # compiled: imported when needed
    from ebrank.lab.data.varying import varying_features

    chosen = ColumnChoices(drop_features=drop_features).drop_features
    dropped = to_drop(dataset, dataset.behavior_features if chosen == AUTO else chosen or ())
    kept = kept_queries(dataset)
    queries = np.flatnonzero(kept)
    train = queries[dataset.query_splits[queries] == SPLITS.index("train")]
    if len(train) == 0:
        raise DataError(
            f"no training query of {dataset.name!r} has more than {MIN_CANDIDATES - 1} candidates",
            remedy="Add larger training queries: preparation keeps only these.",
        )
    features, pointers = dataset.features, dataset.query_pointers
    varying = varying_features(features, pointers, queries=train)
    columns = np.flatnonzero(varying & ~dropped)
    if len(columns) == 0:
        raise DataError(
            f"every feature of {dataset.name!r} is constant within each training query",
            remedy="A ranker could learn nothing; check that the files have the right columns.",
        )
    together = dataset.items is not None
    if together:  # as if all rows were those of one query
        features = features[np.repeat(kept, dataset.candidates)]
        pointers = np.array([0, len(features)])
    return dataset.only(
        queries,
        features=query_min_max(
            features,
            pointers,
            queries=None if together else queries,
            columns=columns,
        ),
        feature_ids=dataset.feature_ids[columns],
        behavior_features=(),
        check_values=False,  # scaling refuses numbers that are not finite
    )


def kept_queries(dataset: Dataset) -> Bools:
    """Return for each query whether preparation keeps it."""
    large = dataset.candidates >= MIN_CANDIDATES
    relevant = np.maximum.reduceat(dataset.labels, dataset.query_pointers[:-1]) > 0
    is_test = dataset.query_splits == SPLITS.index("test")
    return np.asarray(large & (relevant | ~is_test))


def to_drop(dataset: Dataset, numbers: Collection[int]) -> Bools:
    """Return for each feature whether its number is one of these.

    Raises:
        DataError: if a feature to remove does not exist, or if none would be left.
    """
    dataset.check_feature_numbers(numbers)
    dropped: Bools = np.isin(dataset.feature_ids, list(numbers))
    if dropped.all():
        raise DataError(
            f"all features of {dataset.name!r} would be dropped",
            remedy="Drop only features derived from clicks: the model learns from the others.",
        )
    return dropped
