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
from ebrank.pointers import pointer_to
from ebrank.priors.base import ItemPrior
from ebrank.typing import Compiled, Floats, Ints, Keys, SmallInts


def scores(
    score: Score,
    prior: ItemPrior,
    behavior: BehaviorStats,
    examination: Examination,
    keys: Keys | None = None,
) -> Floats:
    """Return the score of each item; `keys` address the draws of a score that draws."""
    n = len(behavior)
    own_keys = np.zeros(1, np.uint64) if keys is None else keys
    require(len(prior.a) == n and len(prior.b) in (1, n), f"the prior is not one of {n} items")
    require(len(own_keys) in (1, n), f"{len(own_keys)} keys for {n} items")
    valuation = behavior.valuation(examination)
    out = np.empty(n)
    write_scores(
        score.compiled,
        prior.a,
        prior.b,
        packed(behavior.counts),
        valuation.table,
        score.parameters,
        own_keys,
        out,
    )
    return out


@kernel
def write_scores(
    score: Compiled,
    a: Floats,
    b: Floats,
    counts: SmallInts,
    table: Ints,
    parameters: Floats,
    keys: Keys,
    out: Floats,
) -> None:
    """Write the score of each item; b and keys may hold one number for all."""
    behaviors, slots = counts.shape[1] - 1, counts.shape[2]
    worth, numbers = pointer_to(table, 0), pointer_to(parameters, 0)
    for i in range(len(out)):
        own = pointer_to(counts, i)
        out[i] = score(
            a[i],
            b[min(i, len(b) - 1)],
            weighted_clicks_sum(own, slots, behaviors, worth),
            exposure_sum(own, slots, worth),
            own,
            slots,
            behaviors,
            worth,
            numbers,
            keys[min(i, len(keys) - 1)],
        )
