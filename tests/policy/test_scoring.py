from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination, ParameterError
from ebrank.evidence import Behaviors
from ebrank.policy.policies import parse
from ebrank.policy.scoring import scores
from ebrank.priors import ItemPrior
from tests.bound import unfitted

SHOP = Behaviors.of({"click": 0.25, "purchase": 1.0})


@st.composite
def candidates(draw: st.DrawFn) -> tuple[ItemPrior, BehaviorStats]:
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    items, slots = draw(st.integers(0, 40)), draw(st.integers(1, 16))
    counts = np.zeros((items, 3, slots), np.int32)
    counts[:, 1] = rng.integers(0, 5, (items, slots))
    counts[:, 2] = rng.integers(0, 3, (items, slots))
    counts[:, 0] = counts[:, 1] + counts[:, 2] + rng.integers(0, 30, (items, slots))
    counts[rng.random(items) < 0.3] = 0  # nobody has seen these
    own = draw(st.booleans())
    prior = ItemPrior(rng.uniform(0.05, 20, items), rng.uniform(0.5, 9, items if own else 1))
    return prior, BehaviorStats(counts, SHOP)


@given(candidates(), st.data())
def test_an_item_s_score_depends_on_nothing_but_the_item(
    known: tuple[ItemPrior, BehaviorStats], data: st.DataObject
) -> None:
    prior, stats = known
    chosen = np.array(data.draw(st.permutations(range(len(stats)))), np.int64)[::2]
    for text in ("ebrank", "ebrank:estimator=exact", "thompson", "auto"):
        score = unfitted(parse(text)).score
        keys = np.arange(len(stats), dtype=np.uint64) * np.uint64(77)
        whole = scores(score, prior, stats, Examination(), keys)
        part = scores(score, prior.rows(chosen), stats[chosen], Examination(), keys[chosen])
        np.testing.assert_array_equal(part, whole[chosen])


def test_what_a_kernel_would_overrun_is_refused() -> None:
    score, stats = unfitted(parse("thompson")).score, BehaviorStats.zeros(3)
    prior = ItemPrior(np.ones(3), np.ones(1))
    for wrong in (ItemPrior(np.ones(2), np.ones(1)), ItemPrior(np.ones(3), np.ones(2))):
        with pytest.raises(ParameterError, match="not one of 3 items"):
            scores(score, wrong, stats, Examination())
    with pytest.raises(ParameterError, match="2 keys for 3 items"):
        scores(score, prior, stats, Examination(), np.zeros(2, np.uint64))
