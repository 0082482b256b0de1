"""What if an item that was never shown has the mean x^b instead of 0?

The paper leaves this default open ("how to set the default x^b is not within the scope"); every
ranker that concatenates x^b depends on it.
"""

from __future__ import annotations

import numpy as np

from ebrank.experiments.framework.entrants import CONCATENATING, twin
from ebrank.experiments.framework.experiment import Experiment, Results, Run, Setup
from ebrank.experiments.framework.measures import (
    COLD,
    MEASURES,
    WARM,
    Measure,
    averaged,
    cells,
    series,
)
from ebrank.experiments.framework.outcome import Column, Figure, Outcome, Panel, Row, Series, Table

DEFAULTS = {"zero": "0", "mean": "mean"}
ENTRANTS = tuple(entrant for entrant in CONCATENATING if twin(entrant) is not None)
CAPTION = (
    "x^b of an item that was never shown is 0, as in the paper, or the mean of those that were."
)


def runs(setup: Setup) -> list[Run]:
    """Return every concatenating ranker with both defaults."""
    return [setup.run(entrant.key, default=default) for entrant in ENTRANTS for default in DEFAULTS]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return bars side by side, and a table."""
    title = "Default of the behavior feature"
    caption = f"{CAPTION} {averaged(setup.trials)}."
    drawn = tuple(_panel(setup, results, measure) for measure in (COLD, WARM))
    rows = [
        Row(
            (DEFAULTS[default], *cells(results[setup.run(entrant.key, default=default)])),
            entrant.label,
        )
        for entrant in ENTRANTS
        for default in DEFAULTS
    ]
    columns = (Column("default x^b"), *(Column(measure.title) for measure in MEASURES))
    return Outcome(
        tables=(Table("default", title, caption, columns, tuple(rows)),),
        figures=(Figure("default", title, caption, drawn),),
    )


def _panel(setup: Setup, results: Results, measure: Measure) -> Panel:
    return Panel(
        measure.title,
        "",
        measure.title,
        tuple(_bars(setup, results, measure, default) for default in DEFAULTS),
        kind="bars",
    )


def _bars(setup: Setup, results: Results, measure: Measure, default: str) -> Series:
    own = [results[setup.run(entrant.key, default=default)] for entrant in ENTRANTS]
    values = np.array([measure.values(result) for result in own]).T
    names = tuple(entrant.label for entrant in ENTRANTS)
    return series(f"default {DEFAULTS[default]}", f"default-{default}", names, values)


EXPERIMENT = Experiment("default", "Default of the behavior feature", outcome, runs, extra=True)
