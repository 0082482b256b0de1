"""Is the prior calibrated? What it predicted for unseen items, and what happened to them.

Halfway through the run the engine records the Beta prior of every test item that no user has seen;
at the end it keeps those that users have seen since (`evaluation.calibration`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ebrank.evaluation.calibration import Calibration, calibration
from ebrank.experiments.framework.entrants import EBRANK, EXPOSURE, Entrant, entrant_of
from ebrank.experiments.framework.experiment import Experiment, NamedResults, NamedRuns, Setup
from ebrank.experiments.framework.figures import Figure, Panel, Series
from ebrank.experiments.framework.outcome import Cell, Column, Outcome, Row, Table
from ebrank.simulation.result import Result

WITH_PRIOR = tuple(map(entrant_of, (EBRANK, EXPOSURE, "thompson")))
NOTE = (
    "Items of test queries that nobody had seen half-way through the run and somebody saw later, "
    "in ten bins by the mean that the prior predicted half-way; all trials together."
)


def runs(setup: Setup) -> NamedRuns:
    """Return the rankers that have a Beta prior."""
    return {entrant: setup.run(entrant.key) for entrant in WITH_PRIOR}


def outcome(setup: Setup, results: NamedResults) -> Outcome:
    """Return predictions beside relevance and later click rates."""
    calibrations = {entrant: calibrated(result) for entrant, result in results.items()}
    title = "Calibration of the prior"
    caption = (
        f"{NOTE} On the diagonal predictions are right. Clicks per exposure may lie higher "
        "than relevance, since what does well is shown more; bars are their standard error."
    )
    panels = tuple(_panel(entrant, own) for entrant, own in calibrations.items())
    return Outcome(
        tables=(_table(title, calibrations),),
        figures=(Figure("calibration", title, caption, panels),),
    )


def calibrated(result: Result) -> Calibration:
    """Return how well the prior did over all trials."""
    predictions = [trial.calibration for trial in result.trials if trial.calibration is not None]
    return calibration(np.concatenate(predictions))


def _panel(entrant: Entrant, calibrated: Calibration) -> Panel:
    predicted = tuple(bin_.predicted for bin_ in calibrated.bins)
    relevance = tuple(bin_.relevance for bin_ in calibrated.bins)
    rates = Series(
        "clicks per exposure",
        "clicks",
        predicted,
        tuple(bin_.observed for bin_ in calibrated.bins),
        tuple(bin_.error or 0.0 for bin_ in calibrated.bins),
    )
    points = (Series("true relevance", entrant.style, predicted, relevance), rates)
    x_label, y_label = "predicted relevance", "mean of the bin"
    return Panel(entrant.label, x_label, y_label, points, kind="points", diagonal=True)


def _table(title: str, calibrations: dict[Entrant, Calibration]) -> Table:
    rows = []
    for entrant, own in calibrations.items():
        for bin_ in own.bins:
            rate = Cell(bin_.observed, bin_.error)
            count = Cell(float(bin_.count), digits=0)
            cells = (Cell(bin_.predicted), Cell(bin_.relevance), rate, count)
            rows.append(Row(cells, group=entrant.label))
        if own.coverage is not None:
            interval = f"in the {own.level:.0%} interval"
            coverage: tuple[Cell | str, ...] = (interval, Cell(own.coverage), "", "")
            rows.append(replace(rows[-1], cells=coverage))
    columns = ("predicted", "true relevance", "clicks per exposure", "items")
    caption = (
        f"{NOTE} The deviation of clicks per exposure is its standard error. Last of each: the "
        "share of items whose true relevance lies in the central interval that was predicted."
    )
    return Table("calibration", title, caption, tuple(map(Column, columns)), tuple(rows))


EXPERIMENT = Experiment("calibration", "Calibration of the prior", outcome, runs, extra=True)
