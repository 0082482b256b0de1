"""What a ranker is, declared once: its name, its parameters, and the models that it learns.

A ranker is a frozen dataclass whose fields are its parameters; it makes a learner for each trial.
Between two updates of a model an item's score depends on the two numbers the model gave it and on
the behavior of users towards it; `ebrank.model.formula` says how.

To add one, write one file, in this folder or your own: `docs/rankers.md` shows how.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, TypeAlias

import numpy as np

from ebrank.environment.plugins import path_of
from ebrank.evidence import BehaviorStats, Examination, Sums
from ebrank.lab.data.dataset import Dataset
from ebrank.model.formula import Formula, ItemPrior, Score
from ebrank.parameters import Configured, Parameter, declared, param, to_text
from ebrank.typing import Floats

if TYPE_CHECKING:
    from ebrank.lab.sessions.session import Sessions

__all__ = ["Ranker", "ScoreModel", "Setting", "Trial", "TrialLearner", "param"]

Setting: TypeAlias = Literal["none", "concate", "non-concate"]

REGISTRY: dict[str, type[Ranker]] = {}
"""ebrank's own rankers; others are named by the path of their class."""


RunSessions: TypeAlias = Callable[[int, int], None]
"""Runs the sessions of a range of queries."""


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """A model that ranks by a formula.

    Attributes:
        a, b: the model's two numbers for each row of the dataset; b may hold one for all rows.
        serve: score that orders lists, exploration included.
        offline: score of the learned model alone, which Cold- and Warm-NDCG use.
        cold: score that Cold-NDCG uses, if not `offline`.
        noisy: whether `serve` uses its key, so that every candidate has a new score every session.
        weights: the linear model's weights; x^b, if used, is last; None for other models.
        examination: how far down it believes users look, if that is not the trial's belief.
        prior: α and β of each row's relevance before any behavior; None if it has no Beta prior.
    """

    a: Floats
    b: Floats
    serve: Score
    offline: Score
    cold: Score | None = None
    noisy: bool = False
    weights: Floats | None = None
    examination: Examination | None = None
    prior: ItemPrior | None = None

    def run_sessions(self, sessions: Sessions) -> RunSessions:
        """Return a function that runs sessions with this model, sorted by the formula `serve`."""
        from ebrank.lab.sessions import scored  # Numba takes a while to import

        scorer = scored.Scorer.of(self.serve, self.a, self.b)
        return lambda start, stop: scored.run_sessions(sessions, scorer, self.noisy, start, stop)


def fixed_score(a: float) -> float:
    """Return the model's number for the item, no matter what users do."""
    return a


FIXED = Formula(fixed_score).bind()


def fixed_model(scores: Floats) -> ScoreModel:
    """Return a model that ranks by given scores."""
    return ScoreModel(a=scores, b=np.zeros(1), serve=FIXED, offline=FIXED)


@dataclass(frozen=True, eq=False)
class Trial:
    """What a learner may know when a trial begins.

    Attributes:
        dataset: the prepared dataset; features are prior knowledge, labels are for oracles only.
        relevance: true relevance probability of each row, for oracles only.
        stats: behavior so far, updated in place while sessions are served.
        examination: how far down users are assumed to look.
        key: root of this trial's random draws (see `ebrank.kernels.streams`).
        threads: cores to use, None for all; never changes a result.
    """

    dataset: Dataset
    relevance: Floats
    stats: BehaviorStats
    examination: Examination
    key: np.uint64
    threads: int | None = None

    def sums(self) -> Sums:
        """Return n, c, C and E of every row, as they are now."""
        return self.stats.sums(self.examination, threads=self.threads)


class TrialLearner(Protocol):
    """A ranker at work in one trial."""

    def update(self) -> ScoreModel:
        """Learn from `trial.stats` so far; called before serving and at every model update."""
        ...


@dataclass
class Refit:
    """A learner that makes a new model at every update by a function of no arguments."""

    model: Callable[[], ScoreModel]

    def update(self) -> ScoreModel:
        """Return the next model."""
        return self.model()


class Ranker(Configured):
    """Base of all rankers: declares, validates, registers.

    Class attributes:
        name: what the command line calls it.
        help: one sentence that says what it does.
        settings: the paper's feature settings it can run in.
    """

    settings: ClassVar[tuple[Setting, ...]]

    def __init_subclass__(cls) -> None:
        """Enter a ranker of this package in the registry under its name."""
        if cls.__module__.startswith(f"{__package__}.") and hasattr(cls, "name"):
            REGISTRY[cls.name] = cls

    @property
    def setting(self) -> Setting:
        """The feature setting this instance runs in."""
        return getattr(self, "features", self.settings[0])

    @property
    def called(self) -> str:
        """Its name for `registry.parse`: short for built-in rankers, else `module:Class`."""
        ours = REGISTRY.get(self.name) is type(self)
        return self.name if ours else path_of(type(self))

    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters it has."""
        return iter(declared(type(self)))

    def value(self, name: str) -> Any:  # noqa: ANN401 (of the parameter's type)
        """Return the value of a parameter; None if there is no such parameter."""
        return getattr(self, name, None)

    def with_parameters(self, **changes: Any) -> Self:  # noqa: ANN401 (of any type)
        """Return the same ranker with some parameters changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner for a new trial."""
        raise TypeError(f"{type(self).__name__} must define the method learner")

    def __str__(self) -> str:
        """Return the text that `registry.parse` reads back, with parameters not at default."""
        return to_text(self.called, self.parameters(), self.value)
