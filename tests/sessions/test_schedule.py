from __future__ import annotations

import numpy as np
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ebrank.sessions import schedule
from ebrank.testing import plain

KEY = plain.child(plain.trial_key(1, 0), plain.QUERIES)


@given(st.integers(0, 50), st.integers(0, 80), st.integers(1, 9))
def test_an_epoch_holds_every_session_once_each_querys_in_order(
    first: int, length: int, n_queries: int
) -> None:
    asked, plan = schedule.epoch(np.uint64(KEY), first, first + length, n_queries)
    expected = [plain.below(plain.child(KEY, first + t), n_queries) for t in range(length)]
    assert asked.tolist() == expected
    for q in range(n_queries):
        times = plan.times[plan.starts[q] : plan.starts[q + 1]]
        assert times.tolist() == [t for t in range(length) if expected[t] == q]
    assert plan.starts[0] == 0
    assert plan.starts[-1] == len(plan.times) == length


def test_queries_do_not_depend_on_where_epochs_begin() -> None:
    whole, _ = schedule.epoch(np.uint64(KEY), 0, 100, 7)
    parts = [schedule.epoch(np.uint64(KEY), a, b, 7)[0] for a, b in ((0, 13), (13, 13), (13, 100))]
    assert np.concatenate(parts).tolist() == whole.tolist()


def test_queries_are_equally_likely() -> None:
    asked, _ = schedule.epoch(np.uint64(KEY), 0, 50_000, 40)
    assert scipy.stats.chisquare(np.bincount(asked, minlength=40)).pvalue > 1e-6


def test_everyone_is_served_equally_often() -> None:
    plan = schedule.everyone(3, 4)
    assert np.diff(plan.starts).tolist() == [3, 3, 3, 3]
    assert sorted(plan.times.tolist()) == list(range(12))
    nobody = schedule.everyone(0, 4)
    assert np.diff(nobody.starts).tolist() == [0, 0, 0, 0]
    assert len(nobody.times) == 0
