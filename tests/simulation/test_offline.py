"""NDCG of the model's lists against scikit-learn, where the definitions meet, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ebrank.equations import examination
from ebrank.simulation.play import list_ndcg

CUTOFFS = np.array([5, 1, 3, 10])
DISCOUNTS = examination(np.arange(1.0, 11.0))


def ideal_dcg(relevance: np.ndarray) -> np.ndarray:
    best = np.sort(relevance)[::-1]
    return np.array([(best[:k] * DISCOUNTS[: len(best[:k])]).sum() for k in CUTOFFS])


@pytest.mark.slow
def test_agrees_with_scikit_learn() -> None:
    from sklearn.metrics import ndcg_score

    rng = np.random.default_rng(0)
    relevance = rng.choice([0.1, 0.4, 1.0], (30, 20))
    lists = np.array([20 * query + rng.permutation(20)[:10] for query in range(30)])
    ideal = np.array([ideal_dcg(own) for own in relevance])
    got = list_ndcg(lists, relevance.ravel(), DISCOUNTS, CUTOFFS, ideal)
    for query, listed in enumerate(lists):
        scores = np.zeros(20)
        scores[listed - 20 * query] = np.arange(10, 0, -1)
        expected = [ndcg_score([relevance[query]], [scores], k=k) for k in CUTOFFS]
        assert got[query] == pytest.approx(expected, rel=1e-12)
