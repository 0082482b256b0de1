"""How well BM25 and a linear model rank on a dataset, for tests and benchmarks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.metrics import ndcg_score

from ebrank.equations import relevance_probability
from ebrank.lab.data.dataset import Dataset

TARGETS = {
    "mq2007-like": (0.474, 0.591),
    "mslr10k-like": (0.449, 0.510),
    "mslr30k-like": (0.451, 0.506),
}
"""NDCG@5 of BM25 and of CFTopK without behavior in the paper's table of results."""


def mean_ndcg(dataset: Dataset, scores: npt.ArrayLike) -> float:
    """Return the mean NDCG@5 over the test queries, averaged over the orders of ties."""
    gains, values, starts = relevance(dataset), np.asarray(scores), dataset.query_pointers
    rows = [slice(starts[query], starts[query + 1]) for query in dataset.queries_in("test")]
    return float(np.mean([ndcg_score([gains[own]], [values[own]], k=5) for own in rows]))


def least_squares_scores(dataset: Dataset, block: int = 100_000) -> npt.NDArray[np.float64]:
    """Return the predictions of least squares with intercept, by normal equations over blocks."""
    train = dataset.rows_in("train")
    features, target = dataset.features[train], relevance(dataset)[train]
    mean = features.mean(axis=0, dtype=np.float64)
    gram = np.zeros((len(mean), len(mean)))
    moment = np.zeros(len(mean))
    for start in range(0, len(features), block):
        rows = features[start : start + block] - mean
        gram += rows.T @ rows
        moment += rows.T @ (target[start : start + block] - target.mean())
    weights = np.linalg.lstsq(gram, moment)[0].astype(np.float32)
    return (dataset.features @ weights).astype(np.float64)


def relevance(dataset: Dataset) -> npt.NDArray[np.float64]:
    """Return the relevance probability of every row."""
    return relevance_probability(dataset.labels.astype(np.float64), dataset.max_label)
