"""A prior whose shape is learned: weights on a grid of relevances, tilted by the features.

    π_g(x) ∝ exp(b_g + s(x)·φ_g)        φ = logit R, standardized

The learner's score s says which way an item's features point; b, the same for all items, says how
relevance is distributed: how rare good items are, how wide the middle is. Both are fitted by
marginal likelihood (Efron's g-modeling; with b free, the nonparametric prior of Kiefer and
Wolfowitz). b has a penalty on its third differences, so that with few clicks it is a bell on the
logit scale whose center and width are free. Beta(α, β) is b = β·log(1 − R) with φ = log R, s = α.

Before any fit the prior is Beta(1, 5), as the paper's is before it learns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ebrank.errors import ParameterError
from ebrank.evidence import Valuation
from ebrank.evidence.valuation import UNIT
from ebrank.parameters import param
from ebrank.priors.base import Family, ItemPrior, Posterior, State
from ebrank.priors.rows import Rows
from ebrank.typing import Floats

SIZE = 24
LOWEST, HIGHEST = 0.002, 0.97
"""The first and last relevance of the grid."""
UNFITTED = 1.0, 5.0
"""α and β before any fit."""

GRID = "ebrank.priors.families.shape_grid:"


def logits() -> Floats:
    """Return the grid in logits."""
    low, high = (float(np.log(r / (1.0 - r))) for r in (LOWEST, HIGHEST))
    return np.linspace(low, high, SIZE)


def relevance_of(moments: tuple[float, float]) -> float:
    """Return the posterior mean."""
    return moments[0]


def spread_of(moments: tuple[float, float]) -> float:
    """Return the posterior standard deviation."""
    return moments[1]


@dataclass(frozen=True)
class Shape(Family):
    """Weights on a grid, learned with the scores."""

    name = "shape"
    help = "A prior of any shape, learned from the clicks; features tilt it."
    item: ClassVar[tuple[str, ...]] = ("score",)
    learns: ClassVar[tuple[str, ...]] = ("shape", "smoothness")
    mean: ClassVar = f"{GRID}prior_mean"
    posteriors: ClassVar = {
        "exact": Posterior(
            relevance_of,
            spread_of,
            f"{GRID}draw",
            f"{GRID}loss",
            given={"moments": f"{GRID}moments"},
        )
    }

    smoothness: float | None = param(
        None,
        "penalty on third differences of the shape; auto chooses it by the loss of validation rows",
        at_least=0,
        kind=float,
    )

    def prior(self, scores: Floats) -> ItemPrior:
        """Return the scores themselves."""
        return ItemPrior(scores, np.zeros(1))

    def learned(self, state: State | None, valuation: Valuation) -> Floats:
        """Return the numbers that `shape_grid` reads."""
        u = logits()
        relevance = 1.0 / (1.0 + np.exp(-u))
        return grid_numbers(relevance, (u - u.mean()) / u.std(), base_of(state), valuation)

    def fit(
        self, rows: Rows, scores: Floats, validation: tuple[Rows, Floats] | None, start: State
    ) -> State:
        """Return the shape, and its smoothness."""
        from ebrank.priors.families.shape_fit import fitted  # Numba takes a while to import

        base, smoothness = fitted(
            rows, scores, validation, base_of(start), self._smoothness(start), self.smoothness
        )
        return {"shape": base, "smoothness": np.array([smoothness])}

    def check_state(self, state: State) -> None:
        """Raise unless the state is a shape and its smoothness."""
        if not state:
            return  # nothing was ever shown
        if set(state) != set(self.learns):
            raise ParameterError("a prior of the family shape needs a shape and its smoothness")
        if state["shape"].shape != (SIZE,) or state["smoothness"].size != 1:
            raise ParameterError(f"a shape needs {SIZE} numbers, and one smoothness")
        if float(state["smoothness"].reshape(-1)[0]) < 0:
            raise ParameterError("the smoothness must be 0 or more")

    def _smoothness(self, state: State) -> float:
        if self.smoothness is not None:
            return self.smoothness
        return float(state["smoothness"].reshape(-1)[0]) if "smoothness" in state else FIRST


FIRST = 1e-2
"""The smoothness that a first fit starts with, per row."""


def base_of(state: State | None) -> Floats:
    """Return b, or that of Beta(1, 5) if none was learned."""
    if state is not None and "shape" in state:
        return state["shape"]
    relevance = 1.0 / (1.0 + np.exp(-logits()))
    alpha, beta = UNFITTED
    base: Floats = alpha * np.log(relevance) + beta * np.log1p(-relevance)
    return base


def grid_numbers(relevance: Floats, tilt: Floats, base: Floats, valuation: Valuation) -> Floats:
    """Return the numbers of a grid, even in logits, as `shape_grid` reads them."""
    u = np.log(relevance) - np.log1p(-relevance)
    p = valuation.exposure * UNIT
    logs = np.log(p, out=np.zeros(len(p)), where=p > 0.0)
    passes = np.log1p(-p[:, None] * relevance)
    head = [float(len(u)), u[1] - u[0], u[0]]
    return np.concatenate([head, relevance, tilt, base, np.log(relevance), passes.ravel(), logs])
