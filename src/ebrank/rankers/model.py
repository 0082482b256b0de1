"""What lists are made from: two numbers per item, and a formula.

Between two updates of a model an item's score depends on the two numbers the model gave it and on
the behavior of users towards it; `ebrank.policy.formula` says how.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ebrank.data.dataset import Dataset
from ebrank.errors import ParameterError
from ebrank.evidence import Examination
from ebrank.policy.formula import Score
from ebrank.priors.base import ItemPrior
from ebrank.sessions.world import Sessions
from ebrank.typing import Floats

RunSessions: TypeAlias = Callable[[int, int], None]
"""Runs the sessions of a range of queries."""


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """A model that ranks by a formula.

    Attributes:
        a, b: the model's two numbers for each row of the dataset; b may hold one for all rows.
        serve: score that orders lists, exploration included.
        offline: score of the learned model alone, which Cold- and Warm-NDCG use.
        cold: score that Cold-NDCG uses, if not `offline`.
        noisy: whether `serve` uses its key, so that every candidate has a new score every session.
        weights: the linear model's weights; x^b, if used, is last; None for other models.
        examination: how far down it believes users look, if that is not the trial's belief.
        prior: α and β of each row's relevance before any behavior; None if it has no Beta prior.
    """

    a: Floats
    b: Floats
    serve: Score
    offline: Score
    cold: Score | None = None
    noisy: bool = False
    weights: Floats | None = None
    examination: Examination | None = None
    prior: ItemPrior | None = None

    def run_sessions(self, sessions: Sessions) -> RunSessions:
        """Return a function that runs sessions with this model, sorted by the formula `serve`."""
        from ebrank.sessions import scored  # Numba takes a while to import

        scorer = scored.Scorer.of(self.serve, self.a, self.b)
        return lambda start, stop: scored.run_sessions(sessions, scorer, self.noisy, start, stop)

    def check_sessions(self, dataset: Dataset) -> None:
        """Raise if the model's own session data do not fit a dataset."""


def check_numbers(
    name: str, called: str, values: object, rows: int, *, or_one: bool = False
) -> None:
    """Raise unless an array has a finite number for each row, or, with `or_one`, one for all.

    `called` is what messages call the numbers.
    """
    if not (isinstance(values, np.ndarray) and values.dtype == np.float64 and values.ndim == 1):
        raise ParameterError(f"{name} must be a NumPy array of float64, with one axis")
    if len(values) != rows and not (or_one and len(values) == 1):
        raise ParameterError(f"{len(values)} {called} for {rows} rows")
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise ParameterError(f"{name}[{row}] is {values[row]}, not a finite number")
