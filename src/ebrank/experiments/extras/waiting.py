"""How long does a good new item wait: to be seen for the first time, and to be thought well of?

Watched are the most relevant items of test queries that entered while serving. Waits count the
sessions of an item's query since it entered. Many are still waiting when the run ends, so shares
are Kaplan and Meier's estimate (`evaluation.survival`), all trials together.

Being thought well of means to stand in the top of the list that the model alone would make. That is
looked up at model updates only, and without exploration: see `simulation.waiting`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from ebrank.evaluation.survival import Curve, kaplan_meier
from ebrank.experiments.lineup import ENTRANTS, FIGURES, TUNED, Entrant
from ebrank.experiments.outcome import Cell, Column, Figure, Outcome, Panel, Row, Series, Table
from ebrank.experiments.run import Experiment, Results, Run, Setup
from ebrank.simulation.result import Result

Wait: TypeAlias = Literal["wait_shown", "wait_top"]

SHOWN = "first impression"
SOON = 10
"""Sessions that the table looks at."""
NOTE = (
    "Most relevant items of test queries that entered while serving; waits count the sessions of "
    "an item's query since it entered. Kaplan and Meier's estimate over the items of all trials, "
    "for many are still waiting at the end."
)
LOOKED = (
    "Who is in the top is looked up at model updates, by the ranker's own estimate, exploration "
    "left out. Between updates nobody looks, so even BM25 and Oracle seem to wait."
)
BANDS = (
    "Bands are Greenwood's standard error, which takes items to be independent of each other; "
    "those of one query are not."
)


def waits(length: int) -> dict[Wait, str]:
    """Return what items wait for, in lists of this length."""
    return {
        "wait_shown": SHOWN,
        "wait_top": f"top {length} by its own estimate, at a model update",
    }


def runs(setup: Setup) -> list[Run]:
    """Return all entrants."""
    return [setup.run(one.key) for one in ENTRANTS]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return curves of those in the figures, and a table of all."""
    events = waits(setup.config.list_length)
    found = {one: results[setup.run(one.key)] for one in ENTRANTS}
    curves = {
        one: {event: curve(result, event) for event in events} for one, result in found.items()
    }
    panels = tuple(
        Panel(
            f"Until the {name}",
            "sessions since it entered",
            "share of new relevant items",
            tuple(_steps(one, curves[one][event]) for one in FIGURES),
            kind="steps",
            zero=True,
        )
        for event, name in events.items()
    )
    title = "Waiting times of new relevant items"
    figure = Figure("waiting", title, f"{NOTE} {LOOKED} {BANDS}", panels)
    return Outcome(tables=(_table(title, events, found, curves),), figures=(figure,))


def curve(result: Result, event: Wait) -> Curve:
    """Return the share of items for which it has happened, all trials together."""
    happened = np.concatenate([getattr(trial, event) for trial in result.trials])
    return kaplan_meier(happened, np.concatenate([trial.watched for trial in result.trials]))


def _steps(one: Entrant, curve: Curve) -> Series:
    """Return a curve from the session of entering to the last that anybody was watched."""
    if curve.until < 0:
        return Series(one.label, one.style, (), ())
    x = np.unique(np.concatenate(([0], curve.x, [curve.until])))
    before = np.searchsorted(curve.x, x, side="right")
    error = np.concatenate(([0.0], curve.error))[before]
    return Series(
        one.label,
        one.style,
        tuple(x.astype(float).tolist()),
        tuple(curve.at(x).tolist()),
        tuple(error.tolist()),
    )


def _table(
    title: str,
    events: dict[Wait, str],
    found: dict[Entrant, Result],
    curves: dict[Entrant, dict[Wait, Curve]],
) -> Table:
    """Return medians and shares."""
    columns = [Column("ranker"), Column("items")]
    for name in events.values():
        columns += [
            Column(told, name) for told in ("median wait", f"by {SOON} sessions", "by the end")
        ]
    rows = [
        Row(
            (
                one.label,
                Cell(float(sum(len(trial.watched) for trial in result.trials)), digits=0),
                *(cell for event in events for cell in _cells(curves[one][event])),
            ),
            group=one.heading,
            apart=one.apart,
        )
        for one, result in found.items()
    ]
    caption = (
        f"{NOTE} {LOOKED} No median: it was not reached. No share by {SOON} sessions: no item was "
        "watched for as long."
    )
    return Table("waiting", title, caption, tuple(columns), tuple(rows))


def _cells(curve: Curve) -> tuple[Cell, ...]:
    """Return the median, the share soon, and that at the end, each None where it is not known."""
    median = None if curve.median is None else float(curve.median)
    shares = (
        float(curve.at(age)) if 0 <= age <= curve.until else None for age in (SOON, curve.until)
    )
    return (Cell(median, digits=0), *(Cell(share, digits=2) for share in shares))


EXPERIMENT = Experiment(
    "waiting", "Waiting times of new relevant items", outcome, runs, tuned=TUNED, extra=True
)
