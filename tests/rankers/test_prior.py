from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import ebrank
from ebrank.evidence import BehaviorStats
from ebrank.rankers import registry
from ebrank.rankers.base import Trial, TrialLearner
from ebrank.rankers.bm25 import FIXED
from ebrank.rankers.counterfactual import ClickRate, LeastSquares, Weight
from ebrank.rankers.model import ScoreModel
from ebrank.rankers.prior import PREDICTED
from ebrank.simulation.engine import simulate
from tests.rankers.scoring import values

MakeTrial = Callable[..., Trial]
Serve = Callable[[Trial, int], None]


@pytest.mark.parametrize("behavior", ["exposure", "ips"])
@pytest.mark.parametrize("weight", ["one", "shown"])
def test_predicted_behavior_stands_in_where_an_item_was_never_shown(
    make_trial: MakeTrial, serve: Serve, behavior: ClickRate, weight: Weight
) -> None:
    trial = make_trial(1)
    serve(trial, 0)
    model = registry.parse(f"prior:behavior={behavior},weight={weight}").learner(trial).update()
    squares = LeastSquares(trial, behavior, weight)
    squares.see()
    predictor, full = squares.solve(concatenate=False), squares.solve(concatenate=True)
    np.testing.assert_array_equal(model.weights, [*full.weights, full.behavior])
    assert not model.noisy
    assert model.cold is not None
    s = trial.sums()
    assert 0 < np.count_nonzero(s.shown) < len(s.shown)
    served, offline = values(model.serve, model, trial), values(model.offline, model, trial)
    nobody = replace(trial, stats=BehaviorStats.zeros(len(s.shown), slots=trial.stats.slots))
    cold = values(model.cold, model, nobody)
    for i, x in enumerate(trial.dataset.features.astype(np.float64)):
        prediction = float(x @ predictor.weights) + predictor.intercept
        xb = prediction
        if s.shown[i] > 0:
            rate = {
                "ips": s.weighted_clicks[i] / s.shown[i],
                "exposure": s.clicks[i] / s.exposure[i],
            }
            xb = float(rate[behavior])
        expected = float(x @ full.weights) + full.intercept + full.behavior * xb
        assert served[i] == pytest.approx(expected, rel=1e-10, abs=1e-12)
        assert offline[i] == pytest.approx(expected, rel=1e-10, abs=1e-12)
        assert cold[i] == pytest.approx(prediction, rel=1e-10, abs=1e-12)


@dataclass
class ContraryWhenCold:
    """Ranks best first, but worst first where behavior is missing."""

    trial: Trial

    def update(self) -> ScoreModel:
        best = self.trial.relevance
        return ScoreModel(a=best, b=-best, serve=FIXED, offline=FIXED, cold=PREDICTED)


class ContraryRanker:
    def learner(self, trial: Trial) -> TrialLearner:
        return ContraryWhenCold(trial)


def test_cold_ndcg_is_measured_by_the_cold_formula() -> None:
    data = ebrank.load("mq2007-like", scale=0.02)
    contrary: Any = ContraryRanker()
    result = simulate(data, contrary, seed=1)
    oracle = simulate(data, registry.parse("oracle"), seed=1)
    np.testing.assert_array_equal(result.warm_ndcg, oracle.warm_ndcg)
    assert np.all(result.cold_ndcg < 0.5 * oracle.cold_ndcg)


def test_cold_items_are_ranked_as_without_behavior(make_trial: MakeTrial, serve: Serve) -> None:
    trial = make_trial(2)
    serve(trial, 0)
    prior = registry.parse("prior").learner(trial).update()
    plain = registry.parse("cftopk").learner(trial).update()
    np.testing.assert_array_equal(prior.b, plain.a)
