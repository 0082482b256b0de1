from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest

from ebrank.errors import ParameterError
from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from ebrank.rankers.online import BLOCK, OnlineLearner, first_weights, folded
from ebrank.rankers.pdgd import Pairs, PairwiseModel
from ebrank.sessions.linear import LoggingModel
from ebrank.typing import Bools, Floats


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
