from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np

from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from ebrank.rankers.dbgd import DBGD, DuelModel, Duels
from ebrank.rankers.kernels import directions
from tests.kept import kept
from tests.simulation.reference_online import unit_vector

direction_key = kept(directions.direction_key)


def test_declared_as_the_protocol_says() -> None:
    ranker = registry.parse("dbgd")
    assert ranker == DBGD(
        features="none",
        behavior="exposure",
        default="zero",
        learn_from="train",
        rate=0.1,
        decay=0.99999,
        step=1.0,
        credit="disputed",
    )
    assert DBGD.settings == ("none", "concate")
    assert DBGD(features="concate").setting == "concate"


def test_text_and_pickle_bring_it_back() -> None:
    ranker = DBGD(features="concate", step=0.5)
    assert registry.parse(str(ranker)) == ranker
    assert pickle.loads(pickle.dumps(ranker)) == ranker


def test_one_candidate_duels(make_trial: Callable[..., Trial]) -> None:
    model = registry.parse("dbgd:step=0.25,credit=all").learner(make_trial()).update()
    assert isinstance(model, DuelModel)
    assert (model.candidates, model.step, model.disputed_only) == (1, 0.25, False)


def test_steps_go_along_the_mean_of_the_winners(make_trial: Callable[..., Trial]) -> None:
    learner = registry.parse("dbgd:rate=2.0,decay=0.25").learner(make_trial())
    model = learner.update()
    assert isinstance(model, DuelModel)
    assert model.weights is not None
    keys = np.array([11, 12, 13], np.uint64)
    wins = np.array([[True, True], [False, False], [False, True]])
    model.lessons.append(Duels(keys, wins))
    u = {
        (t, c): np.array(unit_vector(int(direction_key(keys[t], c)), 5))
        for t in range(3)
        for c in range(2)
    }
    steps = 2.0 * (u[0, 0] + u[0, 1]) / 2 + 0.5 * u[2, 1]
    learned = learner.update().weights
    assert learned is not None
    np.testing.assert_allclose(learned, model.weights + steps, rtol=1e-12)
