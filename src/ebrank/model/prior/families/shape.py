"""A prior whose shape is learned: weights on a grid of relevances, tilted by the features.

    π_g(x) ∝ exp(b_g + s(x)·φ_g)        φ = logit R, divided by the variance of logits under π

The learner's score s says which way an item's features point; b, the same for all items, says how
relevance is distributed: how rare good items are, how wide the middle is. Both are fitted by
marginal likelihood (Efron's g-modeling; with b free, the nonparametric prior of Kiefer and
Wolfowitz). b has a penalty on its third differences, so that with few clicks it is a bell on the
logit scale whose center and width are free. Beta(α, β) is b = β·log(1 − R) with φ = log R, s = α.

A score of 1 moves the mean of logits by about 1, however wide the prior is: a ridge means the same
for all, and a shape that becomes narrower does not undo what the scores say. The grid is even in
logits, and covers the relevances that the evidence makes plausible: 0.00001 is as ordinary as
0.999.

Before any fit the prior is Beta(1, 5), as the paper's is before it learns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ebrank.errors import ParameterError
from ebrank.evidence import Sums, Valuation
from ebrank.evidence.valuation import UNIT
from ebrank.kernels.arrays import read_only
from ebrank.model.formula import ItemPrior
from ebrank.model.prior.base import Family, Posterior, mean_of, spread_of
from ebrank.model.prior.rows import Rows
from ebrank.typing import Floats, State

SIZE = 24
FIRST_GRID = np.linspace(np.log(0.002 / 0.998), np.log(0.97 / 0.03), SIZE)
"""The grid before any fit, in logits."""
TILT_CENTER = FIRST_GRID.mean()
"""φ is a logit less this, divided by the tilt."""
FIRST: State = {
    "grid": read_only(FIRST_GRID[[0, -1]]),
    "tilt": read_only(np.array([FIRST_GRID.std()])),
}
"""What the family knows before any fit: the ends of a grid, and the tilt."""
TILTS = 0.05, 9.0
"""The smallest and the largest tilt that a fit may choose."""
BELOW, ABOVE = 3.0, 2.0
"""How far the grid reaches, in logits, from the mean click rate at least, ..."""
MARGIN = 1.0
"""... and from the lowest and highest relevance that some item has surely."""
STEEPEST = 40.0
"""Scores are clipped to ± this: beyond it nearly all weight is at one end of the grid anyway."""
ENOUGH = 3.0
"""Clicks, had or expected, from which on an item tells about the ends."""
SURELY = 2.0
"""Standard errors in an item's confidence interval."""
ROUND = 0.5
"""The ends are multiples of this, so that they stay where they are if little changes."""
FURTHEST = 16.0
SMOOTHNESS = 3.0
"""The penalty on third differences, shared by all rows: a prior that many clicks can overrule."""
UNFITTED = 1.0, 5.0
"""α and β before any fit."""

GRID = "ebrank.model.prior.families.shape_grid:"


def ends(sums: Sums) -> Floats:
    """Return the ends of a grid that contains the relevances of items with these sums, in logits.

    It contains Wilson's confidence interval of each item that tells enough.
    """
    clicks, trials = sums.clicks, np.maximum(sums.exposure, sums.clicks)
    mean = (clicks.sum() + 0.5) / (trials.sum() + 1.0)
    weight = SURELY * SURELY
    middle = (clicks + weight / 2.0) / (trials + weight)
    rest = np.sqrt(clicks * (1.0 - clicks / np.maximum(trials, 1e-300)) + weight / 4.0)
    reach = SURELY * rest / (trials + weight)
    lowest = (middle + reach)[trials * mean >= ENOUGH].min(initial=1.0 - 1e-7)
    highest = (middle - reach)[clicks >= ENOUGH].max(initial=1e-7)
    center, low, high = (float(np.log(r) - np.log1p(-r)) for r in (mean, lowest, highest))
    first = np.floor(min(center - BELOW, low - MARGIN) / ROUND) * ROUND
    last = np.ceil(max(center + ABOVE, high + MARGIN) / ROUND) * ROUND
    clipped: Floats = np.clip([first, last], -FURTHEST, FURTHEST)
    return clipped


def upside_of(moments: tuple[float, ...]) -> float:
    """Return what an item is worth beyond its relevance."""
    return moments[2]


@dataclass(frozen=True)
class Shape(Family):
    """Weights on a grid, learned with the scores."""

    name = "shape"
    help = "A prior of any shape, learned from the clicks; features tilt it."
    item: ClassVar[tuple[str, ...]] = ("score",)
    learns: ClassVar[tuple[str, ...]] = ("shape", "grid", "tilt", "variance")
    mean: ClassVar = f"{GRID}prior_mean"
    posteriors: ClassVar = {
        "exact": Posterior(
            mean_of,
            spread_of,
            f"{GRID}draw",
            f"{GRID}loss",
            given={"moments": f"{GRID}moments"},
            planned={"moments": f"{GRID}planned", "upside": upside_of},
        )
    }

    def prior(self, scores: Floats) -> ItemPrior:
        """Return the scores themselves."""
        return ItemPrior(scores, np.zeros(1))

    def learned(self, state: State | None, valuation: Valuation) -> Floats:
        """Return the numbers that `shape_grid` reads."""
        current = {**FIRST, **(state or {})}
        u = logits(current)
        return grid_numbers(u, (u - TILT_CENTER) / current["tilt"], base_of(current), valuation)

    def log_prior(self, prior: ItemPrior, learned: Floats, u: Floats) -> Floats:
        """Return b + s·φ, between nodes a line; beyond the ends of the grid there is nothing."""
        size, step, first = int(learned[0]), learned[1], learned[2]
        grid = first + step * np.arange(size)
        tilt, base = learned[3 + size : 3 + 2 * size], learned[3 + 2 * size : 3 + 3 * size]
        steep = np.clip(prior.a, -STEEPEST, STEEPEST)[:, None]
        heights = np.interp(u, grid, base) + steep * np.interp(u, grid, tilt)
        return np.where((u >= grid[0]) & (u <= grid[-1]), heights, -1e300)

    def begin(self, sums: Sums, state: State) -> tuple[State, float]:
        """Return the state on a grid that follows the evidence, with φ scaled to the last shape."""
        old = {**FIRST, **state}
        new = {**old, "grid": ends(sums), "tilt": state.get("variance", FIRST["tilt"])}
        if "shape" in state:
            new["shape"] = moved(state["shape"], logits(old), logits(new))
        return new, float(new["tilt"][0] / old["tilt"][0])

    def fit(self, rows: Rows, scores: Floats, start: State) -> State:
        """Return the shape, and the variance of logits under it, by which φ is scaled next time."""
        from ebrank.model.prior.families.shape_fit import fitted  # Numba takes a while to import

        base, variance = fitted(rows, scores, base_of(start), SMOOTHNESS / rows.count)
        return {**start, "shape": base, "variance": np.clip([variance], *TILTS)}

    def check_state(self, state: State) -> None:
        """Raise unless the state is empty, a grid and its tilt, or these and what was fitted."""
        if not state:
            return
        grid = state.get("grid", np.zeros(0))
        if grid.shape != (2,) or not -FURTHEST <= grid[0] < grid[1] <= FURTHEST:
            raise ParameterError(f"a grid needs two ends within ±{FURTHEST:g}, the lower one first")
        fitted = {"shape", "variance"} & state.keys()
        if fitted and ("shape" not in state or state["shape"].shape != (SIZE,)):
            raise ParameterError(f"a prior of the family shape needs a shape of {SIZE} numbers")
        for name in ("tilt", "variance") if fitted else ("tilt",):
            value = state.get(name, np.zeros(1))
            if value.shape != (1,) or not TILTS[0] <= value[0] <= TILTS[1]:
                raise ParameterError(
                    f"the {name} must be a number from {TILTS[0]:g} to {TILTS[1]:g}"
                )


def logits(state: State) -> Floats:
    """Return the grid in logits."""
    return np.linspace(state["grid"][0], state["grid"][1], SIZE)


def base_of(state: State) -> Floats:
    """Return b, or that of Beta(1, 5) if none was learned."""
    if "shape" in state:
        return state["shape"]
    u = logits(state)
    alpha, beta = UNFITTED
    base: Floats = -alpha * np.log1p(np.exp(-u)) - beta * np.log1p(np.exp(u))
    return base


def moved(base: Floats, old: Floats, new: Floats) -> Floats:
    """Return b on another grid: between nodes and beyond the ends a line, outwards never rising."""
    step = old[1] - old[0]
    before = max(base[1] - base[0], 0.0) * np.minimum(new - old[0], 0.0) / step
    after = min(base[-1] - base[-2], 0.0) * np.maximum(new - old[-1], 0.0) / step
    whole: Floats = np.interp(new, old, base) + before + after
    return whole


def grid_numbers(u: Floats, tilt: Floats, base: Floats, valuation: Valuation) -> Floats:
    """Return the numbers of a grid, given in logits, as `shape_grid` reads them."""
    relevance = 1.0 / (1.0 + np.exp(-u))
    p = valuation.exposure * UNIT
    logs = np.log(p, out=np.zeros(len(p)), where=p > 0.0)
    passes = np.log1p(-p[:, None] * relevance)
    head = [float(len(u)), u[1] - u[0], u[0]]
    return np.concatenate([head, relevance, tilt, base, np.log(relevance), passes.ravel(), logs])
