"""The table of tuning: every ε that was tried, for each entering probability, and the choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ebrank.experiments.measures import cell
from ebrank.experiments.outcome import Cell, Column, Row, Table
from ebrank.experiments.run import TuningRecord
from ebrank.rankers.registry import typed

CAPTION = (
    "Mean NDCG of the lists served to validation queries in the second half of the run, under "
    "seeds that no report uses. The best of each column, which is chosen, is bold."
)
EDGE = "‡"
AT_THE_EDGE = f" {EDGE} : the choice lies at the end of what was tried; a wider grid may do better."
DIGITS = 4


def table(records: Sequence[TuningRecord]) -> Table | None:
    """Return the table; None if nothing was tuned."""
    if not any(record.grid for record in records):
        return None
    etas = sorted({record.entering_probability for record in records})
    rows = []
    for label in dict.fromkeys(record.label for record in records):
        own = {record.entering_probability: record for record in records if record.label == label}
        rows += _rows(label, own, etas)
    columns = (Column("ε"), *(Column(f"η = {eta:g}") for eta in etas))
    edge = AT_THE_EDGE if any(record.at_the_edge for record in records) else ""
    return Table("tuning", "Tuning of ε", CAPTION + edge, columns, tuple(rows))


def _rows(label: str, own: dict[float, TuningRecord], etas: Sequence[float]) -> list[Row]:
    """Return a row for each ε of an entrant."""
    tried = sorted({point.epsilon for record in own.values() for point in record.grid})
    if not tried:
        given = next(iter(own.values())).epsilon
        return [Row((f"{typed(given)} (given)", *(Cell(None) for _ in etas)), group=label)]
    return [
        Row((typed(epsilon), *(_cell(own.get(eta), epsilon) for eta in etas)), group=label)
        for epsilon in tried
    ]


def _cell(record: TuningRecord | None, epsilon: float) -> Cell:
    points = () if record is None else record.grid
    trials = next((point.trials for point in points if point.epsilon == epsilon), None)
    if record is None or trials is None:
        return Cell(None)
    mean = cell(np.array(trials), DIGITS)
    chosen = epsilon == record.epsilon
    marks = EDGE if chosen and record.at_the_edge else ""
    return Cell(mean.value, mean.sd, DIGITS, best=chosen, marks=marks)
