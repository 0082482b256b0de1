from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from ebrank.rankers.dbgd import DBGD, MGD, DuelModel, Duels
from ebrank.rankers.kernels import duels
from tests.kept import kept
from tests.simulation.reference_online import unit_vector

direction_key = kept(duels.direction_key)


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
    several = registry.parse("mgd")
    assert isinstance(several, MGD)
    assert (several.candidates, several.rate, several.decay, several.step) == (9, 0.1, 0.99999, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("dbgd:step=0.25,credit=all", (1, 0.25, False)), ("mgd:candidates=4", (4, 1.0, True))],
)
def test_candidates_duel(
    make_trial: Callable[..., Trial], text: str, expected: tuple[int, float, bool]
) -> None:
    model = registry.parse(text).learner(make_trial()).update()
    assert isinstance(model, DuelModel)
    assert (model.candidates, model.step, model.disputed_only) == expected


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
