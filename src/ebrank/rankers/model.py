"""What a learner hands to whoever makes lists: two numbers per item and a formula.

Between two updates of a model an item's score depends on two numbers the model gave it and on the
behavior of users towards it. A `Formula` says how, as a plain function of just what it needs:

>>> cautious = Formula(lambda a, clicks, shown, t: (clicks + t * a) / (shown + t), "t")
>>> cautious(0.5, 0.0, 4, 2, 3.1, 2.0, 4.0, 0.0, 0.0, 0)  # a = 0.5, shown 4, clicks 2, t = 4
0.5
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from ebrank.errors import ParameterError
from ebrank.priors.base import BetaParameters
from ebrank.typing import Floats

ITEM = ("a", "b", "shown", "clicks", "weighted_clicks", "exposure")
PARAMETERS = ("p", "q", "r")
SCORE = "f8(f8, f8, f8, f8, f8, f8, f8, f8, f8, u8)"


class Formula:
    """A score of one item, from a plain function that names what it needs.

    - `a` and `b`: the model's two numbers for the item;
    - `shown`, `clicks`, `weighted_clicks`, `exposure`: n, c, C and E;
    - `key`: addresses the random draws of this item in this session (see `ebrank.streams`);
    - the model's parameters, up to three, whose names are given beside the function.

    A formula that draws needs compiled code, which is slow to import: it lives in `rankers.kernels`
    and is given by name, as "module:function".
    """

    def __init__(self, function: Callable[..., float] | str, *parameters: str) -> None:
        self._given = function
        self._renamed = dict(zip(parameters, PARAMETERS, strict=False))
        if len(parameters) > len(PARAMETERS):
            raise ParameterError(f"a formula has at most {len(PARAMETERS)} parameters")

    @cached_property
    def function(self) -> Callable[..., float]:
        """The plain function."""
        if not isinstance(self._given, str):
            return self._given
        module, _, name = self._given.partition(":")
        found: Callable[..., float] = getattr(importlib.import_module(module), name)
        return found

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """What the function takes, in terms of `ITEM`, `PARAMETERS` and key."""
        code = self.function.__code__
        names = code.co_varnames[: code.co_argcount]
        for unknown in [n for n in names if n not in (*ITEM, "key", *self._renamed)]:
            raise ParameterError(
                f"{self.function.__name__} takes {unknown!r}, which is neither of an item "
                f"({', '.join(ITEM)}, key) nor declared as a parameter"
            )
        return tuple(self._renamed.get(name, name) for name in names)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Leave out what is compiled; what counts of a function given by name is its code."""
        return Formula, (self.function, *self._renamed)

    def __call__(self, *values: Any) -> Any:  # noqa: ANN401 (numbers or arrays of them)
        """Return the score of an item of which all ten values are given, `SCORE`'s."""
        given = dict(zip((*ITEM, *PARAMETERS, "key"), values, strict=True))
        return self.function(*(given[name] for name in self.arguments))

    @property
    def compiled(self) -> Any:  # noqa: ANN401 (Numba's own type)
        """The formula as kernels call it, with all ten values; compiled on first use."""
        return self._first_class.compiled

    @cached_property
    def _first_class(self) -> Any:  # noqa: ANN401 (Numba takes a while to import)
        from ebrank.compiled import FirstClass

        return FirstClass(self.function, SCORE, (*ITEM, *PARAMETERS, "key"), self.arguments)


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
        prior: α and β of each row's relevance before any behavior; None if it has no Beta prior.
    """

    a: Floats
    b: Floats
    serve: Formula
    offline: Formula
    serve_parameters: Parameters = (0.0, 0.0, 0.0)
    offline_parameters: Parameters = (0.0, 0.0, 0.0)
    cold: Formula | None = None
    noisy: bool = False
    weights: Floats | None = None
    prior: BetaParameters | None = None
