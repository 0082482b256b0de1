"""What the online rankers share: a model that serves, and one that steps after every session.

The logging model makes the lists and stays as it is until the next update. Each session's gradient
is taken at the logging model, and the learning model steps along it, with a rate that decays from
step to step and starts again at every update; then the learning model takes over. Since gradients
do not depend on the learning model, sessions only record what they taught (`Duels`, `Pairs`), and
the steps are summed up at the update, in fixed blocks: the same bits on any number of cores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from ebrank.errors import ParameterError
from ebrank.kernels.arrays import read_only
from ebrank.kernels.threads import sum_blocks
from ebrank.lab.rankers.base import ScoreModel, Trial, param
from ebrank.lab.rankers.counterfactual import CONCATENATED, ClickRate
from ebrank.typing import Bools, Floats

if TYPE_CHECKING:
    from ebrank.lab.sessions.linear import LoggingModel

BLOCK = 2048
LARGEST_WEIGHT = 1e100
"""Below it, no dot product with float32 features comes near overflow."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OnlineModel(ScoreModel):
    """A logging model; its sessions append what they taught to `lessons`."""

    linear: LoggingModel
    lessons: list[Lesson] = field(default_factory=list)


class Lesson(Protocol):
    """What some sessions taught, in time order."""

    @property
    def stepped(self) -> Bools:
        """Whether a session has a gradient."""
        ...

    def gradient_sum(self, linear: LoggingModel, rates: Floats, start: int, stop: int) -> Floats:
        """Return Σ rate·gradient over the sessions start..stop."""
        ...


@dataclass(frozen=True)
class OnlineParameters:
    """The parameters all online rankers have."""

    features: Literal["none", "concate"] = param(
        "none", "leave x^b out, or concatenate it to the features", choices=("none", "concate")
    )
    behavior: ClickRate = param(
        "exposure", "x^b: c of E (exposure) or C of n (ips)", choices=("exposure", "ips")
    )
    rate: float = param(0.1, "learning rate of the first step after an update", at_least=0)
    decay: float = param(
        0.99999, "factor of the rate from one step to the next", at_least=0, at_most=1
    )


@dataclass
class OnlineLearner:
    """The learning model of one trial."""

    parameters: OnlineParameters
    trial: Trial
    wrap: Callable[..., OnlineModel]
    weights: Floats = field(init=False)
    model: OnlineModel | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Start from random weights between 0 and 1."""
        from ebrank.kernels import streams

        n = self.trial.dataset.n_features + (self.parameters.features == "concate")
        root = np.uint64(streams.child(self.trial.key, streams.WEIGHTS))
        self.weights = streams.uniforms(root, 0, n)

    def update(self) -> OnlineModel:
        """Take the steps of the sessions since the last update; the learned model then serves."""
        if self.model is not None:
            rate, decay = self.parameters.rate, self.parameters.decay
            with np.errstate(over="ignore", invalid="ignore"):  # raised below, in words
                steps = folded(self.model, rate, decay, len(self.weights), self.trial.threads)
                self.weights = self.weights + steps
            if not np.all(np.abs(self.weights) < LARGEST_WEIGHT):
                raise ParameterError(
                    f"{self.parameters}: the learned weights overflow; "
                    f"lower rate ({rate:g}) or decay ({decay:g})"
                )
        self.model = self._logging_model()
        return self.model

    def _logging_model(self) -> OnlineModel:
        """Return a model that serves with the current weights."""
        from ebrank.lab.sessions.linear import LoggingModel
        from ebrank.model.prior.learners.linear import linear_scores

        data, parameters = self.trial.dataset, self.parameters
        n = data.n_features
        theta = np.append(self.weights[:n], 0.0)  # no intercept: it would not change an order
        scores = linear_scores(data.features, theta, self.trial.threads)
        behavior_weight = float(self.weights[n]) if len(self.weights) > n else 0.0
        score = CONCATENATED[parameters.behavior].bind(w=behavior_weight)
        return self.wrap(
            a=scores,
            b=np.zeros(1),
            serve=score,
            offline=score,
            weights=self.weights,
            linear=LoggingModel(
                features=read_only(data.features),
                scores=scores,
                behavior_weight=behavior_weight,
                concatenated=len(self.weights) > n,
                ips=parameters.behavior == "ips",
                learns=data.query_splits == 0,
            ),
        )


def step_rates(stepped: Bools, rate: float, decay: float) -> Floats:
    """Return the rate of each session's step, 0 if it takes none; each step lowers the next.

    >>> step_rates(np.array([True, False, True, True]), 0.1, 0.5).tolist()
    [0.1, 0.0, 0.05, 0.025]
    """
    factors = np.full(np.count_nonzero(stepped), decay)
    factors[:1] = rate
    rates = np.zeros(len(stepped))
    rates[stepped] = np.multiply.accumulate(factors)
    return rates


def folded(model: OnlineModel, rate: float, decay: float, n: int, threads: int | None) -> Floats:
    """Return Σ rate·decay^j·gradient over a model's lessons; j counts the steps before."""
    total = np.zeros(n)
    for lesson in model.lessons:
        stepped = lesson.stepped
        rates = step_rates(stepped, rate, decay)
        rate *= decay ** int(stepped.sum())
        work = partial(lesson.gradient_sum, model.linear, rates)
        total = sum_blocks(work, total, total=len(rates), block=BLOCK, threads=threads)
    return total
