"""What is chosen on validation queries or given, such as ε, and the table of choices.

PROTOCOL: the best has the highest mean NDCG of the lists served to validation queries in the second
half of the run, over tuning seeds that no report uses; see `simulation.tuning`. Each config, such
as another entering probability η, has its own choice. Rankers with several parameters
(`entrants.TUNING`) have them chosen together by a coordinate search, on fewer trials.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ebrank.errors import ParameterError
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation import tuning
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.tuning import Grid, RunAll, TuningRecord
from ebrank.paper.framework.display import Cell, Column, Row, Table
from ebrank.paper.framework.entrants import GRIDS, TUNING, entrant_of
from ebrank.paper.framework.exhibit import Exhibit, Need, Setup, world_of
from ebrank.paper.framework.measures import cell
from ebrank.parameters import typed

TRIALS = 5
"""Tuning trials; fewer if the report has fewer."""
SEARCH_TRIALS = 3
"""The same for rankers with several parameters, which have many more points to try."""
EPSILON, BETA = "epsilon", "beta"
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


def needs(exhibits: Iterable[Exhibit], setup: Setup) -> dict[Need, Ranker]:
    """Return the rankers that the runs of some exhibits need tuned."""
    untuned = _Untuned()
    for exhibit in exhibits:
        exhibit.runs(replace(setup, chosen=untuned))
    return dict(untuned)


def grid_of(key: str) -> Grid:
    """Return the values to try for each tuned parameter of an entrant, or of a user's ranker.

    >>> grid_of("ebrank")["epsilon"][:3]
    (0.0, 5.0, 10.0)
    """
    ranker = registry.parse(key)
    if key not in TUNING:
        return tuning.read_grid(ranker, [], [])
    together = {name: GRIDS[name] for name in TUNING[key] if BETA in TUNING[key] and name in GRIDS}
    own = [name for name in TUNING[key] if name not in together]
    return together | (dict(tuning.read_grid(ranker, own, [])) if own else {})


def read_given(texts: Sequence[str]) -> dict[str, Ranker]:
    """Return the rankers that were given instead of tuned, by the key of the entrant they replace.

    >>> list(read_given(["ebrank:epsilon=30"]))
    ['ebrank']
    """
    given: dict[str, Ranker] = {}
    for text in texts:
        ranker = registry.parse(text)
        keys = [key for key in TUNING if _names_all(text, key) and _is(key, ranker)]
        if not keys:
            tuned = ", ".join(
                f"{key}{',' if ':' in key else ':'}{'=…,'.join(parameters)}=…"
                for key, parameters in TUNING.items()
            )
            raise ParameterError(f"{text} is not a tuned ranker with its value; use one of {tuned}")
        key = max(keys, key=lambda own: len(TUNING[own]))
        if key in given:
            raise ParameterError(f"{key} is given twice; leave out one of them")
        given[key] = ranker
    return given


def _names_all(text: str, key: str) -> bool:
    """Return whether a text gives all tuned parameters of an entrant."""
    return all(re.search(rf"[:,]{parameter}=", text) for parameter in TUNING[key])


def _is(key: str, ranker: Ranker) -> bool:
    """Return whether a ranker is an entrant, apart from the tuned parameters."""
    untuned = registry.parse(key)
    tuned = {parameter: ranker.value(parameter) for parameter in TUNING[key]}
    return type(ranker) is type(untuned) and ranker == untuned.with_parameters(**tuned)


def take_given(
    need: Need, given: Mapping[str, Ranker], usual: SimulationConfig
) -> tuple[Ranker, list[TuningRecord]]:
    """Return a given ranker, and a record of each of its parameters."""
    key, config = need
    ranker, about = given[key], (entrant_of(key).label, config.entering_probability)
    records = [
        TuningRecord(
            *(*about, float(ranker.value(parameter)), str(ranker)),
            parameter=parameter,
            world=world_of(config, usual),
        )
        for parameter in TUNING[key]
    ]
    return ranker, records


def tune(
    need: Need, usual: SimulationConfig, seed: int, run: RunAll
) -> tuple[Ranker, list[TuningRecord]]:
    """Return an entrant, or a user's ranker, as it does best on validation queries."""
    key, config = need
    ranker = registry.parse(key)
    tuned = tuning.search(ranker, grid_of(key), run, seed)
    label = entrant_of(key).label if key in TUNING else key
    records = tuned.records(label, config.entering_probability, world_of(config, usual))
    return ranker.with_parameters(**tuned.best.values), list(records)


def tuning_trials(trials: int, key: str) -> int:
    """Return the number of trials for each point, given the report's number."""
    return min(trials, TRIALS if len(grid_of(key)) == 1 else SEARCH_TRIALS)


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
        first = next(iter(own.values()))
        tried = sorted({point.value for record in own.values() for point in record.grid})
        for value in tried or [first.value]:
            name = typed(value) + ("" if tried else " (given)")
            cells = (_grid_cell(own.get(world), value) for world in worlds)
            rows.append(Row((name, *cells), group))
    only_epsilon = all(record.parameter == EPSILON for record in records)
    measured = worlds if len(worlds) > 1 else ["validation NDCG"]
    columns = (Column("ε" if only_epsilon else "value"), *map(Column, measured))
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


def _grid_cell(record: TuningRecord | None, value: float) -> Cell:
    """Return the mean and spread of a value that was tried, the choice in bold."""
    for point in () if record is None else record.grid:
        if record is not None and point.value == value:
            chosen = value == record.value
            marks = EDGE if chosen and record.at_the_edge else ""
            return replace(cell(np.array(point.trials), DIGITS), best=chosen, marks=marks)
    return Cell(None)
