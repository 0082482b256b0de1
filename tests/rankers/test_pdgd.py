from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from ebrank.rankers.pdgd import PDGD, Pairs, PairwiseModel


def test_declared_as_the_protocol_says() -> None:
    ranker = registry.parse("pdgd")
    assert ranker == PDGD(
        features="none",
        behavior="exposure",
        default="zero",
        learn_from="train",
        rate=0.1,
        decay=0.9999,
    )
    assert PDGD.settings == ("none", "concate")


def test_steps_go_along_weighted_items(make_trial: Callable[..., Trial]) -> None:
    trial = make_trial()
    learner = registry.parse("pdgd:features=concate,rate=1.0,decay=0.5").learner(trial)
    model = learner.update()
    assert isinstance(model, PairwiseModel)
    assert model.weights is not None
    rows = np.array([[0, 3], [4, 5], [6, 1]])
    weights = np.array([[0.2, -0.2], [0.0, 0.0], [-0.1, 0.1]])
    behavior = np.array([[0.5, 0.0], [9.0, 9.0], [0.25, 1.0]])
    # the second session has a pair whose weight underflowed: it counts as a step all the same
    model.lessons.append(Pairs(rows, weights, behavior, np.array([True, True, True])))
    x = trial.dataset.features.astype(np.float64)
    nb = 0.2 * (x[0] - x[3]) + 0.25 * 0.1 * (x[1] - x[6])
    b = 0.2 * 0.5 + 0.25 * 0.1 * (1.0 - 0.25)
    expected = model.weights + np.append(nb, b)
    learned = learner.update().weights
    assert learned is not None
    np.testing.assert_allclose(learned, expected, rtol=1e-12)
