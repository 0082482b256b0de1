from __future__ import annotations

import numpy as np

from ebrank.evidence import BehaviorStats, Examination
from ebrank.rankers.base import Trial
from ebrank.rankers.bm25 import BM25, FIXED, fixed_model
from tests.simulation.tiny import tiny


def test_scores_are_the_baselines_whatever_users_do() -> None:
    data = tiny()
    stats = BehaviorStats.zeros(data.n_rows)
    trial = Trial(data, np.ones(data.n_rows), stats, Examination(), np.uint64(1))
    learner = BM25().learner(trial)
    before = learner.update()
    stats.counts[:, 0, 2] = 9
    stats.counts[:, 1, 2] = 3
    after = learner.update()
    for model in (before, after):
        assert model.a.tolist() == data.baseline.astype(np.float64).tolist()
        assert model.weights is None
        assert not model.noisy


def test_a_fixed_model_serves_what_it_is_measured_by() -> None:
    model = fixed_model(np.array([3.0, 1.0]))
    assert model.serve is model.offline is FIXED
    assert FIXED.formula(a=3.0, b=0.0, shown=5.0, clicks=2.0, key=np.uint64(7)) == 3.0
