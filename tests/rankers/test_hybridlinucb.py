from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from tests.rankers.scoring import values

MakeTrial = Callable[..., Trial]
Serve = Callable[[Trial, int], None]


def by_algorithm_2(
    trial: Trial, alpha: float, ridge: float, item_ridge: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return shared weights, means and bounds of all rows, matrix by matrix as in the paper.

    Impressions are added one after the other. x is the arm's own feature, 1; with the identity
    replaced by a ridge, lines are those of Algorithm 2. Arms of other queries leave A0 alone.
    """
    data = trial.dataset
    z = np.column_stack([data.features.astype(np.float64), np.ones(data.n_rows)])
    train = np.repeat(data.query_splits == 0, data.candidates)
    p = trial.examination(np.arange(1, trial.stats.slots + 1))
    x, k = np.ones(1), z.shape[1]
    A0, b0 = ridge * np.eye(k), np.zeros(k)
    arms = []
    for row in range(data.n_rows):
        A, B, b = item_ridge * np.eye(1), np.zeros((1, k)), np.zeros(1)
        for rank in range(trial.stats.slots):
            shown, clicked = trial.stats.counts[row, :, rank]
            for impression in range(shown):
                reward = (impression < clicked) / p[rank]
                inverse = np.linalg.inv(A)
                if train[row]:
                    A0 += B.T @ inverse @ B
                    b0 += B.T @ inverse @ b
                A += p[rank] * np.outer(x, x)
                B += p[rank] * np.outer(x, z[row])
                b += p[rank] * reward * x
                inverse = np.linalg.inv(A)
                if train[row]:
                    A0 += p[rank] * np.outer(z[row], z[row]) - B.T @ inverse @ B
                    b0 += p[rank] * reward * z[row] - B.T @ inverse @ b
        arms.append((A, B, b))
    shared = np.linalg.inv(A0)
    beta = shared @ b0
    means, bounds = [], []
    for own, (A, B, b) in zip(z, arms, strict=True):
        inverse = np.linalg.inv(A)
        theta = inverse @ (b - B @ beta)
        s = (
            own @ shared @ own
            - 2 * own @ shared @ B.T @ inverse @ x
            + x @ inverse @ x
            + x @ inverse @ B @ shared @ B.T @ inverse @ x
        )
        means.append(own @ beta + x @ theta)
        bounds.append(means[-1] + alpha * np.sqrt(s))
    return beta, np.array(means), np.array(bounds)


@pytest.mark.parametrize(("alpha", "ridge", "item_ridge"), [(0.0, 1.0, 1.0), (0.7, 0.1, 4.0)])
def test_scores_are_those_of_algorithm_2(
    make_trial: MakeTrial, serve: Serve, alpha: float, ridge: float, item_ridge: float
) -> None:
    trial = make_trial(2)
    text = f"hybridlinucb:alpha={alpha},ridge={ridge},item_ridge={item_ridge}"
    learner = registry.parse(text).learner(trial)
    for seed in range(3):
        model = learner.update()
        beta, means, bounds = by_algorithm_2(trial, alpha, ridge, item_ridge)
        offline, served = values(model.offline, model, trial), values(model.serve, model, trial)
        np.testing.assert_allclose(offline, means, atol=1e-6)
        np.testing.assert_allclose(served, bounds, atol=1e-6)
        assert model.weights is not None
        np.testing.assert_allclose(model.weights, beta[:-1], atol=1e-6)
        serve(trial, seed)


def test_items_already_seen_are_explored_less(make_trial: MakeTrial, serve: Serve) -> None:
    trial = make_trial(5)
    learner = registry.parse("hybridlinucb").learner(trial)
    before = learner.update().b
    serve(trial, 1)
    assert np.all(learner.update().b < before)


def test_the_number_of_threads_changes_nothing(make_trial: MakeTrial, serve: Serve) -> None:
    models = []
    for threads in (1, 3):
        trial = make_trial(6, queries=900, threads=threads)
        serve(trial, 1)
        models.append(registry.parse("hybridlinucb").learner(trial).update())
    assert models[0].a.tobytes() == models[1].a.tobytes()
    assert models[0].b.tobytes() == models[1].b.tobytes()
