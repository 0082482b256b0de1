"""What is measured, as cells of tables and lines of figures: Cold-, Warm- and Cum-NDCG.

A cell is the mean over trials with their standard deviation; a line is the mean at each checkpoint,
with a band of one standard deviation to either side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ebrank.evaluation.significance import Metric
from ebrank.experiments.lineup import Entrant
from ebrank.experiments.outcome import Cell, Panel, Series
from ebrank.simulation.result import Result, TrialResult
from ebrank.simulation.summary import spread
from ebrank.typing import Floats


@dataclass(frozen=True)
class Measure:
    """One of the paper's three (Sec. 5.1).

    Attributes:
        metric: what `Result` and `compare` call it.
        title: what readers see.
        digits: after the point.
        over_time: its value in a trial at each checkpoint.
    """

    metric: Metric
    title: str
    digits: int
    over_time: Callable[[TrialResult], Floats]

    @property
    def name(self) -> str:
        """`cold`, `warm` or `cum`."""
        return self.metric.removesuffix("_ndcg")

    def of(self, result: Result) -> Floats:
        """Return the value of each trial at the end."""
        values: Floats = getattr(result, self.metric)
        return values

    def mean(self, result: Result) -> float:
        """Return the mean over trials."""
        return float(self.of(result).mean())

    def text(self, value: float, sign: str = "") -> str:
        """Return a value as the paper prints it.

        >>> MEASURES[0].text(0.5961), MEASURES[2].text(-1.26, "+")
        ('.596', '−1.3')
        """
        return printed(value, self.digits, sign)


MEASURES = (
    Measure("cold_ndcg", "Cold-NDCG", 3, lambda trial: trial.cold_ndcg[:, 0]),
    Measure("warm_ndcg", "Warm-NDCG", 3, lambda trial: trial.warm_ndcg[:, 0]),
    Measure("cum_ndcg", "Cum-NDCG", 1, lambda trial: trial.cum_ndcg),
)
COLD, WARM, CUM = MEASURES
BANDS = "; bands are one standard deviation"
AT_UPDATES = " at each model update"


def printed(value: float, digits: int, sign: str = "") -> str:
    """Return a number as papers print it; one that rounds to zero has no sign.

    >>> printed(0.5961, 3), printed(-0.0312, 2, "+"), printed(-0.0001, 3, "+")
    ('.596', '−.03', '.000')
    """
    told = f"{abs(value):.{digits}f}"
    if told.strip("0."):
        told = ("−" if value < 0 else sign) + told.removeprefix("0")
    return told.removeprefix("0")


def averaged(trials: int, at: str = "", spread: str = " and one standard deviation") -> str:
    """Return what figures show, for their captions; one trial has neither a mean nor a spread.

    >>> averaged(5), averaged(1)
    ('Mean of the trials and one standard deviation', 'One trial')
    >>> averaged(5, " at each update", BANDS)
    'Mean of the trials at each update; bands are one standard deviation'
    """
    return f"One trial{at}" if trials == 1 else f"Mean of the trials{at}{spread}"


def cell(values: Floats, digits: int = 3) -> Cell:
    """Return the mean over trials and their standard deviation."""
    return Cell(float(values.mean()), spread(values), digits)


def cells(result: Result) -> tuple[Cell, ...]:
    """Return the three measures of a result."""
    return tuple(cell(measure.of(result), measure.digits) for measure in MEASURES)


def series(label: str, style: str, x: tuple[float | str, ...], values: Floats) -> Series:
    """Return a line through the means of `values`, shape (trials, points), with their spread."""
    error = tuple(values.std(axis=0, ddof=1).tolist()) if len(values) > 1 else ()
    return Series(label, style, x, tuple(values.mean(axis=0).tolist()), error)


def over_time(one: Entrant, result: Result, measure: Measure) -> Series:
    """Return a measure of a ranker against the sessions served."""
    x = tuple(result.trials[0].sessions.astype(float).tolist())
    values = np.array([measure.over_time(trial) for trial in result.trials])
    return series(one.label, one.style, x, values)


def against(
    one: Entrant, x: tuple[float | str, ...], results: list[Result], measure: Measure
) -> Series:
    """Return a measure of a ranker's results, one for each x."""
    return series(one.label, one.style, x, np.array([measure.of(r) for r in results]).T)


def panels(
    x_label: str, line: Callable[[Measure], tuple[Series, ...]], measures: tuple[Measure, ...]
) -> tuple[Panel, ...]:
    """Return a panel for each measure, with the lines of that measure."""
    return tuple(Panel(one.title, x_label, one.title, line(one)) for one in measures)
