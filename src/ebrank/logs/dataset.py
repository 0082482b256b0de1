"""Evidence for the lab: your own queries, items and features, labeled by how relevant they seem."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebrank.data.dataset import Dataset
from ebrank.data.table import from_arrays
from ebrank.equations import relevance_probability
from ebrank.errors import DataError, ParameterError
from ebrank.logs.reading import Evidence


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
    return from_arrays(
        features,
        np.searchsorted(middles, values),
        [query for query, _ in evidence.pairs()],
        name=name,
        max_label=max_label,
        feature_names=evidence.feature_names,
    )
