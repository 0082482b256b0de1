"""What is measured, as cells of tables and lines of figures: Cold-, Warm-, Cum- and Run-NDCG.

A cell is the mean over trials with their standard deviation; a line is the mean at each checkpoint,
with a band of one standard deviation to either side.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ebrank.lab.evaluation.significance import Metric
from ebrank.lab.simulation.result import LABELS, Result, TrialResult, spread
from ebrank.paper.framework.display import Cell, Column, Figure, Panel, Series
from ebrank.paper.framework.entrants import Entrant
from ebrank.paper.framework.numbers import number
from ebrank.typing import Floats

T = TypeVar("T")


@dataclass(frozen=True)
class Measure:
    """One of the paper's three (Sec. 5.1), or the mean NDCG of all lists served.

    Exploring early and stopping in time can raise Cum-NDCG alone, but not Run-NDCG.

    Attributes:
        metric: its name in `Result` and `compare`.
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
        """`cold`, `warm`, `cum` or `run`."""
        return self.metric.removesuffix("_ndcg")

    def values(self, result: Result) -> Floats:
        """Return the value of each trial at the end."""
        values: Floats = getattr(result, self.metric)
        return values

    def mean(self, result: Result) -> float:
        """Return the mean over trials."""
        return float(self.values(result).mean())

    def text(self, value: float, *, signed: bool = False) -> str:
        """Return a value as the paper prints it.

        >>> MEASURES[0].text(0.5961), MEASURES[2].text(-1.26, signed=True)
        ('.596', '−1.3')
        """
        return number(value, self.digits, signed=signed)


MEASURES = (
    Measure("cold_ndcg", "Cold-NDCG", 3, lambda trial: trial.cold_ndcg[:, 0]),
    Measure("warm_ndcg", "Warm-NDCG", 3, lambda trial: trial.warm_ndcg[:, 0]),
    Measure("cum_ndcg", "Cum-NDCG", 1, lambda trial: trial.cum_ndcg),
    Measure("run_ndcg", "Run-NDCG", 3, lambda trial: trial.run_ndcg),
)
COLD, WARM, CUM, RUN = MEASURES
COLUMNS = tuple(Column(measure.title) for measure in MEASURES)
"""The columns of `cells`."""
PUBLISHED = (COLD, WARM, CUM)
"""The measures in the paper's figures."""
BY_LABELS = dict(zip(LABELS, ("Cold (labels)", "Warm (labels)", "Run (labels)"), strict=True))
"""Titles of the measures with standard gains."""
LABELS_CAPTION = "(labels): NDCG with the standard gain 2^label − 1 instead of R."
BANDS = "; bands, of emphasized lines alone if there are many, are one standard deviation"
AT_UPDATES = " at each model update"


def averaged(trials: int, at: str = "", spread: str = " and one standard deviation") -> str:
    """Return what a caption says about averaging; one trial has neither a mean nor a spread.

    >>> averaged(5), averaged(1)
    ('Mean of the trials and one standard deviation', 'One trial')
    >>> averaged(5, " at each update", "; bands are one standard deviation")
    'Mean of the trials at each update; bands are one standard deviation'
    """
    return f"One trial{at}" if trials == 1 else f"Mean of the trials{at}{spread}"


def ndcg_at(cutoff: int, list_length: int) -> str:
    """Return at which ranks NDCG is measured: Cold- and Warm- at the cutoff, the rest as shown.

    >>> ndcg_at(5, 5), ndcg_at(10, 5)
    ('NDCG@5', 'Cold- and Warm-NDCG@10, Cum- and Run-NDCG@5')
    """
    if cutoff == list_length:
        return f"NDCG@{cutoff}"
    return f"Cold- and Warm-NDCG@{cutoff}, Cum- and Run-NDCG@{list_length}"


def cell(values: Floats, digits: int = 3, folds: Floats | None = None) -> Cell:
    """Return the mean over trials, with the standard deviation of folds if given, else of trials.

    It is empty if a trial has no value.
    """
    if not np.isfinite(values).all():
        return Cell(None, digits=digits)
    return Cell(float(values.mean()), spread(values if folds is None else folds), digits)


def cells(result: Result) -> tuple[Cell, ...]:
    """Return the measures of a result."""
    return tuple(
        cell(measure.values(result), measure.digits, result.by_fold.get(measure.metric))
        for measure in MEASURES
    )


def compared_cells(
    result: Result, results: Collection[Result], marks: Iterable[str]
) -> tuple[Cell, ...]:
    """Return the measures of one of several results, with marks; the best of all are bold."""
    return tuple(
        replace(own, best=own.value == max(map(measure.mean, results)), marks=mark)
        for measure, own, mark in zip(MEASURES, cells(result), marks, strict=True)
    )


def label_cells(result: Result) -> tuple[Cell, ...]:
    """Return the measures with standard gains, without their spread."""
    return tuple(replace(cell(getattr(result, metric)), sd=None) for metric in BY_LABELS)


def mean_of(results: Sequence[Result]) -> str:
    """Return what a caption says about the figures of a table and their spread."""
    first = results[0]
    if first.by_fold:
        return (
            "mean of the trials ± standard deviation of the folds (each has its own training "
            "queries)"
        )
    return "mean of the trials ± standard deviation" if len(first.trials) > 1 else "one trial"


def behavior_ratios(result: Result) -> Floats:
    """Return the exploitation ratio of x^b and the largest other one, shape (trials, 2).

    Those of pooled folds are means over folds, each of which has its own model.
    """
    weights = [np.atleast_2d(trial.weights) for trial in result.trials if trial.weights is not None]
    return np.array(
        [np.mean([behavior_and_other(own) for own in rows], axis=0) for rows in weights]
    )


def exploitation_ratio(weights: npt.ArrayLike) -> Floats:
    """Return |w_j| / Σ_i |w_i| of each weight, shape (features,); all 0 if every weight is 0.

    >>> exploitation_ratio([1.0, -1.0, 2.0])
    array([0.25, 0.25, 0.5 ])
    """
    sizes = np.abs(np.asarray(weights, np.float64))
    total = sizes.sum()
    return sizes / total if total > 0 else sizes


def behavior_and_other(weights: npt.ArrayLike) -> tuple[float, float]:
    """Return the ratio of the last weight, that of x^b, and the largest of all others.

    >>> behavior_and_other([1.0, -3.0, 4.0])
    (0.5, 0.375)
    """
    ratios = exploitation_ratio(weights)
    return float(ratios[-1]), float(ratios[:-1].max())


def series(label: str, style: str, x: tuple[float | str, ...], values: Floats) -> Series:
    """Return a line through the means of `values`, shape (trials, points), with their spread.

    It leaves out points where a trial has no value.
    """
    finite = np.flatnonzero(np.isfinite(values).all(axis=0))
    x, values = tuple(x[point] for point in finite), values[:, finite]
    error = tuple(values.std(axis=0, ddof=1).tolist()) if len(values) > 1 else ()
    return Series(label, style, x, tuple(values.mean(axis=0).tolist()), error)


def figure_over_time(
    name: str, title: str, caption: str, results: Mapping[Entrant, Result]
) -> Figure:
    """Return all measures against the sessions served, a line for each ranker."""

    def line(entrant: Entrant, result: Result, measure: Measure) -> Series:
        x = tuple(result.trials[0].sessions.astype(float).tolist())
        values = np.array([measure.over_time(trial) for trial in result.trials])
        return series(entrant.label, entrant.style, x, values)

    return Figure(name, title, caption, _panels("sessions", results, line, MEASURES))


def panels_against(
    x_label: str,
    results: Mapping[Entrant, Mapping[float, Result]],
    measures: Iterable[Measure] = MEASURES,
) -> tuple[Panel, ...]:
    """Return measures at the end against a varied value, on a logarithmic axis."""

    def line(entrant: Entrant, own: Mapping[float, Result], measure: Measure) -> Series:
        values = np.array([measure.values(result) for result in own.values()])
        return series(entrant.label, entrant.style, tuple(own), values.T)

    drawn = _panels(x_label, results, line, measures)
    return tuple(replace(panel, log_x=True) for panel in drawn)


def _panels(
    x_label: str,
    results: Mapping[Entrant, T],
    line: Callable[[Entrant, T, Measure], Series],
    measures: Iterable[Measure],
) -> tuple[Panel, ...]:
    """Return a panel for each measure, with a line for each ranker."""
    return tuple(
        Panel(
            *(measure.title, x_label, measure.title),
            tuple(line(entrant, own, measure) for entrant, own in results.items()),
        )
        for measure in measures
    )
