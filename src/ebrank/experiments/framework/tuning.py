"""The ε of UCBRank and EBRank: chosen on validation queries or given, and the table of choices.

PROTOCOL: the best has the highest mean NDCG of the lists served to validation queries in the second
half of the run, over five tuning seeds that no report uses; see `simulation.tuning`. Each entering
probability η has a choice of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ebrank.data.dataset import Dataset
from ebrank.errors import ParameterError
from ebrank.experiments.framework.entrants import TUNED, entrant_of
from ebrank.experiments.framework.experiment import Experiment, GridPoint, TuningRecord
from ebrank.experiments.framework.measures import cell
from ebrank.experiments.framework.outcome import Cell, Column, Row, Table
from ebrank.parameters import typed
from ebrank.rankers import registry
from ebrank.rankers.base import Ranker
from ebrank.simulation import tuning
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import Progress
from ebrank.simulation.storage import Store

TRIALS = 5
"""Tuning trials; fewer if the report has fewer."""
PARAMETER = "epsilon"
CAPTION = (
    "Mean NDCG of the lists served to validation queries in the second half of the run, under "
    "seeds that no report uses. The best of each column, which is chosen, is bold."
)
EDGE = "‡"
AT_THE_EDGE = f" {EDGE} : the choice lies at the end of what was tried; a wider grid may do better."
DIGITS = 4

Need: TypeAlias = tuple[str, float]
"""An entrant's key, and the entering probability η it needs its ε for."""


def needs(experiments: Iterable[Experiment], config: SimulationConfig) -> list[Need]:
    """Return whose ε some experiments need, each once."""
    all_needs = (need for experiment in experiments for need in experiment.to_tune(config))
    return list(dict.fromkeys(all_needs))


def grid_of(key: str) -> tuple[float, ...]:
    """Return the values of ε that are tried.

    >>> grid_of("ebrank")[:3]
    (0.0, 5.0, 10.0)
    """
    return tuple(tuning.read_grid(registry.parse(key), [PARAMETER], [])[PARAMETER])


def read_given(texts: Sequence[str]) -> dict[str, Ranker]:
    """Return the rankers that were given instead of tuned, by the key of the entrant they replace.

    >>> list(read_given(["ebrank:epsilon=30"]))
    ['ebrank']
    """
    given: dict[str, Ranker] = {}
    for text in texts:
        ranker = registry.parse(text)
        key = next((key for key in TUNED if _is(key, ranker)), None)
        if key is None or f"{PARAMETER}=" not in text:
            known = ", ".join(f"{key}{',' if ':' in key else ':'}epsilon=…" for key in TUNED)
            raise ParameterError(f"{text} is not a tuned ranker with its ε; those are {known}")
        if key in given:
            raise ParameterError(f"{key} is given twice")
        given[key] = ranker
    return given


def _is(key: str, ranker: Ranker) -> bool:
    """Return whether a ranker is an entrant but for its ε."""
    untuned = registry.parse(key)
    return type(ranker) is type(untuned) and untuned == ranker.with_parameters(
        epsilon=untuned.value("epsilon")
    )


def take_given(need: Need, given: Mapping[str, Ranker]) -> tuple[Ranker, TuningRecord]:
    """Return a ranker that was given, and the record that says so."""
    key, eta = need
    ranker = given[key]
    epsilon = float(ranker.value("epsilon"))
    return ranker, TuningRecord(key, entrant_of(key).label, eta, epsilon, _text(key, epsilon))


def tune(
    need: Need,
    dataset: Dataset,
    config: SimulationConfig,
    seed: int,
    *,
    trials: int,
    jobs: int,
    folder: Path,
    progress: Progress | None = None,
) -> tuple[Ranker, TuningRecord]:
    """Return an entrant with the ε that validation queries prefer, and how it was chosen."""
    key, eta = need
    config = replace(config, entering_probability=eta)
    tuned = tuning.tune(
        dataset,
        registry.parse(key),
        {PARAMETER: grid_of(key)},
        config,
        seed,
        trials=tuning_trials(trials),
        jobs=jobs,
        store=Store(folder, dataset, config, tuning.tuning_seed(seed)),
        progress=progress,
    )
    epsilon = float(tuned.best.values[PARAMETER])
    points = tuple(
        GridPoint(float(point.values[PARAMETER]), tuple(point.validation_ndcg.tolist()))
        for point in tuned.points
    )
    label, edge = entrant_of(key).label, PARAMETER in tuned.at_the_edge
    record = TuningRecord(key, label, eta, epsilon, tuned.best.text, tuned.seed, edge, points)
    return tuned.best.ranker, record


def tuning_trials(trials: int) -> int:
    """Return the number of trials for each ε, given that of the report."""
    return min(trials, TRIALS)


def _text(key: str, epsilon: float) -> str:
    name, _, rest = key.partition(":")
    return f"{name}:{PARAMETER}={typed(epsilon)}" + (f",{rest}" if rest else "")


def table(records: Sequence[TuningRecord]) -> Table | None:
    """Return every ε that was tried for each η, the choice in bold; None if none was tuned."""
    if not any(record.grid for record in records):
        return None
    etas = sorted({record.entering_probability for record in records})
    rows = []
    for label in dict.fromkeys(record.label for record in records):
        own = {record.entering_probability: record for record in records if record.label == label}
        rows += _rows(label, own, etas)
    columns = (Column("ε"), *(Column(f"η = {eta:g}") for eta in etas))
    edge = AT_THE_EDGE if any(record.at_the_edge for record in records) else ""
    return Table("tuning", "Tuning of ε", CAPTION + edge, columns, tuple(rows))


def _rows(label: str, own: dict[float, TuningRecord], etas: Sequence[float]) -> list[Row]:
    """Return a row for each ε of an entrant."""
    tried = sorted({point.epsilon for record in own.values() for point in record.grid})
    if not tried:
        given = next(iter(own.values())).epsilon
        return [Row((f"{typed(given)} (given)", *(Cell(None) for _ in etas)), group=label)]
    return [
        Row(
            (typed(epsilon), *(_grid_cell(own.get(eta), epsilon) for eta in etas)),
            group=label,
        )
        for epsilon in tried
    ]


def _grid_cell(record: TuningRecord | None, epsilon: float) -> Cell:
    points = () if record is None else record.grid
    trials = next((point.trials for point in points if point.epsilon == epsilon), None)
    if record is None or trials is None:
        return Cell(None)
    mean = cell(np.array(trials), DIGITS)
    chosen = epsilon == record.epsilon
    marks = EDGE if chosen and record.at_the_edge else ""
    return Cell(mean.value, mean.sd, DIGITS, best=chosen, marks=marks)
