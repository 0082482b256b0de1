"""A small trial whose items users come to see: queries of all splits in a mixed order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ebrank.evidence import BehaviorStats, Examination
from ebrank.lab.rankers.base import Trial
from tests.lab.simulation.tiny import tiny

SPLITS_IN_TURN = (0, 1, 0, 2, 0, 0)  # train rows are not contiguous
RANKS = 5


@pytest.fixture
def make_trial() -> Callable[..., Trial]:
    """Return a function that makes a trial nobody has been served in."""

    def make(seed: int = 0, *, queries: int = 24, features: int = 5, threads: int = 2) -> Trial:
        sizes = np.random.default_rng(seed).integers(1, 30, queries).tolist()
        splits = np.resize(np.array(SPLITS_IN_TURN, np.int8), queries)
        dataset = tiny(seed, sizes, n_features=features, query_splits=splits)
        relevance = 0.1 + 0.3 * dataset.labels.astype(np.float64)
        stats = BehaviorStats.zeros(dataset.n_rows, slots=RANKS)
        return Trial(dataset, relevance, stats, Examination(), np.uint64(seed), threads)

    return make


@pytest.fixture
def serve() -> Callable[[Trial, int], None]:
    """Return a function that shows about a third of the items a few times."""

    def show(trial: Trial, seed: int) -> None:
        rng = np.random.default_rng(seed)
        stats = trial.stats
        for _ in range(4):
            rows = rng.choice(len(stats), len(stats) // 10, replace=False)
            slots = rng.integers(0, RANKS, len(rows))
            examined = trial.examination(slots + 1)
            clicked = rng.random(len(rows)) < examined * trial.relevance[rows]
            stats.counts[rows, 0, slots] += 1
            stats.counts[rows, 1, slots] += clicked

    return show
