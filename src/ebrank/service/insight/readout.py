"""What an experiment has shown so far; it may be looked at every day.

Intervals are confidence sequences over cells of units (`ebrank.statistics.sequential`). Only
stretches that can be compared with the latest count: the same arms, with shares in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ebrank.service import api
from ebrank.service.core.experiments import CELLS, OWN, Experiment
from ebrank.service.store.records import ArmSums
from ebrank.statistics.sequential import (
    FEWEST_UNITS,
    Interval,
    Moments,
    difference,
    equal_lists_p,
    mean,
    sample_ratio_p,
)
from ebrank.typing import Floats

METRICS = ("clicks", "outcome", "found")
SURE = 0.01
"""Below this p-value of the sample ratio, arms were not assigned as planned."""
_LISTS = len(METRICS)


def readout(experiment: Experiment, sums: Iterable[ArmSums], *, waits: bool) -> api.ExperimentOut:
    """Return an experiment with what its sums say; `waits` if an arm still has no prior."""
    numbers, last = experiment.comparable(), experiment.stretch
    by_arm = {arm: list[tuple[float, ...]]() for arm in last.arms}
    for of in sums:
        if of.stretch in numbers and of.arm in by_arm:
            by_arm[of.arm].append((of.cell, of.clicks, of.outcome, of.found, of.lists))
    by_cell = {arm: _sums(rows) for arm, rows in by_arm.items()}
    first = next(iter(last.arms))
    units = [int(np.count_nonzero(cells[_LISTS])) for cells in by_cell.values()]
    ratio = None
    if len(by_cell) > 1:
        ratio = _ratio_p(experiment, numbers, {arm: each[_LISTS] for arm, each in by_cell.items()})
    arms = list[api.ArmOut]()
    for (arm, policy), count in zip(last.arms.items(), units, strict=True):
        own = {name: _metric(mean(_moments(by_cell[arm], at))) for at, name in enumerate(METRICS)}
        compared = {
            name: _metric(difference(_moments(by_cell[arm], at), _moments(by_cell[first], at)))
            for at, name in enumerate(METRICS)
            if arm != first
        }
        lists = int(by_cell[arm][_LISTS].sum())
        arms.append(
            api.ArmOut(arm, policy, last.shares[arm], count, lists, **own, difference=compared)
        )
    state = "running" if experiment.ended is None else "ended"
    return api.ExperimentOut(
        name=experiment.name,
        unit=experiment.unit,
        state="waiting" if waits and state == "running" else state,  # type: ignore[arg-type]
        started=experiment.stretches[0].since,
        since=experiment.stretches[numbers[0] - 1].since,
        ended=experiment.ended,
        stretches=len(experiment.stretches),
        left_out=len(experiment.stretches) - len(numbers),
        sample_ratio_p=ratio,
        arms=arms,
        notes=[*_notes(experiment, len(numbers), ratio, waits=waits), *_few(arms)],
    )


def _sums(rows: Sequence[tuple[float, ...]]) -> Floats:
    """Return the sums of the metrics and of lists of each cell, from rows that begin with it."""
    columns = np.array(rows, np.float64).reshape(len(rows), len(METRICS) + 2).T
    cells = columns[0].astype(np.int64)
    return np.array([np.bincount(cells, values, CELLS) for values in columns[1:]])


def _ratio_p(experiment: Experiment, numbers: Sequence[int], lists: dict[str, Floats]) -> float:
    """Return a p-value of "arms got their shares", of cells with lists and of lists in all cells.

    Where there are many more units than cells, every cell has lists, whatever is lost.
    """
    runs = [experiment.stretches[number - 1].runs for number in numbers]
    stretches = [np.repeat([arm for arm, _ in each], [n for _, n in each]) for each in runs]
    own = [np.any([cells == arm for cells in stretches], axis=0) for arm in lists]
    units = [int(np.count_nonzero(had)) for had in lists.values()]
    had = [Moments.of(had[mine]) for had, mine in zip(lists.values(), own, strict=True)]
    by_units = sample_ratio_p(units, list(experiment.stretch.shares.values()))
    return min(2.0 * min(by_units, equal_lists_p(had)), 1.0)


def _moments(cells: Floats, metric: int) -> Moments:
    """Return the moments of an arm over its cells with lists."""
    there = cells[_LISTS] > 0.0
    return Moments.of(cells[metric, there], cells[_LISTS, there])


def _metric(interval: Interval) -> api.MetricOut:
    return api.MetricOut(*(end if math.isfinite(end) else None for end in interval))


def _notes(
    experiment: Experiment, compared: int, ratio: float | None, *, waits: bool
) -> Iterable[str]:
    if waits and experiment.ended is None:
        yield (
            "An arm needs a prior of its own, which no training run has learned yet: no list is "
            "assigned until one has. If a run has ended, its outcome says why."
        )
    left = len(experiment.stretches) - compared
    if left:
        yield (
            f"Arms or the proportions of their shares were changed: {left} of "
            f"{len(experiment.stretches)} stretches are left out."
        )
    if ratio is not None and ratio < SURE:
        yield (
            f"Arms did not get their planned shares of units or lists (p = {ratio:.2g}): those of "
            "an arm are lost somewhere, or its users ask more or less often. Do not trust the "
            "differences until you know which."
        )
    if experiment.unit == "user":
        yield (
            "All arms list the same queries: what one of them finds, the others list too, so "
            "differences understate what exploration is worth."
        )
    if OWN in experiment.stretch.arms.values():
        yield "Only requests that give items in an order of their own take part."


def _few(arms: Sequence[api.ArmOut]) -> Iterable[str]:
    few = [arm.name for arm in arms if arm.clicks.value and arm.clicks.low is None]
    if few:
        yield (
            f"Too few units for an interval: {', '.join(few)}. A unit with many of an arm's lists "
            f"counts for little more than one; {FEWEST_UNITS:.0f} are needed."
        )


def lines(report: api.ExperimentOut) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return the head and the rows of a table of the arms."""
    head = ("arm", "share", "units", "lists", "", "per list", f"− {report.arms[0].name}")
    rows: list[Sequence[str]] = []
    for arm in report.arms:
        about = (arm.name, f"{arm.share:.0%}", f"{arm.units:,}", f"{arm.lists:,}")
        for name, metric in zip(METRICS, (arm.clicks, arm.outcome, arm.found), strict=True):
            compared = _figure(arm.difference[name], sign="+") if arm.difference else ""
            rows.append((*about, name, _figure(metric), compared))
            about = ("",) * 4
    return head, rows


def _figure(metric: api.MetricOut, sign: str = "") -> str:
    if metric.value is None:
        return "–"
    if metric.low is None or metric.high is None:
        return f"{metric.value:{sign}.3f}"
    return f"{metric.value:{sign}.3f} [{metric.low:{sign}.3f}, {metric.high:{sign}.3f}]"
