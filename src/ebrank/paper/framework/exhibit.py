"""What an exhibit is: the runs it needs, and what it makes of their results.

An exhibit declares runs, each a ranker and a config, and turns results into tables, figures and
findings. `runner` runs the union of all exhibits' runs, so a run that several need is done once.
A `Setup` holds what they share, and what was chosen on validation queries, such as ε. The runs
determine what has to be chosen (`tuning.needs`):

>>> from ebrank.lab.simulation.config import SimulationConfig
>>> import ebrank
>>> setup = Setup(ebrank.load("mq2007-like", scale=0.01), SimulationConfig())
>>> print(setup.run("cftopk:features=concate", default="mean").ranker)
cftopk:features=concate,default=mean
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import Result
from ebrank.lab.simulation.tuning import TuningRecord
from ebrank.paper.framework.display import Display
from ebrank.paper.framework.entrants import TUNING
from ebrank.paper.framework.folds import AnyRanker, Fold, by_fold, in_fold, pooled_name


@dataclass(frozen=True)
class Run:
    """A ranker under a config; dataset, seed and number of trials are the setup's."""

    ranker: AnyRanker
    config: SimulationConfig


Results: TypeAlias = Mapping[Run, Result]
NamedRuns: TypeAlias = Mapping[Any, Run]
NamedResults: TypeAlias = Mapping[Any, Result]
"""Results by the names that an exhibit gave its runs, such as an entrant's key."""
Need: TypeAlias = tuple[str, SimulationConfig]
"""An entrant's key, or what the user's own ranker is called, and the config it is tuned for."""
Chosen: TypeAlias = Mapping[Need, AnyRanker]
"""Tuned rankers."""


@dataclass(frozen=True)
class Setup:
    """What all exhibits on a dataset share.

    Attributes:
        dataset: a prepared dataset; where folds are pooled, the first of them.
        config: the simulation; single exhibits may change it.
        seed: of all trials.
        trials: of each run.
        also: texts of the user's own rankers, each with a row in Table 2; `chosen` has those that
            were tuned.
        chosen: the tuned rankers.
        tuning: how they were chosen.
        folds: the folds that are pooled; () for a single dataset.
    """

    dataset: Dataset
    config: SimulationConfig
    seed: int = 0
    trials: int = 5
    also: tuple[str, ...] = ()
    chosen: Chosen = field(default_factory=dict)
    tuning: tuple[TuningRecord, ...] = ()
    folds: tuple[Fold, ...] = ()

    @property
    def name(self) -> str:
        """What tables call the dataset, or all folds of it."""
        return pooled_name(self.dataset.name, len(self.folds)) if self.folds else self.dataset.name

    @property
    def parts(self) -> tuple[Fold, ...]:
        """What there is to say of each fold, or of the dataset."""
        return self.folds or (Fold.of(self.dataset, self.config),)

    @property
    def test_queries(self) -> int:
        """How many queries measures and tests are over."""
        return sum(part.splits[-1] for part in self.parts)

    @property
    def sessions(self) -> int:
        """How many sessions a trial has, in all folds together."""
        return sum(part.sessions for part in self.parts)

    def run(self, key: str, config: SimulationConfig | None = None, **changes: Any) -> Run:  # noqa: ANN401
        """Return the run of an entrant, or of a ranker by its text, with some parameters changed.

        A tuned entrant has the ε that was chosen for it under the same config.
        """
        config = config or self.config
        tuned = key in TUNING or (key, config) in self.chosen
        ranker = self.chosen[key, config] if tuned else registry.parse(key)
        return Run(ranker.with_parameters(**changes), config)


def pooled_setup(setups: Sequence[Setup], folds: Sequence[Fold]) -> Setup:
    """Return the setup of all folds, whose rankers are as each fold chose them."""
    first = setups[0]
    records = [
        replace(record, fold=fold.number)
        for setup, fold in zip(setups, folds, strict=True)
        for record in setup.tuning
        if record.seed is not None
    ]
    return replace(
        first,
        chosen={
            need: by_fold([in_fold(setup.chosen[need], 0) for setup in setups])
            for need in first.chosen
        },
        tuning=(*(record for record in first.tuning if record.seed is None), *records),
        folds=tuple(folds),
    )


@dataclass(frozen=True)
class Exhibit:
    """A table or figure.

    Attributes:
        name: its name for `--only`.
        display: turns the results of `runs`, by the same names, into a `Display`.
        runs: the runs it needs, by names of its own; the same run may have several.
        on_request: whether it runs only if `--only` names it or `all`.
    """

    name: str
    display: Callable[[Setup, NamedResults], Display]
    runs: Callable[[Setup], NamedRuns] = lambda setup: {}
    on_request: bool = False

    def display_of(self, setup: Setup, results: Results) -> Display:
        """Return what it makes of the results of all runs."""
        named = {name: results[run] for name, run in self.runs(setup).items()}
        return self.display(setup, named)


def world_of(config: SimulationConfig, usual: SimulationConfig) -> str:
    """Return how a config differs from the usual one, apart from η; "" if it does not.

    >>> from ebrank.lab.simulation.users import parse
    >>> world_of(SimulationConfig(users=parse("dcm"), click_rate=0.5), SimulationConfig())
    'dcm users, click rate × 0.5'
    """
    differences = []
    if config.labels != usual.labels:
        differences.append(f"{config.labels} labels")
    if config.users != usual.users:
        differences.append(f"{config.users} users")
    if config.click_rate != usual.click_rate:
        differences.append(f"click rate × {config.click_rate / usual.click_rate:g}")
    if config.assumed is not None and config.assumed != usual.assumed:
        differences.append(f"assumed severity {config.assumed.severity:g}")
    return ", ".join(differences)
