from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ebrank.sessions import linear as kernels
from tests.kept import kept

write_best = kept(kernels.write_best)

COARSE = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 1e300])  # many are equal


@given(st.lists(st.tuples(COARSE, st.floats(0, 1)), min_size=1, max_size=30), st.data())
def test_the_best_in_order(items: list[tuple[float, float]], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(items)))
    length = data.draw(st.integers(1, n))
    scores = np.array([score for score, _ in items])
    ties = np.array([tie for _, tie in items])
    best = np.full(length, -1, np.int64)
    write_best(scores, ties, n, length, best)
    expected = sorted(range(n), key=lambda i: (-scores[i], ties[i]))[:length]
    assert [(scores[i], ties[i]) for i in best] == [(scores[i], ties[i]) for i in expected]
    assert len(set(best.tolist())) == length
