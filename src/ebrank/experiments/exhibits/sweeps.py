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

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ebrank.experiments.framework import measures
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
from ebrank.experiments.framework.experiment import Experiment, NamedResults, NamedRuns, Run, Setup
from ebrank.experiments.framework.figures import Figure, Panel
from ebrank.experiments.framework.folds import in_fold
from ebrank.experiments.framework.measures import COLD, WARM
from ebrank.experiments.framework.outcome import Column, Outcome, Row, Table
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
        entrants: the rankers to run.
        values: which values an entrant takes.
        run: the run of an entrant with a value.
        text: a value in words.
        figures: draws them instead of the usual one, given the caption.
        bold: the values that are bold in an entrant's rows.
        below: the caption of the table, if it is not that of the figure.
        log_x: whether the x axis is logarithmic.
    """

    name: str
    title: str
    caption: str
    x_label: str
    entrants: tuple[Entrant, ...]
    values: Callable[[Setup, Entrant], Iterable[Any]]
    run: Callable[[Setup, Entrant, Any], Run]
    text: Callable[[Any], str] = "{:g}".format
    figures: Callable[[Setup, Varied, str], tuple[Figure, ...]] | None = None
    bold: Callable[[Setup, Entrant], Collection[Any]] = lambda setup, entrant: ()
    below: Callable[[Setup, str], str] = lambda setup, caption: caption
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
            for value in self.values(setup, entrant)
        }

    def outcome(self, setup: Setup, results: NamedResults) -> Outcome:
        """Return the figures and the table."""
        varied: dict[Entrant, dict[Any, Result]] = {}
        for (entrant, value), result in results.items():
            varied.setdefault(entrant, {})[value] = result
        caption = f"{self.caption} {measures.averaged(setup.trials)}."
        rows = []
        for (entrant, value), result in results.items():
            best = value in self.bold(setup, entrant)
            cells = (replace(cell, best=best) for cell in measures.cells(result))
            rows.append(Row((self.text(value), *cells), group=entrant.label))
        columns, below = (Column(self.x_label), *measures.COLUMNS), self.below(setup, caption)
        table = Table(self.name, self.title, below, columns, tuple(rows))
        if self.figures is not None:
            return Outcome(tables=(table,), figures=self.figures(setup, varied, caption))
        drawn = measures.panels_against(self.x_label, varied, log_x=self.log_x)
        return Outcome(tables=(table,), figures=(Figure(self.name, self.title, caption, drawn),))


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
    entrants=(entrant_of(EBRANK), entrant_of(EXPOSURE)),
    values=lambda setup, entrant: (0.5, 1.0, 2.0, 5.0, 10.0, 20.0),
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
    entrants=tuple(entrant for entrant in FIGURES if entrant.key != "bm25"),
    values=lambda setup, entrant: (0.0, 0.5, 1.0, 1.5, 2.0),
    run=believing,
)


# --- ε -------------------------------------------------------------------------------------------

FAMILIES = ((UCBRANK,), (EBRANK, EXPOSURE))
"""Rankers whose ε means the same thing share a figure."""


def _chosen(setup: Setup, key: str) -> list[float]:
    """Return the ε an entrant runs with, or those that it runs with in each fold."""
    ranker = setup.run(key).ranker
    return [float(in_fold(ranker, place).value(EPSILON)) for place in range(len(setup.folds) or 1)]


def _by_family(setup: Setup, varied: Varied, caption: str) -> tuple[Figure, ...]:
    """Return a figure for each family, the chosen ε named with each line."""
    figures = []
    for family in FAMILIES:
        lines = {}
        for entrant in map(entrant_of, family):
            value = typed(setup.run(entrant.key).ranker.value(EPSILON))
            lines[replace(entrant, label=f"{entrant.label}, chosen {value}")] = varied[entrant]
        title = f"{EPSILONS.title}, {entrant_of(family[0]).label}"
        drawn = measures.panels_against("ε", lines)
        figures.append(Figure(f"epsilon-{family[0]}", title, caption, drawn))
    return tuple(figures)


EPSILONS = Sweep(
    name="epsilon",
    title="Dependence on ε",
    caption="Test figures over the grid of ε; the choice, named with each ranker, was made on "
    "validation queries.",
    x_label="ε",
    entrants=tuple(map(entrant_of, TUNED)),
    values=lambda setup, entrant: sorted(
        {*grid_of(entrant.key)[EPSILON], *_chosen(setup, entrant.key)}
    ),
    run=lambda setup, entrant, epsilon: setup.run(entrant.key, epsilon=epsilon),
    text=typed,
    figures=_by_family,
    bold=lambda setup, entrant: _chosen(setup, entrant.key),
    below=lambda setup, caption: (
        "Test figures; bold is the ε that was chosen on validation queries"
        f"{', in one fold at least' if setup.folds else ''}."
    ),
)


# --- the default of x^b --------------------------------------------------------------------------

DEFAULTS = {"zero": "0", "mean": "mean"}


def _side_by_side(setup: Setup, varied: Varied, caption: str) -> tuple[Figure, ...]:
    """Return bars of both defaults side by side."""
    names = tuple(entrant.label for entrant in varied)
    panels = []
    for measure in (COLD, WARM):
        bars = []
        for default, text in DEFAULTS.items():
            values = np.array([measure.values(own[default]) for own in varied.values()]).T
            style = f"default-{default}"
            bars.append(measures.series(f"default {text}", style, names, values))
        panels.append(Panel(measure.title, "", measure.title, tuple(bars), kind="bars"))
    return (Figure(DEFAULT.name, DEFAULT.title, caption, tuple(panels)),)


DEFAULT = Sweep(
    name="default",
    title="Default of the behavior feature",
    caption="x^b of an item that was never shown is 0, as in the paper, or the mean of those that "
    "were.",
    x_label="default x^b",
    entrants=tuple(entrant for entrant in CONCATENATING if twin(entrant) is not None),
    values=lambda setup, entrant: DEFAULTS,
    run=lambda setup, entrant, default: setup.run(entrant.key, default=default),
    text=DEFAULTS.__getitem__,
    figures=_side_by_side,
)
