"""Scores of many items by a formula, compiled; `EBRanker` and the service rank by them.

The simulator calls the same formula in its sessions, so all three agree to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebrank.compiled import inner, kernel
from ebrank.evidence import BehaviorStats, Examination, Valuation
from ebrank.evidence.stats import packed
from ebrank.evidence.sums import exposure_sum, weighted_clicks_sum
from ebrank.formula import PAIR, Score
from ebrank.parameters import require
from ebrank.pointers import pointer_to, score_at
from ebrank.priors.base import ItemPrior
from ebrank.typing import Floats, Ints, Keys, SmallInts

NO_KEYS = np.zeros(1, np.uint64)


def scores(
    score: Score,
    prior: ItemPrior,
    behavior: BehaviorStats,
    examination: Examination,
    keys: Keys | None = None,
) -> Floats:
    """Return the score of each item; `keys` address the draws of a score that draws."""
    require(score.formula.frame is not PAIR, "a pair of scores is not one score")
    own_keys = _checked(prior, behavior, keys)
    out = np.empty(len(behavior))
    write_scores(
        score.compiled.address,
        prior.a,
        prior.b,
        packed(behavior.counts),
        behavior.valuation(examination).table,
        score.parameters,
        own_keys,
        out,
    )
    return out


def score_pairs(
    pair: Score,
    prior: ItemPrior,
    behavior: BehaviorStats,
    valuation: Valuation,
    keys: Keys | None = None,
) -> Floats:
    """Return two scores of each item, shape (2, items), by a formula in the frame PAIR."""
    require(pair.formula.frame is PAIR, "one score is not a pair of scores")
    own_keys = _checked(prior, behavior, keys)
    out = np.empty((2, len(behavior)))
    write_pairs(
        pair.compiled.address,
        prior.a,
        prior.b,
        packed(behavior.counts),
        valuation.table,
        pair.parameters,
        own_keys,
        out,
    )
    return out


def _checked(prior: ItemPrior, behavior: BehaviorStats, keys: Keys | None) -> Keys:
    """Return the keys; raise if the arrays do not fit together."""
    n = len(behavior)
    own = NO_KEYS if keys is None else keys
    require(len(prior.a) == n and len(prior.b) in (1, n), f"the prior is not one of {n} items")
    require(len(own) in (1, n), f"{len(own)} keys for {n} items")
    return own


@inner
def item_state(
    a: Floats, b: Floats, counts: SmallInts, table: Ints, parameters: Floats, keys: Keys, i: int
) -> Any:  # noqa: ANN401 (a tuple of numbers and pointers)
    """Return the arguments of a score; b and keys may hold one number for all items."""
    behaviors, slots = counts.shape[1] - 1, counts.shape[2]
    own, worth = pointer_to(counts, i), pointer_to(table, 0)
    return (
        a[i],
        b[min(i, len(b) - 1)],
        weighted_clicks_sum(own, slots, behaviors, worth),
        exposure_sum(own, slots, worth),
        own,
        slots,
        behaviors,
        worth,
        pointer_to(parameters, 0),
        keys[min(i, len(keys) - 1)],
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
    """Write the score of each item, given the address of its formula."""
    for i in range(len(out)):
        out[i] = score_at(address, item_state(a, b, counts, table, parameters, keys, i))


@kernel
def write_pairs(
    address: int,
    a: Floats,
    b: Floats,
    counts: SmallInts,
    table: Ints,
    parameters: Floats,
    keys: Keys,
    out: Floats,
) -> None:
    """Write both scores of each item."""
    both = np.empty(2)
    for i in range(out.shape[1]):
        state = item_state(a, b, counts, table, parameters, keys, i)
        score_at(address, (*state, pointer_to(both, 0)))
        out[0, i], out[1, i] = both[0], both[1]
