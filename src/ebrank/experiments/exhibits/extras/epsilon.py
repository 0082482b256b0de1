"""How much depends on ε: test figures over the whole grid. They play no part in choosing ε."""

from __future__ import annotations

from dataclasses import replace

from ebrank.experiments.framework.entrants import EBRANK, EXPOSURE, TUNED, UCBRANK, entrant_of
from ebrank.experiments.framework.experiment import Experiment, Results, Run, Setup
from ebrank.experiments.framework.measures import (
    MEASURES,
    Measure,
    against,
    averaged,
    cells,
    panels,
)
from ebrank.experiments.framework.outcome import (
    Cell,
    Column,
    Figure,
    Outcome,
    Panel,
    Row,
    Series,
    Table,
)
from ebrank.experiments.framework.ranker_by_fold import in_fold
from ebrank.experiments.framework.tuning import EPSILON, grid_of
from ebrank.parameters import typed
from ebrank.simulation.result import Result

FAMILIES = ((UCBRANK,), (EBRANK, EXPOSURE))
"""Rankers whose ε means the same thing share a figure."""


def values(setup: Setup, key: str) -> tuple[float, ...]:
    """Return the grid of an entrant, including the ε that was given, if any."""
    return tuple(sorted({*grid_of(key), *chosen(setup, key)}))


def chosen(setup: Setup, key: str) -> list[float]:
    """Return the ε an entrant runs with, or those that it runs with in each fold."""
    ranker = setup.run(key).ranker
    return [float(in_fold(ranker, place).value(EPSILON)) for place in range(len(setup.folds) or 1)]


def runs(setup: Setup) -> list[Run]:
    """Return all tuned entrants with every ε."""
    return [setup.run(key, epsilon=epsilon) for key in TUNED for epsilon in values(setup, key)]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return a figure for each family, and a table of all."""
    by_epsilon = {
        key: {value: results[setup.run(key, epsilon=value)] for value in values(setup, key)}
        for key in TUNED
    }
    caption = (
        "Test figures over the grid of ε; the choice, named with each ranker, was made on "
        f"validation queries. {averaged(setup.trials)}."
    )
    title = "Dependence on ε"
    figures = tuple(
        Figure(
            f"epsilon-{family[0]}",
            f"{title}, {entrant_of(family[0]).label}",
            caption,
            _panels(setup, family, by_epsilon),
        )
        for family in FAMILIES
    )
    return Outcome(tables=(_table(setup, title, by_epsilon),), figures=figures)


def _panels(
    setup: Setup, family: tuple[str, ...], by_epsilon: dict[str, dict[float, Result]]
) -> tuple[Panel, ...]:
    """Return a panel for each measure, the chosen ε named with each line."""

    def lines(measure: Measure) -> tuple[Series, ...]:
        drawn = []
        for key in family:
            label = f"{entrant_of(key).label}, chosen {typed(setup.run(key).ranker.value(EPSILON))}"
            entrant = replace(entrant_of(key), label=label)
            drawn.append(
                against(entrant, tuple(by_epsilon[key]), list(by_epsilon[key].values()), measure)
            )
        return tuple(drawn)

    return tuple(replace(panel, log_x=True) for panel in panels("ε", lines, MEASURES))


def _table(setup: Setup, title: str, by_epsilon: dict[str, dict[float, Result]]) -> Table:
    rows = []
    for key, results in by_epsilon.items():
        for epsilon, result in results.items():
            used = epsilon in chosen(setup, key)
            figures: list[Cell] = [replace(cell, best=used) for cell in cells(result)]
            rows.append(Row((typed(epsilon), *figures), group=entrant_of(key).label))
    columns = (Column("ε"), *(Column(measure.title) for measure in MEASURES))
    where = ", in one fold at least" if setup.folds else ""
    caption = f"Test figures; bold is the ε that was chosen on validation queries{where}."
    return Table("epsilon", title, caption, columns, tuple(rows))


EXPERIMENT = Experiment("epsilon", "Dependence on ε", outcome, runs, extra=True)
