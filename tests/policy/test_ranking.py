from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.policy.scoring import MANY, best_first


@pytest.mark.parametrize("items", [0, 1, MANY - 1, MANY, 3 * MANY])
@given(seed=st.integers(0, 10_000), levels=st.sampled_from([1, 3, 100, 10**9]))
def test_the_best_come_first_and_keys_decide_between_equals(
    items: int, seed: int, levels: int
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, items) / levels * rng.choice([-1.0, 1.0])
    keys = rng.integers(0, 2**63, items).astype(np.uint64)
    expected = sorted(range(items), key=lambda item: (-scores[item], keys[item]))
    assert best_first(scores, keys).tolist() == expected
