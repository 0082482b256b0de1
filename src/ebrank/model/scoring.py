"""Scores of many items by a formula, compiled, and their order; `EBRanker` ranks by them.

The simulator calls the same formula in its sessions, so all three agree to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ebrank.evidence import BehaviorStats, Examination, Valuation
from ebrank.evidence.kernels import write_units
from ebrank.evidence.stats import packed
from ebrank.kernels.compiled import inner, kernel
from ebrank.kernels.pointers import call_at, pointer_to
from ebrank.model.formula import BATCH, PAIR, ItemPrior, Score
from ebrank.parameters import require
from ebrank.typing import Floats, Ints, Keys, SmallInts

MANY = 128
"""From this many candidates on, it pays to look for equal scores before sorting by two keys."""


def best_first(scores: Floats, keys: npt.NDArray[np.unsignedinteger]) -> Ints:
    """Return the order by score, the highest first; the lower key decides between equals.

    >>> best_first(np.array([0.5, 0.7, 0.5]), np.array([9, 1, 3], np.uint64)).tolist()
    [1, 2, 0]
    """
    if len(scores) < MANY:
        return np.lexsort((keys, -scores))
    order = np.argsort(-scores)
    ordered = scores[order]
    equal = ordered[1:] == ordered[:-1]
    if equal.any():
        tied = np.zeros(len(order), np.bool_)
        tied[1:] = equal
        tied[:-1] |= equal
        places = order[tied]
        order[tied] = places[np.lexsort((keys[places], -scores[places]))]
    return order


def scores(
    score: Score,
    prior: ItemPrior,
    behavior: BehaviorStats,
    examination: Examination,
    keys: Keys | None = None,
) -> Floats:
    """Return the score of each item; `keys` address the draws of a score that draws."""
    require(score.formula.frame is not PAIR, "a pair of scores is not one score")
    n = len(behavior)
    require(len(prior.a) == n and len(prior.b) in (1, n), f"the prior is not one of {n} items")
    if keys is not None:
        require(len(keys) == n, f"{len(keys)} keys for {n} items")
    valuation = behavior.valuation(examination)
    counts = packed(behavior.counts)
    only: Floats = _written(1, score, score.parameters, prior, counts, valuation, keys)[0]
    return only


def score_pairs(
    pair: Score,
    parameters: Floats,
    prior: ItemPrior,
    counts: SmallInts,
    valuation: Valuation,
    keys: Keys | None = None,
) -> Floats:
    """Return two scores of each item, shape (2, items), by a formula in the frame PAIR.

    The parameters replace those of the pair. Nothing is checked: the arrays fit together.
    """
    return _written(2, pair, parameters, prior, np.ascontiguousarray(counts), valuation, keys)


def _written(
    results: int,
    score: Score,
    parameters: Floats,
    prior: ItemPrior,
    counts: SmallInts,
    valuation: Valuation,
    keys: Keys | None,
) -> Floats:
    own_keys = np.zeros(len(counts), np.uint64) if keys is None else keys
    out, table = np.empty((results, len(counts))), valuation.table
    write_scores(
        score.formula.compiled.address, prior.a, prior.b, counts, table, parameters, own_keys, out
    )
    return out


@inner
def item_state(
    a: Floats,
    b: Floats,
    weighted_clicks: Ints,
    exposure: Ints,
    counts: SmallInts,
    table: Ints,
    parameters: Floats,
) -> Any:  # noqa: ANN401 (a tuple of numbers and pointers)
    """Return a formula's arguments from `a` to `parameters`; b may hold one number for all items.

    C and E, in units of 2⁻³⁰, are equally far apart. Pointers keep no array alive: the caller
    uses the arrays again later.
    """
    return (
        pointer_to(a, 0),
        pointer_to(b, 0),
        min(len(b) - 1, 1),
        pointer_to(weighted_clicks, 0),
        pointer_to(exposure, 0),
        exposure.strides[0] // exposure.itemsize,
        pointer_to(counts, 0),
        counts.strides[0] // counts.itemsize,
        counts.shape[2],
        counts.shape[1] - 1,
        pointer_to(table, 0),
        pointer_to(parameters, 0),
    )


@kernel
def write_scores(
    address: int,
    a: Floats,
    b: Floats,
    counts: SmallInts,
    table: Ints,
    parameters: Floats,
    keys: Keys,
    out: Floats,
) -> None:
    """Write one or two scores of each item, given the address of a formula that gives as many."""
    n = out.shape[1]
    rows = np.arange(n).astype(np.int32)
    weighted_clicks, exposure = np.empty(n, np.int64), np.empty(n, np.int64)
    write_units(counts, table, weighted_clicks, exposure)
    for first in range(0, n, BATCH):
        state = item_state(a, b, weighted_clicks, exposure, counts, table, parameters)
        items = min(BATCH, n - first), pointer_to(rows, first)
        result = pointer_to(keys, first), pointer_to(out[0], first)
        if len(out) == 1:
            call_at(address, (*items, *state, *result))
        else:
            call_at(address, (*items, *state, *result, pointer_to(out[1], first)))
