from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from ebrank.evidence import BehaviorStats, Examination
from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from ebrank.rankers.pbmucb import UNSEEN
from tests.rankers.scoring import values


def test_bounds_are_those_of_the_paper(make_trial: Callable[..., Trial]) -> None:
    """Lists are replayed one by one: S, N, Ñ and t are counted as the paper counts them."""
    trial = make_trial(3, queries=24)
    rng = np.random.default_rng(3)
    curve = [1 / math.log2(rank + 1) for rank in range(1, 6)]
    S, N, exposed = (np.zeros(len(trial.relevance)) for _ in range(3))
    lists = []
    for first, end in zip(
        trial.dataset.query_pointers[:-1], trial.dataset.query_pointers[1:], strict=True
    ):
        count = int(rng.integers(0, 9))
        lists.append(count)
        for _ in range(count):
            for rank, row in enumerate(rng.permutation(np.arange(first, end))[:5]):
                clicked = rng.random() < curve[rank] * trial.relevance[row]
                trial.stats.counts[row, 0, rank] += 1
                trial.stats.counts[row, 1, rank] += clicked
                S[row] += clicked
                N[row] += 1
                exposed[row] += curve[rank]
    model = registry.parse("pbmucb:delta=1.5").learner(trial).update()
    bounds, rates = values(model.serve, model, trial), values(model.offline, model, trial)
    for row, query in enumerate(np.repeat(np.arange(24), trial.dataset.candidates)):
        if N[row] == 0:
            assert (bounds[row], rates[row]) == (UNSEEN, 0.0)
            continue
        delta = 1.5 * math.log(lists[query])
        width = math.sqrt(N[row] / exposed[row]) * math.sqrt(delta / (2 * exposed[row]))
        assert rates[row] == pytest.approx(S[row] / exposed[row], rel=1e-8)
        assert bounds[row] == pytest.approx(S[row] / exposed[row] + width, rel=1e-8)
    assert 0 < (N == 0).sum() < len(N)


def test_nothing_seen_is_above_what_was_not() -> None:
    """Even where users hardly ever look."""
    from ebrank.policy.scoring import scores
    from ebrank.priors import ItemPrior
    from ebrank.rankers.pbmucb import BOUND

    stats = BehaviorStats.of(np.array([[1], [10**9]]), np.array([[1], [10**9]]))
    seen = scores(
        BOUND.bind(delta=100.0),
        ItemPrior(np.zeros(2), np.full(2, 50.0)),
        stats,
        Examination(curve=(0.0001,)),
    )
    assert np.all(seen < UNSEEN)


def test_an_item_nobody_has_seen_is_shown_first(make_trial: Callable[..., Trial]) -> None:
    trial = make_trial(4)
    trial.stats.counts[:-1, :, 0] = 1
    model = registry.parse("pbmucb").learner(trial).update()
    bounds = values(model.serve, model, trial)
    assert np.argmax(bounds) == len(bounds) - 1
