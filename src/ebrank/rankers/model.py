"""What a learner hands to whoever makes lists: two numbers per item and a formula.

Between two updates of a model an item's score depends on two numbers the model gave it and on the
behavior of users towards it. A `Formula` says how. It is a plain function, so that it can be read,
tested and broadcast; kernels call its compiled form.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ebrank.compiled import FirstClass

Floats: TypeAlias = npt.NDArray[np.float64]

SCORE = "f8(f8, f8, f8, f8, f8, f8, f8, f8, f8, u8)"


class Formula:
    """A score of one item: `f(a, b, shown, clicks, weighted_clicks, exposure, p, q, r, key)`.

    `a` and `b` are the model's two numbers for the item, `p`, `q`, `r` its parameters, and `key`
    addresses the random draws of this item in this session (see `ebrank.streams`). A formula that
    draws needs compiled code, which is slow to import: it lives in `rankers.kernels` and is given
    by name, as "module:function".
    """

    def __init__(self, function: Callable[..., float] | str) -> None:
        self._function = function
        self._compiled: FirstClass | None = None

    @property
    def function(self) -> Callable[..., float]:
        """The plain function; one given as "module:name" is imported when first needed."""
        if isinstance(self._function, str):
            module, _, name = self._function.partition(":")
            self._function = getattr(importlib.import_module(module), name)
        return cast("Callable[..., float]", self._function)

    @property
    def compiled(self) -> Callable[..., float]:
        """The formula for kernels; compiled on first use, since Numba takes a while to import."""
        if self._compiled is None:
            from ebrank.compiled import FirstClass

            self._compiled = FirstClass(self.function, SCORE)
        return self._compiled.compiled  # type: ignore[no-any-return]


Parameters: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """A model that ranks by a formula.

    Attributes:
        a, b: the model's two numbers for each row of the dataset; b may hold one for all rows.
        serve: score that lists are made by, exploration included.
        offline: score of the learned model alone, by which Cold- and Warm-NDCG are measured.
        serve_parameters, offline_parameters: p, q, r of each.
        cold: what Cold-NDCG is measured by where it is not `offline`; takes its parameters.
        noisy: whether `serve` uses its key, so that every candidate has a new score every session.
        weights: the linear model's weights, that of x^b last if it has one; None if there is none.
    """

    a: Floats
    b: Floats
    serve: Formula
    offline: Formula
    serve_parameters: Parameters = (0.0, 0.0, 0.0)
    offline_parameters: Parameters = (0.0, 0.0, 0.0)
    cold: Formula | None = None
    noisy: bool = False
    weights: Floats | None = field(default=None)
