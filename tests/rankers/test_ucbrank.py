from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ebrank.evidence import BehaviorStats
from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from tests.rankers.scoring import values

MakeTrial = Callable[..., Trial]
Serve = Callable[[Trial, int], None]


@pytest.mark.parametrize("behavior", ["exposure", "ips"])
@pytest.mark.parametrize("shown", ["shown", "clicked"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_features_before_clicks_after_and_a_bonus(
    make_trial: MakeTrial, serve: Serve, behavior: str, shown: str, epsilon: float
) -> None:
    trial = make_trial(1)
    serve(trial, 0)
    text = f"ucbrank:behavior={behavior},shown={shown},epsilon={epsilon}"
    model = registry.parse(text).learner(trial).update()
    plain = registry.parse("cftopk").learner(trial).update()
    np.testing.assert_array_equal(model.weights, plain.weights)
    assert not model.noisy
    s = trial.sums()
    served, offline = values(model.serve, model, trial), values(model.offline, model, trial)
    situations = set()
    for i in range(len(s.shown)):
        n, c, weighted, e = (
            int(s.shown[i]),
            int(s.clicks[i]),
            float(s.weighted_clicks[i]),
            float(s.exposure[i]),
        )
        believed = c > 0 if shown == "clicked" else n > 0
        situations.add((n > 0, c > 0))
        relevance = plain.a[i]
        if believed:
            relevance = weighted / n if behavior == "ips" else c / e
        bonus = epsilon / (math.sqrt(n) if n > 0 else 0.001)
        assert served[i] == pytest.approx(relevance + bonus, rel=1e-12)
        assert offline[i] == pytest.approx(relevance, rel=1e-12)
    assert situations == {(False, False), (True, False), (True, True)}


def test_cold_items_are_ranked_by_features(make_trial: MakeTrial, serve: Serve) -> None:
    trial = make_trial(2)
    serve(trial, 0)
    model = registry.parse("ucbrank").learner(trial).update()
    nobody = replace(trial, stats=BehaviorStats.zeros(len(model.a), slots=trial.stats.slots))
    assert values(model.offline, model, nobody) == model.a.tolist()
