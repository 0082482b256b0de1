"""CFTopK, CFRandomK and CFEpsilon: one learner, three ways of serving."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ebrank.errors import ParameterError
from ebrank.kernels import streams
from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from ebrank.rankers.counterfactual import LeastSquares
from ebrank.rankers.model import ScoreModel
from tests.rankers.scoring import values

MakeTrial = Callable[..., Trial]
Serve = Callable[[Trial, int], None]

NAMES = ["cftopk", "cfrandomk", "cfepsilon"]
KEYS = [np.uint64(3), np.uint64(2**63 + 11)]


def learned(text: str, trial: Trial) -> ScoreModel:
    return registry.parse(text).learner(trial).update()


def behavior_feature(trial: Trial, row: int | np.integer, behavior: str, default: float) -> float:
    s = trial.sums()
    if s.shown[row] == 0:
        return default
    if behavior == "ips":
        return float(s.weighted_clicks[row] / s.shown[row])
    return float(s.clicks[row] / s.exposure[row])


@pytest.mark.parametrize("default", ["zero", "mean"])
@pytest.mark.parametrize("behavior", ["exposure", "ips"])
@pytest.mark.parametrize("name", NAMES)
def test_offline_score_of_concatenated_features(
    make_trial: MakeTrial, serve: Serve, name: str, behavior: str, default: str
) -> None:
    trial = make_trial(1)
    serve(trial, 0)
    model = learned(f"{name}:features=concate,behavior={behavior},default={default}", trial)
    assert model.weights is not None
    squares = LeastSquares(trial, behavior, "one")  # type: ignore[arg-type]
    squares.see()
    linear = squares.solve(concatenate=True)
    np.testing.assert_array_equal(model.weights, [*linear.weights, linear.behavior])
    data = trial.dataset
    split = np.repeat(data.query_splits, data.candidates)
    train = np.flatnonzero((split == 0) & (trial.stats.shown > 0))
    mean = float(np.mean([behavior_feature(trial, i, behavior, np.nan) for i in train]))
    unseen = mean if default == "mean" else 0.0
    expected = [
        float(data.features[i].astype(np.float64) @ linear.weights)
        + linear.intercept
        + linear.behavior * behavior_feature(trial, i, behavior, unseen)
        for i in range(data.n_rows)
    ]
    found = values(model.offline, model, trial)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_without_behavior_clicks_change_no_score_until_the_next_update(
    make_trial: MakeTrial, serve: Serve, name: str
) -> None:
    trial = make_trial(2)
    serve(trial, 0)
    ranker = registry.parse(name)
    assert ranker.setting == "none"
    learner = ranker.learner(trial)
    model = learner.update()
    assert model.weights is not None
    assert len(model.weights) == trial.dataset.n_features
    squares = LeastSquares(trial, "exposure", "one")
    squares.see()
    linear = squares.solve(concatenate=False)
    np.testing.assert_array_equal(model.a, squares.scores(linear))
    serve(trial, 1)
    scores = values(model.offline, model, trial)
    np.testing.assert_array_equal(scores, model.a)
    assert np.any(learner.update().a != model.a)


def test_topk_serves_what_it_learned(make_trial: MakeTrial, serve: Serve) -> None:
    trial = make_trial(3)
    serve(trial, 0)
    for text in ("cftopk", "cftopk:features=concate", "cftopk:features=concate,behavior=ips"):
        model = learned(text, trial)
        assert not model.noisy
        assert model.serve is model.offline


@pytest.mark.parametrize("features", ["none", "concate"])
def test_randomk_serves_a_draw_whatever_it_learned(
    make_trial: MakeTrial, serve: Serve, features: str
) -> None:
    trial = make_trial(4)
    serve(trial, 0)
    model = learned(f"cfrandomk:features={features}", trial)
    greedy = learned(f"cftopk:features={features}", trial)
    assert model.noisy
    assert model.offline.formula is greedy.offline.formula
    np.testing.assert_array_equal(model.offline.parameters, greedy.offline.parameters)
    np.testing.assert_array_equal(model.a, greedy.a)
    for key in KEYS:
        served = values(model.serve, model, trial, key)
        np.testing.assert_array_equal(served, streams.uniform(key))


@pytest.mark.parametrize("noise", [0.0, 1.0, 0.25])
@pytest.mark.parametrize("behavior", ["exposure", "ips"])
@pytest.mark.parametrize("features", ["none", "concate"])
def test_epsilon_adds_noise_to_what_topk_serves(
    make_trial: MakeTrial, serve: Serve, features: str, behavior: str, noise: float
) -> None:
    trial = make_trial(5)
    serve(trial, 0)
    setting = f"features={features},behavior={behavior}"
    model = learned(f"cfepsilon:{setting},noise={noise}", trial)
    greedy = learned(f"cftopk:{setting}", trial)
    assert model.noisy
    plain = values(greedy.serve, greedy, trial)
    offline = values(model.offline, model, trial)
    np.testing.assert_array_equal(offline, plain)
    for key in KEYS:
        served = values(model.serve, model, trial, key)
        np.testing.assert_allclose(served, np.array(plain) + noise * streams.uniform(key))


@pytest.mark.parametrize("name", [*NAMES, "prior", "ucbrank"])
def test_weight_by_impressions_changes_the_fit(
    make_trial: MakeTrial, serve: Serve, name: str
) -> None:
    trial = make_trial(6)
    serve(trial, 0)
    serve(trial, 1)
    one, shown = learned(name, trial), learned(f"{name}:weight=shown", trial)
    assert np.max(np.abs(one.a - shown.a)) > 1e-3


@pytest.mark.parametrize("name", [*NAMES, "prior", "ucbrank"])
def test_before_anything_was_shown_scores_are_equal(make_trial: MakeTrial, name: str) -> None:
    model = learned(name, make_trial(7))
    assert np.all(model.a == 0.0)
    assert np.all(model.b == 0.0)
    assert model.weights is not None
    assert np.all(model.weights == 0.0)


@pytest.mark.parametrize(
    "text",
    [
        "cftopk:features=non-concate",
        "cfrandomk:default=one",
        "cfepsilon:noise=-1",
        "cfepsilon:noise=nan",
        "cftopk:noise=1",
        "prior:features=none",
        "prior:behavior=clicks",
        "ucbrank:epsilon=-0.1",
        "ucbrank:shown=seen",
        "ucbrank:weight=2",
    ],
)
def test_wrong_parameters_are_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        registry.parse(text)
