"""What an experiment is: the runs it needs, and what it makes of their results.

An experiment declares runs, each a ranker and a config, and turns results into tables, figures and
findings. `runner` runs the union of all experiments' runs, so a run that several need is done once.
A `Setup` holds what they all share, and the ε that was chosen on validation queries:

>>> from ebrank.simulation.config import SimulationConfig
>>> import ebrank
>>> setup = Setup(ebrank.load("mq2007-like", scale=0.01), SimulationConfig())
>>> print(setup.run("cftopk:features=concate", default="mean").ranker)
cftopk:features=concate,default=mean
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ebrank.data.dataset import Dataset
from ebrank.experiments.framework.entrants import TUNED
from ebrank.experiments.framework.outcome import Outcome
from ebrank.rankers import registry
from ebrank.rankers.base import Ranker
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.result import Result


@dataclass(frozen=True)
class Run:
    """A ranker under a config; dataset, seed and number of trials are the setup's."""

    ranker: Ranker
    config: SimulationConfig


Results: TypeAlias = Mapping[Run, Result]
Chosen: TypeAlias = Mapping[tuple[str, float], Ranker]
"""Tuned rankers by the entrant's key and the entering probability η they were tuned for."""


@dataclass(frozen=True)
class GridPoint:
    """A value of ε and its NDCG on validation queries, trial by trial."""

    epsilon: float
    trials: tuple[float, ...]


@dataclass(frozen=True)
class TuningRecord:
    """How an entrant got its ε.

    Attributes:
        key, label: the entrant's.
        entering_probability: η, for which it was tuned.
        epsilon: the choice.
        ranker: the ranker with it, as one types it.
        seed: of the tuning trials, which no report uses; None where ε was given.
        at_the_edge: whether a wider grid may do better.
        grid: what was tried; () where ε was given.
    """

    key: str
    label: str
    entering_probability: float
    epsilon: float
    ranker: str
    seed: int | None = None
    at_the_edge: bool = False
    grid: tuple[GridPoint, ...] = ()


@dataclass(frozen=True)
class Setup:
    """What all experiments on a dataset share.

    Attributes:
        dataset: a prepared dataset.
        config: the experiment; single experiments may change it.
        seed: of all trials.
        trials: of each run.
        chosen: the tuned rankers.
        tuning: how they were chosen.
    """

    dataset: Dataset
    config: SimulationConfig
    seed: int = 0
    trials: int = 5
    chosen: Chosen = field(default_factory=dict)
    tuning: tuple[TuningRecord, ...] = ()

    def run(self, key: str, config: SimulationConfig | None = None, **changes: Any) -> Run:  # noqa: ANN401
        """Return the run of an entrant, or of a ranker by its text, with some parameters changed.

        A tuned entrant has the ε that was chosen for it under the config's η.
        """
        config = config or self.config
        if key in TUNED:
            ranker = self.chosen[key, config.entering_probability]
        else:
            ranker = registry.parse(key)
        return Run(ranker.with_parameters(**changes), config)


@dataclass(frozen=True)
class Experiment:
    """A table or figure.

    Attributes:
        name: what `--only` calls it.
        title: what it shows.
        outcome: what comes of the results of `runs`.
        runs: what must be run for it, in any order; the same run may be named twice.
        tuned: keys of the entrants whose ε it needs, at the setup's η.
        etas: further entering probabilities for which it needs them.
        extra: whether the paper does not have it; `--only extras` selects all of these.
    """

    name: str
    title: str
    outcome: Callable[[Setup, Results], Outcome]
    runs: Callable[[Setup], list[Run]] = lambda setup: []
    tuned: tuple[str, ...] = ()
    etas: tuple[float, ...] = ()
    extra: bool = False

    def to_tune(self, config: SimulationConfig) -> Iterator[tuple[str, float]]:
        """Yield the entrants and the entering probabilities to tune them for."""
        for eta in dict.fromkeys((config.entering_probability, *self.etas)):
            for key in self.tuned:
                yield key, eta
