from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest

from ebrank.errors import ParameterError
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Trial
from ebrank.lab.rankers.online import BLOCK, OnlineLearner, folded
from ebrank.lab.sessions.linear import LoggingModel
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
