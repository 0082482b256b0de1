"""What a prior predicted for items that nobody had seen, beside what users did with them later."""

from __future__ import annotations

import numpy as np

from ebrank.data.dataset import Dataset
from ebrank.evidence import Sums
from ebrank.rankers.model import ScoreModel
from ebrank.typing import Floats, Ints

COLUMNS = ("alpha", "beta", "clicks", "exposure", "relevance")


class Promises:
    """The prior of test queries' items that had never been shown when it was recorded."""

    def __init__(self, dataset: Dataset, sums: Sums, model: ScoreModel) -> None:
        on_test = np.arange(dataset.n_rows)[dataset.rows_in("test")]
        self._rows: Ints = on_test[sums.shown[on_test] == 0]
        self._prior = None if model.prior is None else model.prior.rows(self._rows)

    def outcome(self, sums: Sums, relevance: Floats) -> Floats | None:
        """Return α, β, c, E and R of those shown since, shape (items, 5); None without a prior."""
        if self._prior is None:
            return None
        seen = sums.shown[self._rows] > 0
        rows = self._rows[seen]
        alpha, beta = np.broadcast_arrays(*self._prior)
        return np.column_stack(
            (alpha[seen], beta[seen], sums.clicks[rows], sums.exposure[rows], relevance[rows])
        )
