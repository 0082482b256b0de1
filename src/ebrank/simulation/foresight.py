"""What a prior promised of items that nobody had seen, beside what users made of them later."""

from __future__ import annotations

import numpy as np

from ebrank.data.dataset import Dataset
from ebrank.priors import BetaParameters
from ebrank.rankers.model import ScoreModel
from ebrank.simulation.world import World
from ebrank.typing import Floats, Ints

COLUMNS = ("alpha", "beta", "clicks", "exposure", "relevance")


class Foresight:
    """The prior of items of test queries that were never shown when it was noted."""

    def __init__(self, dataset: Dataset, world: World, model: ScoreModel) -> None:
        on_test = np.arange(dataset.n_rows)[dataset.rows_in("test")]
        self._rows: Ints = on_test[world.shown[on_test] == 0]
        self._prior = _of(model.prior, self._rows)

    def outcome(self, world: World) -> Floats | None:
        """Return α, β, c, E and R of those shown since, shape (items, 5); None without a prior."""
        if self._prior is None:
            return None
        seen = world.shown[self._rows] > 0
        rows = self._rows[seen]
        return np.column_stack(
            (
                self._prior.alpha[seen],
                self._prior.beta[seen],
                world.clicks[rows],
                world.exposure[rows],
                world.relevance[rows],
            )
        )


def _of(prior: BetaParameters | None, rows: Ints) -> BetaParameters | None:
    """Return the prior of some rows."""
    return None if prior is None else BetaParameters(prior.alpha[rows], prior.beta[rows])
