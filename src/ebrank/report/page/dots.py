"""Rankers as dots: our figure with its deviation and the published one, a column per measure.

Positions are in percent of a column's width; all rankers share a measure's scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ebrank.report.page.standings import COLD, CUM, WARM, Standing

SHOWN = (COLD, WARM, CUM)
MARGIN = 6.0
"""Room at either side, in percent."""


@dataclass(frozen=True)
class Dot:
    """One figure and the published one, None if there is none."""

    ours: float
    low: float
    high: float
    published: float | None


@dataclass(frozen=True)
class DotRow:
    """A ranker's dots, one for each measure."""

    name: str
    focus: bool
    dots: Sequence[Dot]


def dot_rows(chosen: Sequence[Standing], focus: str) -> list[DotRow]:
    """Return the rankers in the order of the table."""
    scales = {measure: _scale(chosen, measure) for measure in SHOWN}
    return [
        DotRow(
            standing.name,
            standing.entrant.key == focus,
            [_dot(standing, measure, scales[measure]) for measure in SHOWN],
        )
        for standing in chosen
    ]


def _scale(chosen: Sequence[Standing], measure: str) -> tuple[float, float]:
    """Return the lowest and the highest value to show."""
    values = [end for standing in chosen for end in _ends(standing, measure)]
    values += [each.published[measure] for each in chosen if measure in each.published]
    return min(values), max(values)


def _ends(standing: Standing, measure: str) -> tuple[float, float]:
    value, deviation = standing.value(measure), standing.cells[measure].sd or 0.0
    return value - deviation, value + deviation


def _dot(standing: Standing, measure: str, scale: tuple[float, float]) -> Dot:
    low, high = (_place(end, scale) for end in _ends(standing, measure))
    theirs = standing.published.get(measure)
    return Dot(
        _place(standing.value(measure), scale),
        low,
        high,
        None if theirs is None else _place(theirs, scale),
    )


def _place(value: float, scale: tuple[float, float]) -> float:
    low, high = scale
    inside = (value - low) / (high - low) if high > low else 0.5
    return round(MARGIN + (100 - 2 * MARGIN) * inside, 2)
