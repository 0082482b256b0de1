from __future__ import annotations

import pickle
from collections.abc import Callable

from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from ebrank.rankers.dbgd import DuelModel
from ebrank.rankers.mgd import MGD


def test_declared_as_the_protocol_says() -> None:
    ranker = registry.parse("mgd")
    assert isinstance(ranker, MGD)
    assert (ranker.candidates, ranker.rate, ranker.decay, ranker.step) == (9, 0.1, 0.99999, 1.0)
    assert (ranker.features, ranker.learn_from) == ("none", "train")
    assert MGD.settings == ("none", "concate")


def test_text_and_pickle_bring_it_back() -> None:
    ranker = MGD(features="concate", candidates=3)
    assert registry.parse(str(ranker)) == ranker
    assert pickle.loads(pickle.dumps(ranker)) == ranker


def test_many_candidates_are_compared(make_trial: Callable[..., Trial]) -> None:
    model = registry.parse("mgd:candidates=4").learner(make_trial()).update()
    assert isinstance(model, DuelModel)
    assert (model.candidates, model.step, model.disputed_only) == (4, 1.0, True)
