"""What a prior model is: it turns features into a Beta distribution of relevance."""

from __future__ import annotations

from typing import NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from ebrank.behavior import BehaviorStats
from ebrank.errors import ParameterError
from ebrank.typing import Features


class BetaParameters(NamedTuple):
    """Beta(α, β) of each item's relevance before any behavior is seen."""

    alpha: npt.NDArray[np.float64]
    beta: npt.NDArray[np.float64]


@runtime_checkable
class Prior(Protocol):
    """A model f_θ from non-behavior features to a Beta prior (eq:priorModel).

    `fit` learns from rows that users have seen; `validation` is a pair of features and behavior
    that decides when to stop. An unfitted prior predicts α = 1 for every item.
    """

    def fit(
        self,
        features: Features,
        behavior: BehaviorStats,
        *,
        validation: tuple[Features, BehaviorStats] | None = None,
    ) -> Self:
        """Learn from features, shape (rows, features), and behavior of the same rows."""
        ...

    def predict(self, features: Features) -> BetaParameters:
        """Return α and β of each row."""
        ...


def check_rows(features: Features, behavior: BehaviorStats) -> None:
    """Raise unless features and behavior speak of the same number of items."""
    if len(features) != len(behavior):
        raise ParameterError(f"{len(features)} rows of features, but behavior of {len(behavior)}")
