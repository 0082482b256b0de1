from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from tests.rankers.scoring import values

MakeTrial = Callable[..., Trial]
Serve = Callable[[Trial, int], None]


def by_impressions(trial: Trial, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """Return A and Σ r·z of Algorithm 1, adding one impression after the other."""
    data = trial.dataset
    z = np.column_stack([data.features.astype(np.float64), np.ones(data.n_rows)])
    train = np.repeat(data.query_splits == 0, data.candidates)
    p = trial.examination(np.arange(1, trial.stats.slots + 1))
    A, r = ridge * np.eye(z.shape[1]), np.zeros(z.shape[1])
    for row in np.flatnonzero(train):
        for rank in range(trial.stats.slots):
            shown, clicked = trial.stats.counts[row, :, rank]
            for impression in range(shown):
                A += p[rank] * np.outer(z[row], z[row])
                r += p[rank] * ((impression < clicked) / p[rank]) * z[row]
    return A, r


@pytest.mark.parametrize(("alpha", "ridge"), [(0.0, 1.0), (0.7, 0.1)])
def test_scores_are_those_of_algorithm_1(
    make_trial: MakeTrial, serve: Serve, alpha: float, ridge: float
) -> None:
    trial = make_trial(2)
    learner = registry.parse(f"linucb:alpha={alpha},ridge={ridge}").learner(trial)
    z = np.column_stack([trial.dataset.features.astype(np.float64), np.ones(len(trial.relevance))])
    for seed in range(3):
        model = learner.update()
        A, r = by_impressions(trial, ridge)
        inverse = np.linalg.inv(A)
        estimate = z @ inverse @ r
        width = np.sqrt(np.einsum("ij,jk,ik->i", z, inverse, z))
        offline, served = values(model.offline, model, trial), values(model.serve, model, trial)
        np.testing.assert_allclose(offline, estimate, atol=1e-7)
        np.testing.assert_allclose(served, estimate + alpha * width, atol=1e-7)
        assert model.weights is not None
        np.testing.assert_allclose(model.weights, (inverse @ r)[:-1], atol=1e-7)
        serve(trial, seed)


def test_items_already_seen_are_explored_less(make_trial: MakeTrial, serve: Serve) -> None:
    trial = make_trial(5)
    learner = registry.parse("linucb").learner(trial)
    before = learner.update().b
    serve(trial, 1)
    assert np.all(learner.update().b < before)


def test_the_number_of_threads_changes_nothing(make_trial: MakeTrial, serve: Serve) -> None:
    models = []
    for threads in (1, 3):
        trial = make_trial(6, queries=900, threads=threads)
        serve(trial, 1)
        models.append(registry.parse("linucb").learner(trial).update())
    assert models[0].a.tobytes() == models[1].a.tobytes()
    assert models[0].b.tobytes() == models[1].b.tobytes()
