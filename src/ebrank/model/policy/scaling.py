"""How the features of a query's candidates are scaled for a prior; a part of the model file.

A model that learned from scaled features is useless without the scaling, so the two are saved
together:

>>> import numpy as np
>>> candidates = np.array([[1, 7], [3, 7], [2, 7]], dtype=np.float32)
>>> Scaling("query")(candidates)
array([[0. , 0. ],
       [1. , 0. ],
       [0.5, 0. ]], dtype=float32)
>>> Scaling.learn("global", candidates)(np.array([[2, 9]], dtype=np.float32))
array([[0.5, 0. ]], dtype=float32)
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ebrank.errors import ParameterError
from ebrank.parameters import is_number, require
from ebrank.typing import Features

ScalingKind: TypeAlias = Literal["query", "global", "none"]


@dataclass(frozen=True)
class Scaling:
    """Min-max scaling of features to [0, 1].

    Attributes:
        kind: `query` scales within the candidates of a query (`kernels.min_max.query_min_max`);
            `global` by the ranges of the rows a model learned from, with values outside moved to
            the nearest end; `none` leaves features as they are.
        low: lowest value of each feature, for `global`.
        high: highest value of each feature, for `global`.
    """

    kind: ScalingKind = "none"
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Raise if ranges are invalid, or if the kind does not use them."""
        kinds = get_args(ScalingKind)
        require(self.kind in kinds, f"scaling is one of {', '.join(kinds)}, not {self.kind!r}")
        if self.kind != "global":
            require(self.low is self.high is None, f"{self.kind!r} scaling has no ranges")
            return
        low, high = _numbers("low", self.low), _numbers("high", self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        good = len(low) == len(high) and all(map(operator.le, low, high))
        require(good, "each feature needs a low end that is not above its high end")

    @classmethod
    def learn(cls, kind: ScalingKind, rows: Features) -> Self:
        """Return the scaling of this kind; `global` takes its ranges from the rows."""
        if kind != "global":
            return cls(kind)
        require(len(rows) > 0, "global scaling needs rows to take its ranges from")
        return cls(kind, tuple(rows.min(axis=0).tolist()), tuple(rows.max(axis=0).tolist()))

    def __call__(self, features: Features, query_pointers: npt.ArrayLike | None = None) -> Features:
        """Return the scaled features, shape (rows, features).

        Rows are the candidates of one query. For several queries, `query_pointers` holds the first
        row of each and the end.
        """
        if self.kind == "none" or not len(features):
            return features
        if self.kind == "query":
            from ebrank.kernels.min_max import query_min_max  # Numba takes a while to import

            pointers = [0, len(features)] if query_pointers is None else query_pointers
            return query_min_max(features, pointers)
        low, high = np.array(self.low), np.array(self.high)
        require(
            features.shape[1] == len(low),
            f"this scaling is of {len(low)} features, not {features.shape[1]}",
        )
        span = np.where(high > low, high - low, np.inf)  # 0 where all rows agreed
        scaled: Features = np.clip((features - low) / span, 0.0, 1.0).astype(np.float32)
        return scaled


def _numbers(name: str, values: object) -> tuple[float, ...]:
    if not isinstance(values, list | tuple):
        raise ParameterError(f"global scaling needs {name}: one number per feature")
    for value in values:
        require(is_number(value), f"{name} holds {value!r}, not a finite number")
    return tuple(float(value) for value in values)
