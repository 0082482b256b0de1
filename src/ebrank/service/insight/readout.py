"""What an experiment has shown so far; you may look every day.

Intervals are confidence sequences over cells of units (`ebrank.statistics.sequential`). Only
stretches that can be compared with the latest count: the same arms, with shares in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import structs

from ebrank.service import api
from ebrank.service.core.experiments import CELLS, OWN, Experiment, Stretch
from ebrank.service.store.records import ArmSums
from ebrank.statistics import sequential
from ebrank.statistics.sequential import FEWEST_UNITS, Interval, Moments
from ebrank.typing import Floats

METRICS = ("clicks", "outcome", "found")
SURE = 0.01
"""Below this p-value of the sample ratio, arms were not assigned as planned."""


def readout(experiment: Experiment, sums: Iterable[ArmSums], *, waits: bool) -> api.ExperimentOut:
    """Return an experiment with what its sums say; `waits` if an arm still has no prior."""
    last, numbers = experiment.stretch, experiment.comparable()
    compared = [of for of in sums if of.stretch in numbers]
    cells = {arm: _cells([of for of in compared if of.arm == arm]) for arm in last.arms}
    moments = {arm: _moments(of) for arm, of in cells.items()}
    first, *others = moments
    arms = list[api.ArmOut]()
    for arm, policy in last.arms.items():
        lists = cells[arm]["lists"]
        figures = {name: _out(sequential.mean(of)) for name, of in moments[arm].items()}
        differences = {
            name: _out(sequential.difference(of, moments[first][name]))
            for name, of in moments[arm].items()
            if arm in others
        }
        units, total, share = int(np.count_nonzero(lists)), int(lists.sum()), last.shares[arm]
        arms.append(api.ArmOut(arm, policy, share, units, total, **figures, difference=differences))
    stretches = [experiment.stretches[number - 1] for number in numbers]
    shown = api.ExperimentOut(
        name=experiment.name,
        unit=experiment.unit,
        state="ended" if experiment.ended is not None else "waiting" if waits else "running",
        started=experiment.stretches[0].since,
        since=stretches[0].since,
        ended=experiment.ended,
        stretches=len(experiment.stretches),
        left_out=len(experiment.stretches) - len(stretches),
        sample_ratio_p=_ratio_p(stretches, cells) if others else None,
        arms=arms,
        notes=[],
    )
    return structs.replace(shown, notes=[*_notes(shown)])


def _cells(sums: Sequence[ArmSums]) -> dict[str, Floats]:
    """Return an arm's lists and each metric by cell."""
    columns = {name: [getattr(of, name) for of in sums] for name in ("lists", *METRICS)}
    cells = np.array([of.cell for of in sums], np.int64)
    return {name: np.bincount(cells, of, CELLS).astype(float) for name, of in columns.items()}


def _moments(cells: Mapping[str, Floats]) -> dict[str, Moments]:
    """Return the moments of each metric over an arm's cells with lists."""
    there = cells["lists"] > 0.0
    return {name: Moments.of(cells[name][there], cells["lists"][there]) for name in METRICS}


def _out(interval: Interval) -> api.MetricOut:
    return api.MetricOut(*(end if math.isfinite(end) else None for end in interval))


def _ratio_p(stretches: Sequence[Stretch], arms: Mapping[str, Mapping[str, Floats]]) -> float:
    """Return a p-value of "arms got their shares", of cells with lists and of lists in all cells.

    Where there are many more units than cells, every cell has lists, whatever is lost.
    """
    arm_of = np.array([stretch.cells for stretch in stretches])
    lists = {arm: cells["lists"] for arm, cells in arms.items()}
    units = [int(np.count_nonzero(had)) for had in lists.values()]
    had = [Moments.of(had[(arm_of == arm).any(axis=0)]) for arm, had in lists.items()]
    by_units = sequential.sample_ratio_p(units, list(stretches[-1].shares.values()))
    return min(2.0 * min(by_units, sequential.equal_lists_p(had)), 1.0)


def _notes(shown: api.ExperimentOut) -> Iterable[str]:
    if shown.state == "waiting":
        yield (
            "An arm needs a prior of its own, which no training run has learned yet: no list is "
            "assigned until one has. If a run has ended, its outcome says why."
        )
    if shown.left_out:
        yield (
            f"Arms or the proportions of their shares were changed: {shown.left_out} of "
            f"{shown.stretches} stretches are left out."
        )
    if shown.sample_ratio_p is not None and shown.sample_ratio_p < SURE:
        yield (
            "Arms did not get their planned shares of units or lists (p = "
            f"{shown.sample_ratio_p:.2g}): those of an arm are lost somewhere, or its users ask "
            "more or less often. Do not trust the differences until you know which."
        )
    if shown.unit == "user":
        yield (
            "All arms list the same queries: what one of them finds, the others list too, so "
            "differences understate what exploration is worth."
        )
    if any(arm.policy == OWN for arm in shown.arms):
        yield "Only requests that give items in an order of their own take part."
    few = [arm.name for arm in shown.arms if arm.clicks.value and arm.clicks.low is None]
    if few:
        yield (
            f"No interval yet for {', '.join(few)}: an arm needs {FEWEST_UNITS:.0f} effective "
            "units, (Σ lists)²/Σ lists² over its units, so that one with many lists counts for "
            "little more than one."
        )
