from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ebrank.evaluation.significance import query_differences
from ebrank.experiments.framework.keeping import kept, weighed_sessions
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.result import Result
from tests.experiments.made import result

SESSIONS = 20_000


def long(seed: int, discount: float) -> Result:
    """Return a result whose trials were asked the same queries for a long time."""
    rng = np.random.default_rng(seed)
    made = result("bm25", [(0.5, 0.5, 0.5)] * 2)
    trials = tuple(
        replace(
            trial,
            test_queries=np.random.default_rng(number).integers(0, 40, SESSIONS),
            test_ndcg=rng.random(SESSIONS),
        )
        for number, trial in enumerate(made.trials)
    )
    return replace(made, config=SimulationConfig(discount=discount), trials=trials)


@pytest.mark.parametrize("discount", [0.3, 0.9, 0.95, 0.995])
def test_comparisons_see_no_difference(discount: float) -> None:
    a, b = long(1, discount), long(2, discount)
    slim = kept([a, b])
    whole = query_differences(a, b, "cum_ndcg")
    np.testing.assert_array_equal(query_differences(slim[0], slim[1], "cum_ndcg"), whole)
    assert len(slim[0].trials[0].test_ndcg) == min(SESSIONS, weighed_sessions(discount))


@pytest.mark.parametrize("discount", [0.3, 0.5, 0.9, 0.995, 0.9999])
def test_what_is_dropped_has_no_weight_and_not_much_else_is_kept(discount: float) -> None:
    count = weighed_sessions(discount)
    assert np.float64(discount) ** count == 0.0
    assert np.float64(discount) ** (0.99 * count) > 0.0


def test_queries_are_kept_once_and_only_if_they_are_the_same() -> None:
    a, b = kept([long(1, 0.9), long(2, 0.9)])
    assert a.trials[0].test_queries is b.trials[0].test_queries
    assert a.trials[0].test_queries.base is None, "a view keeps all of it"
    other = result("bm25", [(0.5, 0.5, 0.5)] * 2)
    assert kept([a, other])[1].trials[0].test_queries is other.trials[0].test_queries
