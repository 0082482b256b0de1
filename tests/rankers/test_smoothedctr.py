from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from tests.rankers.scoring import values


@pytest.mark.parametrize("strength", [0.5, 5.0])
def test_click_rates_are_pulled_towards_that_of_train_queries(
    make_trial: Callable[..., Trial], serve: Callable[[Trial, int], None], strength: float
) -> None:
    trial = make_trial(1)
    learner = registry.parse(f"smoothedctr:strength={strength}").learner(trial)
    model = learner.update()
    assert set(values(model.serve, model, trial)) == {0.0}
    serve(trial, 0)
    model = learner.update()
    shown, clicks = trial.stats.counts[:, 0].sum(axis=1), trial.stats.counts[:, 1].sum(axis=1)
    train = np.repeat(trial.dataset.query_splits == 0, trial.dataset.candidates)
    mean = clicks[train].sum() / shown[train].sum()
    assert mean != clicks.sum() / shown.sum()
    expected = (clicks + strength * mean) / (shown + strength)
    assert values(model.serve, model, trial) == pytest.approx(expected.tolist(), rel=1e-12)
    assert values(model.offline, model, trial) == values(model.serve, model, trial)
