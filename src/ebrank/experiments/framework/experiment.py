"""What an experiment is: the runs it needs, and what it makes of their results.

An experiment declares runs, each a ranker and a config, and turns results into tables, figures and
findings. `runner` runs the union of all experiments' runs, so a run that several need is done once.
A `Setup` holds what they all share, and what was chosen on validation queries, such as ε. What has
to be chosen follows from the runs (`tuning.needs`):

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
    """A value that was tried and its NDCG on validation queries, trial by trial."""

    value: float
    trials: tuple[float, ...]


@dataclass(frozen=True)
class TuningRecord:
    """How an entrant got its ε, or whatever else of it is tuned.

    Attributes:
        key, label: the entrant's.
        entering_probability: η, for which it was tuned.
        value: the choice.
        ranker: the ranker with it, as one types it.
        seed: of the tuning trials, which no report uses; None where the value was given.
        at_the_edge: whether a wider grid may do better.
        grid: what was tried; () where the value was given.
        parameter: what was chosen.
        world: in what else than η the config was not the usual one.
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
        also: rankers of the user's, as one types them, for a row in Table 2 each.
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

        A tuned entrant has the ε that was chosen for it under this very config.
        """
        config = config or self.config
        ranker = self.chosen[key, config] if key in TUNING else registry.parse(key)
        return Run(ranker.with_parameters(**changes), config)


@dataclass(frozen=True)
class Experiment:
    """A table or figure.

    Attributes:
        name: what `--only` calls it.
        title: what it shows.
        outcome: what comes of the results of `runs`.
        runs: what must be run for it, in any order; the same run may be named twice.
        extra: whether the paper does not have it; `--only extras` selects all of these.
        on_request: whether it is run only where `--only` names it, or says `all`.
    """

    name: str
    title: str
    outcome: Callable[[Setup, Results], Outcome]
    runs: Callable[[Setup], list[Run]] = lambda setup: []
    extra: bool = False
    on_request: bool = False


def world_of(config: SimulationConfig, usual: SimulationConfig) -> str:
    """Return in what a config differs from the usual one, but for η; "" if in nothing.

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
