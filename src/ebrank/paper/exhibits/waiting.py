"""How long does a good new item wait for its first impression, and for a place at the top?

The items are the most relevant ones of test queries that entered while serving. Waits count the
sessions of an item's query since it entered. Many items are still waiting when the run ends, so
shares are Kaplan and Meier's estimate (`evaluation.survival`), all trials together.

The top is that of the list that the model alone would make. It is checked only at model updates,
and without exploration: see `simulation.records`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from ebrank.lab.simulation.result import Result
from ebrank.paper.framework.display import Cell, Column, Display, Figure, Panel, Row, Series, Table
from ebrank.paper.framework.entrants import EBRANK, ENTRANTS, FIGURES, Entrant
from ebrank.paper.framework.exhibit import Exhibit, NamedResults, NamedRuns, Setup
from ebrank.statistics.survival import Curve, kaplan_meier

Wait: TypeAlias = Literal["wait_shown", "wait_top"]

SHOWN = "first impression"
SOON = 10
"""Sessions after which the table gives the share."""
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
        "wait_top": f"top {length} by its own estimate",
    }


def runs(setup: Setup) -> NamedRuns:
    """Return all entrants."""
    return {entrant: setup.run(entrant.key) for entrant in ENTRANTS}


def display(setup: Setup, results: NamedResults) -> Display:
    """Return the curves of the rankers in the figures, and a table of all rankers."""
    events = waits(setup.config.list_length)
    curves = {
        entrant: {event: curve(result, event) for event in events}
        for entrant, result in results.items()
    }
    panels = tuple(
        Panel(
            f"Until the {name}",
            "sessions since it entered",
            "share of new relevant items",
            tuple(_steps(entrant, curves[entrant][event]) for entrant in FIGURES),
            kind="steps",
            zero=True,
        )
        for event, name in events.items()
    )
    title = "Waiting times of new relevant items"
    figure = Figure("waiting", title, f"{NOTE} {LOOKED} {BANDS}", panels)
    return Display(tables=(_table(title, events, results, curves),), figures=(figure,))


def curve(result: Result, event: Wait) -> Curve:
    """Return the share of items for which it has happened, all trials together."""
    happened = np.concatenate([getattr(trial, event) for trial in result.trials])
    return kaplan_meier(happened, np.concatenate([trial.watched for trial in result.trials]))


def _steps(entrant: Entrant, curve: Curve) -> Series:
    """Return a curve from the session of entering to the last known session of any item."""
    if curve.until < 0:
        return Series(entrant.label, entrant.style, (), ())
    x = np.unique(np.concatenate(([0], curve.x, [curve.until])))
    before = np.searchsorted(curve.x, x, side="right")
    error = np.concatenate(([0.0], curve.error))[before]
    return Series(
        entrant.label,
        entrant.style,
        tuple(x.astype(float).tolist()),
        tuple(curve.at(x).tolist()),
        tuple(error.tolist()),
    )


def _table(
    title: str,
    events: dict[Wait, str],
    results: NamedResults,
    curves: dict[Entrant, dict[Wait, Curve]],
) -> Table:
    """Return medians and shares."""
    headings = ("median wait", f"by {SOON} sessions", "by the end")
    columns = [Column("ranker"), Column("items")]
    columns += [Column(heading, name) for name in events.values() for heading in headings]
    rows = [
        Row(
            (
                entrant.label,
                Cell(float(sum(len(trial.watched) for trial in result.trials)), digits=0),
                *(cell for event in events for cell in _cells(curves[entrant][event])),
            ),
            group=entrant.heading,
            apart=entrant.apart,
            focus=entrant.key == EBRANK,
        )
        for entrant, result in results.items()
    ]
    caption = (
        f"{NOTE} {LOOKED} No median: it was not reached. No share by {SOON} sessions: no item was "
        "watched for as long."
    )
    return Table("waiting", title, caption, tuple(columns), tuple(rows))


def _cells(curve: Curve) -> tuple[Cell, ...]:
    """Return the median, the share by `SOON` and the share at the end; None where unknown."""
    median = None if curve.median is None else float(curve.median)
    shares = (
        float(curve.at(age)) if 0 <= age <= curve.until else None for age in (SOON, curve.until)
    )
    return (Cell(median, digits=0), *(Cell(share, digits=2) for share in shares))


EXHIBIT = Exhibit("waiting", display, runs)
