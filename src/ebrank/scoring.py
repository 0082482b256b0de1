"""Scores of many items by a formula, compiled: what `EBRanker` and the service rank by.

The simulator calls the same formula in its sessions, so all three agree to the last bit.
"""

from __future__ import annotations

import numpy as np

from ebrank.compiled import kernel
from ebrank.evidence import BehaviorStats, Examination
from ebrank.evidence.stats import packed
from ebrank.evidence.sums import exposure_sum, weighted_clicks_sum
from ebrank.formula import Score
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
    only: Floats = several_scores((score,), prior, behavior, examination, keys)[0]
    return only


def several_scores(
    wanted: tuple[Score, ...],
    prior: ItemPrior,
    behavior: BehaviorStats,
    examination: Examination,
    keys: Keys | None = None,
) -> Floats:
    """Return one or two scores of each item, shape (scores, items); two cost little more."""
    n = len(behavior)
    first, last = wanted[0], wanted[-1]
    own_keys = NO_KEYS if keys is None else keys
    require(len(prior.a) == n and len(prior.b) in (1, n), f"the prior is not one of {n} items")
    require(len(own_keys) in (1, n), f"{len(own_keys)} keys for {n} items")
    out = np.empty((len(wanted), n))
    write_scores(
        first.compiled.address,
        last.compiled.address,
        prior.a,
        prior.b,
        packed(behavior.counts),
        behavior.valuation(examination).table,
        first.parameters,
        last.parameters,
        own_keys,
        out,
    )
    return out


@kernel
def write_scores(
    first: int,
    last: int,
    a: Floats,
    b: Floats,
    counts: SmallInts,
    table: Ints,
    first_parameters: Floats,
    last_parameters: Floats,
    keys: Keys,
    out: Floats,
) -> None:
    """Write one or two scores of each item, given their addresses; b and keys may hold one."""
    behaviors, slots = counts.shape[1] - 1, counts.shape[2]
    worth = pointer_to(table, 0)
    for i in range(len(a)):
        own = pointer_to(counts, i)
        clicks = weighted_clicks_sum(own, slots, behaviors, worth)
        exposure = exposure_sum(own, slots, worth)
        state = (a[i], b[min(i, len(b) - 1)], clicks, exposure, own, slots, behaviors, worth)
        key = keys[min(i, len(keys) - 1)]
        out[0, i] = score_at(first, (*state, pointer_to(first_parameters, 0), key))
        if len(out) > 1:
            out[1, i] = score_at(last, (*state, pointer_to(last_parameters, 0), key))
