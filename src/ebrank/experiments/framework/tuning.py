"""The ε of UCBRank and EBRank: chosen on validation queries or given, and the table of choices.

PROTOCOL: the best has the highest mean NDCG of the lists served to validation queries in the second
half of the run, over five tuning seeds that no report uses; see `simulation.tuning`. Each config,
such as another entering probability η, has its own choice. Other rankers have another parameter
instead of ε (`entrants.TUNING`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ebrank.data.dataset import Dataset
from ebrank.errors import ParameterError
from ebrank.experiments.framework.entrants import TUNING, entrant_of
from ebrank.experiments.framework.experiment import (
    Experiment,
    GridPoint,
    Need,
    Setup,
    TuningRecord,
    world_of,
)
from ebrank.experiments.framework.measures import cell
from ebrank.experiments.framework.outcome import Cell, Column, Row, Table
from ebrank.parameters import typed
from ebrank.rankers import registry
from ebrank.rankers.base import Ranker
from ebrank.simulation import tuning
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import Progress
from ebrank.simulation.parallel import TrialPool
from ebrank.simulation.storage import Store

TRIALS = 5
"""Tuning trials; fewer if the report has fewer."""
EPSILON = "epsilon"
CAPTION = (
    "Mean NDCG of the lists served to validation queries in the second half of the run, under "
    "seeds that no report uses. The best of each column, which is chosen, is bold."
)
EDGE = "‡"
AT_THE_EDGE = f" {EDGE} : the choice lies at the end of what was tried; a wider grid may do better."
BY_FOLD = " Each fold chooses by its own validation queries."
DIGITS = 4


class _Untuned(dict[Need, Ranker]):
    """Untuned rankers, and a list of those that were asked for."""

    def __missing__(self, need: Need) -> Ranker:
        return self.setdefault(need, registry.parse(need[0]))


def needs(experiments: Iterable[Experiment], setup: Setup) -> dict[Need, Ranker]:
    """Return the rankers that the runs of some experiments need tuned."""
    untuned = _Untuned()
    for experiment in experiments:
        experiment.runs(replace(setup, chosen=untuned))
    return dict(untuned)


def grid_of(key: str) -> tuple[float, ...]:
    """Return the values to try for an entrant's ε, or for its other tuned parameter.

    >>> grid_of("ebrank")[:3]
    (0.0, 5.0, 10.0)
    """
    parameter = TUNING[key]
    return tuple(tuning.read_grid(registry.parse(key), [parameter], [])[parameter])


def read_given(texts: Sequence[str]) -> dict[str, Ranker]:
    """Return the rankers that were given instead of tuned, by the key of the entrant they replace.

    >>> list(read_given(["ebrank:epsilon=30"]))
    ['ebrank']
    """
    given: dict[str, Ranker] = {}
    for text in texts:
        ranker = registry.parse(text)
        key = next((key for key in TUNING if _is(key, ranker)), None)
        if key is None or f"{TUNING[key]}=" not in text:
            known = ", ".join(
                f"{key}{',' if ':' in key else ':'}{parameter}=…"
                for key, parameter in TUNING.items()
            )
            raise ParameterError(f"{text} is not a tuned ranker with its value; use one of {known}")
        if key in given:
            raise ParameterError(f"{key} is given twice; leave out one of them")
        given[key] = ranker
    return given


def _is(key: str, ranker: Ranker) -> bool:
    """Return whether a ranker is an entrant, apart from the tuned parameter."""
    untuned, parameter = registry.parse(key), TUNING[key]
    return type(ranker) is type(untuned) and untuned == ranker.with_parameters(
        **{parameter: untuned.value(parameter)}
    )


def take_given(
    need: Need, given: Mapping[str, Ranker], usual: SimulationConfig
) -> tuple[Ranker, TuningRecord]:
    """Return a given ranker, and the record of it."""
    key, config = need
    ranker, parameter = given[key], TUNING[key]
    value = float(ranker.value(parameter))
    record = TuningRecord(
        key,
        entrant_of(key).label,
        config.entering_probability,
        value,
        _text(key, value),
        parameter=parameter,
        world=world_of(config, usual),
    )
    return ranker, record


def tune(
    need: Need,
    dataset: Dataset,
    usual: SimulationConfig,
    seed: int,
    *,
    trials: int,
    jobs: int,
    pool: TrialPool | None,
    folder: Path,
    progress: Progress | None = None,
) -> tuple[Ranker, TuningRecord]:
    """Return an entrant with the ε that does best on validation queries, and how it was chosen."""
    key, config = need
    parameter = TUNING[key]
    tuned = tuning.tune(
        dataset,
        registry.parse(key),
        {parameter: grid_of(key)},
        config,
        seed,
        trials=tuning_trials(trials),
        jobs=jobs,
        pool=pool,
        store=Store(folder, dataset, config, tuning.tuning_seed(seed)),
        progress=progress,
    )
    points = tuple(
        GridPoint(float(point.values[parameter]), tuple(point.validation_ndcg.tolist()))
        for point in tuned.points
    )
    record = TuningRecord(
        key,
        entrant_of(key).label,
        config.entering_probability,
        float(tuned.best.values[parameter]),
        tuned.best.text,
        tuned.seed,
        parameter in tuned.at_the_edge,
        points,
        parameter,
        world_of(config, usual),
    )
    return tuned.best.ranker, record


def tune_own(
    text: str,
    dataset: Dataset,
    config: SimulationConfig,
    seed: int,
    *,
    trials: int,
    jobs: int,
    pool: TrialPool | None,
    folder: Path,
    progress: Progress | None = None,
) -> tuple[Ranker, list[TuningRecord]]:
    """Return a user's ranker with all parameters tuned that have a grid.

    Each numeric parameter has a record: its grid, with the other parameters at their best.
    """
    ranker = registry.parse(text)
    tuned = tuning.tune(
        dataset,
        ranker,
        tuning.read_grid(ranker, [], []),
        config,
        seed,
        trials=tuning_trials(trials),
        jobs=jobs,
        pool=pool,
        store=Store(folder, dataset, config, tuning.tuning_seed(seed)),
        progress=progress,
    )
    best = tuned.best
    records = []
    for name, value in best.values.items():
        if not isinstance(value, int | float):
            continue  # a choice of words, which shows in the ranker's text
        others = {other: chosen for other, chosen in best.values.items() if other != name}
        points = tuple(
            GridPoint(float(point.values[name]), tuple(point.validation_ndcg.tolist()))
            for point in tuned.points
            if others.items() <= point.values.items() and point.values[name] is not None
        )
        records.append(
            TuningRecord(
                *(text, text, config.entering_probability, float(value), best.text),
                *(tuned.seed, name in tuned.at_the_edge, points, name),
            )
        )
    return best.ranker, records


def points_of(text: str) -> int:
    """Return how many combinations `tune_own` tries.

    >>> points_of("ebrank") >= 5
    True
    """
    return math.prod(map(len, tuning.read_grid(registry.parse(text), [], []).values()))


def tuning_trials(trials: int) -> int:
    """Return the number of trials for each value, given the report's number."""
    return min(trials, TRIALS)


def _text(key: str, value: float) -> str:
    name, _, rest = key.partition(":")
    return f"{name}:{TUNING[key]}={typed(value)}" + (f",{rest}" if rest else "")


def table(records: Sequence[TuningRecord]) -> Table | None:
    """Return every value tried in each world, with the choice in bold; None if none was tried."""
    if not any(record.grid for record in records):
        return None
    ordered = sorted(records, key=lambda record: (bool(record.world), record.entering_probability))
    worlds = list(dict.fromkeys(map(_world, ordered)))
    places = list(dict.fromkeys(record.label for record in records))
    by_label = sorted(records, key=lambda record: places.index(record.label))
    rows = []
    for group in dict.fromkeys(map(_group, by_label)):
        own = {_world(record): record for record in records if _group(record) == group}
        rows += _rows(group, own, worlds)
    only_epsilon = all(record.parameter == EPSILON for record in records)
    columns = (Column("ε" if only_epsilon else "value"), *map(Column, worlds))
    folds = BY_FOLD if any(record.fold is not None for record in records) else ""
    edge = AT_THE_EDGE if any(record.at_the_edge for record in records) else ""
    title = "Tuning of ε" if only_epsilon else "Tuning"
    return Table("tuning", title, CAPTION + folds + edge, columns, tuple(rows))


def _world(record: TuningRecord) -> str:
    """Return the heading of a column of the table."""
    return record.world or f"η = {record.entering_probability:g}"


def _group(record: TuningRecord) -> str:
    """Return the heading of a parameter's rows."""
    parameter = "" if record.parameter == EPSILON else f", {record.parameter}"
    fold = "" if record.fold is None else f", fold {record.fold}"
    return f"{record.label}{parameter}{fold}"


def _rows(group: str, own: dict[str, TuningRecord], worlds: Sequence[str]) -> list[Row]:
    """Return a row for each value of an entrant's parameter."""
    first = next(iter(own.values()))
    tried = sorted({point.value for record in own.values() for point in record.grid})
    if not tried:
        return [Row((f"{typed(first.value)} (given)", *(Cell(None) for _ in worlds)), group)]
    return [
        Row((typed(value), *(_grid_cell(own.get(world), value) for world in worlds)), group)
        for value in tried
    ]


def _grid_cell(record: TuningRecord | None, value: float) -> Cell:
    points = () if record is None else record.grid
    trials = next((point.trials for point in points if point.value == value), None)
    if record is None or trials is None:
        return Cell(None)
    mean = cell(np.array(trials), DIGITS)
    chosen = value == record.value
    marks = EDGE if chosen and record.at_the_edge else ""
    return Cell(mean.value, mean.sd, DIGITS, best=chosen, marks=marks)
