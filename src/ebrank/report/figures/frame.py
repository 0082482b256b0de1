"""How much room a panel needs, in points (1/72 inch), before anything is drawn.

`render` puts frames side by side and `panels.draw` fills them. All plots have the same size, and
the picture grows with its labels. Matplotlib's constrained layout goes the other way: it shrinks
the plots to fit labels into a picture of a given size.
"""

from __future__ import annotations

from dataclasses import dataclass

from ebrank.experiments.framework.outcome import Panel, Series
from ebrank.report.figures.scales import categories
from ebrank.report.figures.text_width import SIZE, text_width

LINE = 11.5
"""From one line of text to the next."""

PLOT_WIDTH = 168.0
PLOT_HEIGHT = 168.0
TO_LABEL = 13.0
"""From the plot to the names of lines."""
_LONG_NAME = 8
_MANY_NAMES = 10


@dataclass(frozen=True)
class Frame:
    """Room around and inside a panel's axes."""

    left: float
    right: float
    top: float
    bottom: float
    width: float
    height: float


def frame(panel: Panel) -> Frame:
    """Return the room a panel needs."""
    named_above = [] if labeled_at_end(panel) else legend_lines(panel)
    top = LINE * (1 + bool(y_words(panel)) + len(named_above)) + 8
    right = 12.0
    if labeled_at_end(panel):
        right = (
            TO_LABEL + 6 + max(text_width(series.label, SIZE, bold=True) for series in panel.series)
        )
    left, height = 36.0, PLOT_HEIGHT
    if horizontal(panel):
        names = categories(panel) or []
        left = 10 + max(text_width(name, SIZE) for name in names)
        height = max(60.0, len(names) * (8.0 * len(panel.series) + 8.0))
    return Frame(left, right, top, 36.0, PLOT_WIDTH, height)


def part_id(series: int, part: str) -> str:
    """Return the id with which a page finds a part of a series.

    >>> part_id(2, "line")
    'series-2-line'
    """
    return f"series-{series}-{part}"


def horizontal(panel: Panel) -> bool:
    """Return whether bars are horizontal, because their names are long or many."""
    names = categories(panel)
    if panel.kind != "bars" or names is None:
        return False
    return len(names) > _MANY_NAMES or max(map(len, names)) > _LONG_NAME


def y_words(panel: Panel) -> str:
    """Return the y label to write above the plot: none if the title says the same."""
    words = panel.x_label if horizontal(panel) else panel.y_label
    return "" if words == panel.title else words


def labeled_at_end(panel: Panel) -> bool:
    """Return whether the series' names are at the ends of their lines."""
    return panel.kind in ("lines", "steps") and any(series.y for series in panel.series)


def legend_lines(panel: Panel) -> list[list[Series]]:
    """Return the series to name above a plot, line by line; none if there is only one."""
    if len(panel.series) < 2:
        return []
    lines: list[list[Series]] = [[]]
    for series in panel.series:
        taken = sum(legend_width(other) for other in lines[-1])
        if lines[-1] and taken + legend_width(series) > PLOT_WIDTH + 44:
            lines.append([])
        lines[-1].append(series)
    return lines


def legend_width(series: Series) -> float:
    """Return the room that a name above the plot takes, with its marker."""
    return text_width(series.label, SIZE, bold=True) + 19
