"""EBRank and UCBRank against one varied value: β, ε.

- *β* of the prior, which the paper sets to 5. ε stays the one chosen for β = 5.
- *ε*: test figures over the whole grid. They play no part in choosing ε.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ebrank.experiments.framework import measures
from ebrank.experiments.framework.entrants import EBRANK, EXPOSURE, TUNED, UCBRANK, entrant_of
from ebrank.experiments.framework.experiment import Experiment, NamedResults, NamedRuns, Setup
from ebrank.experiments.framework.figures import Figure
from ebrank.experiments.framework.folds import in_fold
from ebrank.experiments.framework.outcome import Column, Outcome, Row, Table
from ebrank.experiments.framework.tuning import EPSILON, grid_of
from ebrank.parameters import typed
from ebrank.simulation.result import Result

BETAS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
BETA_TITLE, EPSILON_TITLE = "Dependence on β", "Dependence on ε"
BETA_CAPTION = (
    "EBRank with other values of β, the second parameter of its Beta prior; ε stays the one chosen "
    "for β = 5."
)
EPSILON_CAPTION = (
    "Test figures over the grid of ε; the choice, named with each ranker, was made on validation "
    "queries."
)
FAMILIES = ((UCBRANK,), (EBRANK, EXPOSURE))
"""Rankers whose ε means the same thing share a figure."""


def beta_runs(setup: Setup) -> NamedRuns:
    """Return both estimators with every β, by key and value."""
    return {(key, beta): setup.run(key, beta=beta) for key in (EBRANK, EXPOSURE) for beta in BETAS}


def beta_outcome(setup: Setup, results: NamedResults) -> Outcome:
    """Return a figure with a panel for each measure, and a table."""
    caption = f"{BETA_CAPTION} {measures.averaged(setup.trials)}."
    lines = {entrant_of(key): _varied(results, key) for key in (EBRANK, EXPOSURE)}
    figure = Figure("beta", BETA_TITLE, caption, measures.panels_against("β", lines))
    return Outcome((_table("beta", BETA_TITLE, caption, "β", results),), (figure,))


def epsilon_runs(setup: Setup) -> NamedRuns:
    """Return the rankers of Table 2 with every ε of their grid and the one chosen."""
    return {
        (key, epsilon): setup.run(key, epsilon=epsilon)
        for key in TUNED
        for epsilon in sorted({*grid_of(key)[EPSILON], *_chosen(setup, key)})
    }


def epsilon_outcome(setup: Setup, results: NamedResults) -> Outcome:
    """Return a figure for each family, the chosen ε named with each line, and a table."""
    caption = f"{EPSILON_CAPTION} {measures.averaged(setup.trials)}."
    figures = []
    for family in FAMILIES:
        lines = {}
        for entrant in map(entrant_of, family):
            value = typed(setup.run(entrant.key).ranker.value(EPSILON))
            named = replace(entrant, label=f"{entrant.label}, chosen {value}")
            lines[named] = _varied(results, entrant.key)
        title = f"{EPSILON_TITLE}, {entrant_of(family[0]).label}"
        drawn = measures.panels_against("ε", lines)
        figures.append(Figure(f"epsilon-{family[0]}", title, caption, drawn))
    below = (
        "Test figures; bold is the ε that was chosen on validation queries"
        f"{', in one fold at least' if setup.folds else ''}."
    )
    chosen = {(key, epsilon) for key in TUNED for epsilon in _chosen(setup, key)}
    table = _table("epsilon", EPSILON_TITLE, below, "ε", results, chosen)
    return Outcome((table,), tuple(figures))


def _chosen(setup: Setup, key: str) -> list[float]:
    """Return the ε an entrant runs with, or those that it runs with in each fold."""
    ranker = setup.run(key).ranker
    return [float(in_fold(ranker, place).value(EPSILON)) for place in range(len(setup.folds) or 1)]


def _varied(results: NamedResults, key: str) -> dict[float, Result]:
    """Return an entrant's results by the varied value."""
    return {value: result for (own, value), result in results.items() if own == key}


def _table(
    name: str,
    title: str,
    caption: str,
    heading: str,
    results: NamedResults,
    bold: Collection[tuple[str, float]] = (),
) -> Table:
    """Return the measures of every entrant and value."""
    rows = []
    for (key, value), result in results.items():
        cells = (replace(cell, best=(key, value) in bold) for cell in measures.cells(result))
        rows.append(Row((typed(value), *cells), group=entrant_of(key).label))
    return Table(name, title, caption, (Column(heading), *measures.COLUMNS), tuple(rows))


BETA = Experiment("beta", BETA_TITLE, beta_outcome, beta_runs, extra=True)
EPSILONS = Experiment("epsilon", EPSILON_TITLE, epsilon_outcome, epsilon_runs, extra=True)
