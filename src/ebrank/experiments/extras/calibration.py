"""Does the prior keep its promises? What it said of unseen items, and what came of them.

Half-way through the run the engine notes the Beta prior of every item of a test query that nobody
has seen; at the end it keeps those that somebody saw since (`evaluation.calibration`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ebrank.evaluation import calibration
from ebrank.evaluation.calibration import Calibration
from ebrank.experiments.lineup import EBRANK, EXPOSURE, Entrant, entrant
from ebrank.experiments.outcome import Cell, Column, Figure, Outcome, Panel, Row, Series, Table
from ebrank.experiments.run import Experiment, Results, Run, Setup
from ebrank.simulation.result import Result

WITH_PRIOR = tuple(map(entrant, (EBRANK, EXPOSURE, "thompson")))
NOTE = (
    "Items of test queries that nobody had seen half-way through the run and somebody saw later, "
    "in ten bins by the mean that the prior predicted half-way; all trials together."
)


def runs(setup: Setup) -> list[Run]:
    """Return the rankers that have a Beta prior."""
    return [setup.run(one.key) for one in WITH_PRIOR]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return predictions beside relevance and later click rates."""
    found = {one: calibrated(results[setup.run(one.key)]) for one in WITH_PRIOR}
    title = "Calibration of the prior"
    caption = (
        f"{NOTE} On the diagonal predictions are right. Clicks per exposure may lie higher "
        "than relevance, since what does well is shown more; bars are their standard error."
    )
    panels = tuple(_panel(one, each) for one, each in found.items())
    return Outcome(
        tables=(_table(title, found),),
        figures=(Figure("calibration", title, caption, panels),),
    )


def calibrated(result: Result) -> Calibration:
    """Return how the prior did, all trials together."""
    promised = [trial.calibration for trial in result.trials if trial.calibration is not None]
    return calibration.calibration(np.concatenate(promised))


def _panel(one: Entrant, found: Calibration) -> Panel:
    predicted = tuple(each.predicted for each in found.bins)
    relevance = tuple(each.relevance for each in found.bins)
    rates = Series(
        "clicks per exposure",
        "clicks",
        predicted,
        tuple(each.observed for each in found.bins),
        tuple(each.error or 0.0 for each in found.bins),
    )
    points = (Series("true relevance", one.style, predicted, relevance), rates)
    told = "mean of the bin"
    return Panel(one.label, "predicted relevance", told, points, kind="points", diagonal=True)


def _table(title: str, found: dict[Entrant, Calibration]) -> Table:
    rows = []
    for one, each in found.items():
        for bin_ in each.bins:
            rate = Cell(bin_.observed, bin_.error)
            count = Cell(float(bin_.count), digits=0)
            cells = (Cell(bin_.predicted), Cell(bin_.relevance), rate, count)
            rows.append(Row(cells, group=one.label))
        if each.coverage is not None:
            told = f"in the {each.level:.0%} interval"
            covered: tuple[Cell | str, ...] = (told, Cell(each.coverage), "", "")
            rows.append(replace(rows[-1], cells=covered))
    columns = ("predicted", "true relevance", "clicks per exposure", "items")
    caption = (
        f"{NOTE} The deviation of clicks per exposure is its standard error. Last of each: the "
        "share of items whose true relevance lies in the central interval that was predicted."
    )
    return Table("calibration", title, caption, tuple(map(Column, columns)), tuple(rows))


EXPERIMENT = Experiment(
    "calibration", "Calibration of the prior", outcome, runs, tuned=(EBRANK, EXPOSURE), extra=True
)
