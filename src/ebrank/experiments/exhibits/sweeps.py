"""Rankers against one varied value: β, ε, the believed examination curve, the default of x^b.

- *β* of the prior, which the paper sets to 5. ε stays the one chosen for β = 5.
- *ε*: test figures over the whole grid. They play no part in choosing ε.
- *examination*: what if rankers are wrong about what users look at? By default, users examine rank
  k with probability 1/log2(k + 1), severity 1, down to the last rank shown. Rankers debias clicks
  with another severity: 0 is no debiasing, 2 is too much. They keep the ε chosen for the curve that
  is configured, the right one by default.
- *default*: what if an item that was never shown has the mean x^b instead of 0? The paper leaves
  this open ("how to set the default x^b is not within the scope"); every ranker that concatenates
  x^b depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ebrank.experiments.framework.entrants import (
    CONCATENATING,
    EBRANK,
    EXPOSURE,
    FIGURES,
    TUNED,
    UCBRANK,
    Entrant,
    entrant_of,
    twin,
)
from ebrank.experiments.framework.experiment import (
    Experiment,
    NamedResults,
    NamedRuns,
    Run,
    Setup,
)
from ebrank.experiments.framework.folds import in_fold
from ebrank.experiments.framework.measures import (
    COLD,
    COLUMNS,
    WARM,
    Measure,
    averaged,
    cells,
    panels_against,
    series,
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
from ebrank.experiments.framework.tuning import EPSILON, grid_of
from ebrank.parameters import typed
from ebrank.simulation.result import Result

Varied = Mapping[Entrant, Mapping[Any, Result]]


@dataclass(frozen=True)
class Sweep:
    """An experiment that varies one value: a figure with a panel for each measure, and a table.

    Attributes:
        name, title, caption: of its figure and table; how trials are averaged is added.
        x_label: names the varied value.
        values: which values it takes.
        entrants: the rankers to run.
        run: the run of an entrant with a value.
        log_x: whether the x axis is logarithmic.
    """

    name: str
    title: str
    caption: str
    x_label: str
    values: tuple[float, ...]
    entrants: tuple[Entrant, ...]
    run: Callable[[Setup, Entrant, float], Run]
    log_x: bool = False

    @property
    def experiment(self) -> Experiment:
        """The experiment for the runner."""
        return Experiment(self.name, self.title, self.outcome, self.runs, extra=True)

    def runs(self, setup: Setup) -> NamedRuns:
        """Return every entrant with every value."""
        return {
            (entrant, value): self.run(setup, entrant, value)
            for entrant in self.entrants
            for value in self.values
        }

    def outcome(self, setup: Setup, results: NamedResults) -> Outcome:
        """Return the figure and the table."""
        varied = by_entrant(results)
        caption = f"{self.caption} {averaged(setup.trials)}."
        columns = (Column(self.x_label), *COLUMNS)
        drawn = panels_against(self.x_label, varied, log_x=self.log_x)
        return Outcome(
            tables=(Table(self.name, self.title, caption, columns, tuple(rows(varied))),),
            figures=(Figure(self.name, self.title, caption, drawn),),
        )


def by_entrant(results: NamedResults) -> dict[Entrant, dict[Any, Result]]:
    """Return results, named by entrant and value, entrant by entrant."""
    varied: dict[Entrant, dict[Any, Result]] = {}
    for (entrant, value), result in results.items():
        varied.setdefault(entrant, {})[value] = result
    return varied


def rows(varied: Varied, text: Callable[[Any], str] = "{:g}".format) -> list[Row]:
    """Return a row for each entrant and value."""
    return [
        Row((text(value), *cells(result)), group=entrant.label)
        for entrant, own in varied.items()
        for value, result in own.items()
    ]


# --- β and the believed examination curve --------------------------------------------------------


def believing(setup: Setup, entrant: Entrant, severity: float) -> Run:
    """Return the run of an entrant that believes in a severity, which may be the users' own."""
    actual = setup.config.users.examination
    believed = replace(actual, curve=None, severity=severity)
    config = replace(setup.config, believed=None if believed == actual else believed)
    return replace(setup.run(entrant.key), config=config)


BETA = Sweep(
    name="beta",
    title="Dependence on β",
    caption="EBRank with other values of β, the second parameter of its Beta prior; ε stays the "
    "one chosen for β = 5.",
    x_label="β",
    values=(0.5, 1.0, 2.0, 5.0, 10.0, 20.0),
    entrants=(entrant_of(EBRANK), entrant_of(EXPOSURE)),
    run=lambda setup, entrant, beta: setup.run(entrant.key, beta=beta),
    log_x=True,
)
EXAMINATION = Sweep(
    name="examination",
    title="A wrong examination curve",
    caption="Rankers debias clicks as if users examined rank k with probability 1/log2(k + 1) to "
    "the power on the x axis, the severity; that of users is 1 by default. At 0, x^b = c/E is "
    "the very click rate C/n that counterfactual models are fitted to.",
    x_label="believed severity",
    values=(0.0, 0.5, 1.0, 1.5, 2.0),
    entrants=tuple(entrant for entrant in FIGURES if entrant.key != "bm25"),
    run=believing,
)


# --- ε -------------------------------------------------------------------------------------------

FAMILIES = ((UCBRANK,), (EBRANK, EXPOSURE))
"""Rankers whose ε means the same thing share a figure."""


def epsilons(setup: Setup, key: str) -> tuple[float, ...]:
    """Return the grid of an entrant, including the ε that was given, if any."""
    return tuple(sorted({*grid_of(key)[EPSILON], *_chosen(setup, key)}))


def _chosen(setup: Setup, key: str) -> list[float]:
    """Return the ε an entrant runs with, or those that it runs with in each fold."""
    ranker = setup.run(key).ranker
    return [float(in_fold(ranker, place).value(EPSILON)) for place in range(len(setup.folds) or 1)]


def epsilon_runs(setup: Setup) -> NamedRuns:
    """Return all tuned entrants with every ε."""
    return {
        (entrant_of(key), epsilon): setup.run(key, epsilon=epsilon)
        for key in TUNED
        for epsilon in epsilons(setup, key)
    }


def epsilon_outcome(setup: Setup, results: NamedResults) -> Outcome:
    """Return a figure for each family, the chosen ε named with each line, and a table of all."""
    title, varied = "Dependence on ε", by_entrant(results)
    caption = (
        "Test figures over the grid of ε; the choice, named with each ranker, was made on "
        f"validation queries. {averaged(setup.trials)}."
    )
    figures = []
    for family in FAMILIES:
        lines = {}
        for key in family:
            value = typed(setup.run(key).ranker.value(EPSILON))
            label = f"{entrant_of(key).label}, chosen {value}"
            lines[replace(entrant_of(key), label=label)] = varied[entrant_of(key)]
        name, whose = f"epsilon-{family[0]}", entrant_of(family[0]).label
        figures.append(Figure(name, f"{title}, {whose}", caption, panels_against("ε", lines)))
    used = [epsilon in _chosen(setup, entrant.key) for entrant, epsilon in results]
    marked = tuple(
        replace(row, cells=(row.cells[0], *(_bold(cell, best) for cell in row.cells[1:])))
        for row, best in zip(rows(varied, typed), used, strict=True)
    )
    where = ", in one fold at least" if setup.folds else ""
    below = f"Test figures; bold is the ε that was chosen on validation queries{where}."
    table = Table("epsilon", title, below, (Column("ε"), *COLUMNS), marked)
    return Outcome(tables=(table,), figures=tuple(figures))


def _bold(cell: Cell | str, best: bool) -> Cell | str:
    return cell if isinstance(cell, str) else replace(cell, best=best)


# --- the default of x^b --------------------------------------------------------------------------

DEFAULTS = {"zero": "0", "mean": "mean"}


def default_runs(setup: Setup) -> NamedRuns:
    """Return every concatenating ranker with both defaults."""
    return {
        (entrant, default): setup.run(entrant.key, default=default)
        for entrant in CONCATENATING
        if twin(entrant) is not None
        for default in DEFAULTS
    }


def default_outcome(setup: Setup, results: NamedResults) -> Outcome:
    """Return bars side by side, and a table."""
    title, varied = "Default of the behavior feature", by_entrant(results)
    caption = (
        "x^b of an item that was never shown is 0, as in the paper, or the mean of those that "
        f"were. {averaged(setup.trials)}."
    )
    columns = (Column("default x^b"), *COLUMNS)
    table = Table("default", title, caption, columns, tuple(rows(varied, DEFAULTS.__getitem__)))
    drawn = tuple(_panel(varied, measure) for measure in (COLD, WARM))
    return Outcome(tables=(table,), figures=(Figure("default", title, caption, drawn),))


def _panel(varied: Varied, measure: Measure) -> Panel:
    names = tuple(entrant.label for entrant in varied)

    def bars(default: str) -> Series:
        values = np.array([measure.values(own[default]) for own in varied.values()]).T
        return series(f"default {DEFAULTS[default]}", f"default-{default}", names, values)

    return Panel(measure.title, "", measure.title, tuple(map(bars, DEFAULTS)), kind="bars")


EPSILON_EXPERIMENT = Experiment(
    "epsilon", "Dependence on ε", epsilon_outcome, epsilon_runs, extra=True
)
DEFAULT_EXPERIMENT = Experiment(
    "default", "Default of the behavior feature", default_outcome, default_runs, extra=True
)
