from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination, ParameterError
from ebrank.evidence import Behaviors
from ebrank.model.policy.policies import parse
from ebrank.model.prior import ItemPrior
from ebrank.model.scoring import MANY, best_first, scores
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


@pytest.mark.parametrize("items", [0, 1, MANY - 1, MANY, 3 * MANY])
@given(seed=st.integers(0, 10_000), levels=st.sampled_from([1, 3, 100, 10**9]))
def test_the_best_come_first_and_keys_decide_between_equals(
    items: int, seed: int, levels: int
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, levels, items) / levels * rng.choice([-1.0, 1.0])
    keys = rng.integers(0, 2**63, items).astype(np.uint64)
    expected = sorted(range(items), key=lambda item: (-values[item], keys[item]))
    assert best_first(values, keys).tolist() == expected
