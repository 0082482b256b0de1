"""What an experiment is: the runs it needs, and what it makes of their results.

An experiment declares runs, each a ranker and a config, and turns results into tables, figures and
findings. `runner` runs the union of all experiments' runs, so a run that several need is done once.
A `Setup` holds what they share, and what was chosen on validation queries, such as ε. The runs
determine what has to be chosen (`tuning.needs`):

>>> from ebrank.simulation.config import SimulationConfig
>>> import ebrank
>>> setup = Setup(ebrank.load("mq2007-like", scale=0.01), SimulationConfig())
>>> print(setup.run("cftopk:features=concate", default="mean").ranker)
cftopk:features=concate,default=mean
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ebrank.data.dataset import Dataset
from ebrank.experiments.framework.entrants import TUNING
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
Need: TypeAlias = tuple[str, SimulationConfig]
"""An entrant's key, and the config it needs tuning for."""
Chosen: TypeAlias = Mapping[Need, Ranker]
"""Tuned rankers."""


@dataclass(frozen=True)
class GridPoint:
    """A value that was tried, and its NDCG on validation queries, trial by trial."""

    value: float
    trials: tuple[float, ...]


@dataclass(frozen=True)
class TuningRecord:
    """How an entrant got its ε, or another tuned parameter.

    Attributes:
        key, label: the entrant's.
        entering_probability: η, for which it was tuned.
        value: the choice.
        ranker: text of the ranker with this value.
        seed: of the tuning trials, which no report uses; None where the value was given.
        at_the_edge: whether a wider grid may do better.
        grid: what was tried; () where the value was given.
        parameter: the tuned parameter.
        world: how the config differed from the usual one, apart from η.
    """

    key: str
    label: str
    entering_probability: float
    value: float
    ranker: str
    seed: int | None = None
    at_the_edge: bool = False
    grid: tuple[GridPoint, ...] = ()
    parameter: str = "epsilon"
    world: str = ""


@dataclass(frozen=True)
class Setup:
    """What all experiments on a dataset share.

    Attributes:
        dataset: a prepared dataset.
        config: the experiment; single experiments may change it.
        seed: of all trials.
        trials: of each run.
        also: texts of the user's own rankers, each with a row in Table 2.
        chosen: the tuned rankers.
        tuning: how they were chosen.
    """

    dataset: Dataset
    config: SimulationConfig
    seed: int = 0
    trials: int = 5
    also: tuple[str, ...] = ()
    chosen: Chosen = field(default_factory=dict)
    tuning: tuple[TuningRecord, ...] = ()

    def run(self, key: str, config: SimulationConfig | None = None, **changes: Any) -> Run:  # noqa: ANN401
        """Return the run of an entrant, or of a ranker by its text, with some parameters changed.

        A tuned entrant has the ε that was chosen for it under the same config.
        """
        config = config or self.config
        ranker = self.chosen[key, config] if key in TUNING else registry.parse(key)
        return Run(ranker.with_parameters(**changes), config)


@dataclass(frozen=True)
class Experiment:
    """A table or figure.

    Attributes:
        name: its name for `--only`.
        title: what it shows.
        outcome: turns the results of `runs` into an `Outcome`.
        runs: the runs it needs, in any order; the same run may appear twice.
        extra: whether it is not in the paper; `--only extras` selects all of these.
        on_request: whether it runs only if `--only` names it or `all`.
    """

    name: str
    title: str
    outcome: Callable[[Setup, Results], Outcome]
    runs: Callable[[Setup], list[Run]] = lambda setup: []
    extra: bool = False
    on_request: bool = False


def world_of(config: SimulationConfig, usual: SimulationConfig) -> str:
    """Return how a config differs from the usual one, apart from η; "" if it does not.

    >>> from ebrank.simulation.users import parse
    >>> world_of(SimulationConfig(users=parse("dcm"), click_rate=0.5), SimulationConfig())
    'dcm users, click rate × 0.5'
    """
    differences = []
    if config.users != usual.users:
        differences.append(f"{config.users} users")
    if config.click_rate != usual.click_rate:
        differences.append(f"click rate × {config.click_rate / usual.click_rate:g}")
    if config.believed is not None and config.believed != usual.believed:
        differences.append(f"believed severity {config.believed.severity:g}")
    return ", ".join(differences)
