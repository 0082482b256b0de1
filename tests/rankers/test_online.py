from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.errors import ParameterError
from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from ebrank.rankers.online import (
    BLOCK,
    OnlineLearner,
    first_weights,
    folded,
    step_rates,
)
from ebrank.sessions.linear import LoggingModel
from ebrank.testing import plain
from ebrank.typing import Bools, Floats
from tests.rankers.scoring import values

VARIANTS = [
    f"{name}:features={setting}"
    for name in ("dbgd", "mgd", "pdgd")
    for setting in ("none", "concate")
]


@dataclass
class GivenGradients:
    """A lesson whose gradients are known."""

    stepped: Bools
    gradients: Floats

    def gradient_sum(self, linear: LoggingModel, rates: Floats, start: int, stop: int) -> Floats:
        steps = rates[start:stop, None] * self.gradients[start:stop]
        return np.asarray(steps.sum(axis=0))


def learner_of(text: str, trial: Trial) -> OnlineLearner:
    return cast(OnlineLearner, registry.parse(text).learner(trial))


def random_lessons(sizes: tuple[int, ...], n: int, seed: int) -> list[GivenGradients]:
    rng = np.random.default_rng(seed)
    return [GivenGradients(rng.random(size) < 0.4, rng.normal(size=(size, n))) for size in sizes]


def naive_steps(lessons: list[GivenGradients], rate: float, decay: float, n: int) -> Floats:
    """Step in order of time, the rate decaying with each step taken."""
    w = np.zeros(n)
    for lesson in lessons:
        for stepped, gradient in zip(lesson.stepped, lesson.gradients, strict=True):
            if stepped:
                w = w + rate * gradient
                rate *= decay
    return w


@pytest.mark.parametrize("sizes", [(), (0,), (1,), (40,), (3, 0, 9), (2 * BLOCK + 7, 100)])
@pytest.mark.parametrize("decay", [1.0, 0.9, 0.9999])
def test_folding_is_stepping_in_order_of_time(
    make_trial: Callable[..., Trial], sizes: tuple[int, ...], decay: float
) -> None:
    model = learner_of("pdgd", make_trial()).update()
    lessons = random_lessons(sizes, 5, seed=len(sizes))
    model.lessons.extend(lessons)
    expected = naive_steps(lessons, 0.1, decay, 5)
    results = [folded(model, 0.1, decay, 5, threads) for threads in (1, 2, 7, None)]
    np.testing.assert_allclose(results[0], expected, rtol=1e-9, atol=1e-12)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("text", VARIANTS)
def test_first_weights_are_the_seeds_uniform_numbers(
    text: str, make_trial: Callable[..., Trial]
) -> None:
    trial = make_trial(seed=4)
    model = learner_of(text, trial).update()
    n = trial.dataset.n_features + text.endswith("concate")
    root = plain.child(int(trial.key), plain.WEIGHTS)
    expected = [plain.uniform(plain.child(root, j)) for j in range(n)]
    assert model.weights is not None
    assert model.weights.tolist() == expected
    assert first_weights(trial.key, n).tolist() == expected


@pytest.mark.parametrize("text", VARIANTS)
def test_behavior_alone_teaches_nothing(
    text: str, make_trial: Callable[..., Trial], serve: Callable[[Trial, int], None]
) -> None:
    """What others served, BM25 say, is not learned from; without sessions nothing changes."""
    trial = make_trial()
    learner = learner_of(text, trial)
    serve(trial, 1)
    before = learner.update().weights
    serve(trial, 2)
    np.testing.assert_array_equal(learner.update().weights, before)


def test_the_rate_starts_anew_at_every_update(make_trial: Callable[..., Trial]) -> None:
    learner = learner_of("pdgd:decay=0.5,rate=0.3", make_trial())
    weights = first_weights(learner.trial.key, 5)
    for seed in range(3):
        lessons = random_lessons((30,), 5, seed)
        learner.update().lessons.extend(lessons)
        np.testing.assert_allclose(learner.weights, weights, rtol=1e-12)
        weights = weights + naive_steps(lessons, 0.3, 0.5, 5)
    learner.update()
    np.testing.assert_allclose(learner.weights, weights, rtol=1e-12)


@pytest.mark.parametrize("default", ["zero", "mean"])
@pytest.mark.parametrize("behavior", ["exposure", "ips"])
def test_offline_scores_are_linear_in_features_and_behavior(
    behavior: str,
    default: str,
    make_trial: Callable[..., Trial],
    serve: Callable[[Trial, int], None],
) -> None:
    trial = make_trial()
    serve(trial, 1)
    text = f"mgd:features=concate,behavior={behavior},default={default}"
    model = learner_of(text, trial).update()
    stats = trial.sums()
    assert np.any(stats.shown == 0)
    assert model.offline is model.serve
    got = values(model.offline, model, trial)
    clicks, trials = stats.clicks, stats.exposure
    if behavior == "ips":
        clicks, trials = stats.weighted_clicks, stats.shown
    xb = np.divide(clicks, trials, out=np.zeros(len(clicks)), where=stats.shown > 0)
    if default == "mean":
        in_train = np.isin(np.arange(len(xb)), np.arange(len(xb))[trial.dataset.rows_in("train")])
        xb[stats.shown == 0] = xb[in_train & (stats.shown > 0)].mean()
        assert model.linear.unseen == pytest.approx(xb[stats.shown == 0][0])
    x = np.column_stack([trial.dataset.features.astype(np.float64), xb])
    np.testing.assert_allclose(got, x @ model.weights, rtol=1e-12)


def test_before_anything_was_shown_the_mean_is_zero(make_trial: Callable[..., Trial]) -> None:
    model = learner_of("pdgd:features=concate,default=mean", make_trial()).update()
    assert model.b.tolist() == [0.0]
    assert model.linear.unseen == 0.0


@pytest.mark.parametrize("gradient", [1.0, 1e-3])
def test_weights_that_overflow_are_blamed_on_the_rate(
    make_trial: Callable[..., Trial], gradient: float
) -> None:
    """Weights may be finite still where scores no longer are."""
    learner = learner_of("pdgd:rate=1e308,decay=1.0", make_trial())
    lesson = GivenGradients(np.ones(9, np.bool_), np.full((9, 5), gradient))
    learner.update().lessons.append(lesson)
    with pytest.raises(ParameterError, match=r"^pdgd:rate=1e\+308.*rate \(1e\+308\).*decay \(1\)"):
        learner.update()


def test_only_train_queries_teach_unless_all_may(make_trial: Callable[..., Trial]) -> None:
    trial = make_trial()
    train = learner_of("dbgd", trial).update().linear.learns
    np.testing.assert_array_equal(train, trial.dataset.query_splits == 0)
    assert learner_of("dbgd:learn_from=all", trial).update().linear.learns.all()


@pytest.mark.parametrize(
    "text",
    [
        "pdgd:features=non-concate",
        "pdgd:learn_from=test",
        "dbgd:behavior=clicks",
        "dbgd:credit=nobody",
        "dbgd:step=-1",
        "mgd:candidates=0",
        "mgd:candidates=1.5",
        "mgd:candidates=1001",
        "mgd:rate=nan",
        "pdgd:decay=2",
        "dbgd:decay=1.01",
        "mgd:decay=-0.1",
    ],
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=text.partition(":")[2].partition("=")[0]):
        registry.parse(text)


@given(st.lists(st.booleans(), max_size=40), st.floats(0, 2), st.floats(0, 1))
def test_each_step_taken_lowers_the_next_rate(
    stepped: list[bool], rate: float, decay: float
) -> None:
    rates = step_rates(np.array(stepped, np.bool_), rate, decay)
    taken = 0
    for got, step in zip(rates.tolist(), stepped, strict=True):
        expected = rate * decay**taken if step else 0.0
        assert np.isclose(got, expected, rtol=1e-12, atol=0) or abs(got - expected) < 1e-300
        taken += step
