"""How much room a panel needs, in points (1/72 inch), before anything is drawn.

Whoever makes a figure puts frames side by side; `panels.draw` fills them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ebrank.experiments.outcome import Panel, Series
from ebrank.report.scales import categories
from ebrank.report.text_width import SIZE, text_width

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
    named_above = [] if named_at_end(panel) else legend_lines(panel)
    top = LINE * (1 + bool(y_words(panel)) + len(named_above)) + 8
    right = 12.0
    if named_at_end(panel):
        right = TO_LABEL + 6 + max(text_width(one.label, SIZE, bold=True) for one in panel.series)
    left, height = 36.0, PLOT_HEIGHT
    if lying(panel):
        names = categories(panel) or []
        left = 10 + max(text_width(name, SIZE) for name in names)
        height = max(60.0, len(names) * (8.0 * len(panel.series) + 8.0))
    return Frame(left, right, top, 36.0, PLOT_WIDTH, height)


def lying(panel: Panel) -> bool:
    """Return whether bars lie, as they do where their names are long or many."""
    names = categories(panel)
    if panel.kind != "bars" or names is None:
        return False
    return len(names) > _MANY_NAMES or max(map(len, names)) > _LONG_NAME


def y_words(panel: Panel) -> str:
    """Return what is written of y above the plot: nothing where the title says it."""
    words = panel.x_label if lying(panel) else panel.y_label
    return "" if words == panel.title else words


def named_at_end(panel: Panel) -> bool:
    """Return whether the series are named where their lines end."""
    return panel.kind in ("lines", "steps") and any(one.y for one in panel.series)


def legend_lines(panel: Panel) -> list[list[Series]]:
    """Return the series whose names stand above a plot, line by line; none where there is one."""
    if len(panel.series) < 2:
        return []
    lines: list[list[Series]] = [[]]
    for one in panel.series:
        taken = sum(legend_width(other) for other in lines[-1])
        if lines[-1] and taken + legend_width(one) > PLOT_WIDTH + 44:
            lines.append([])
        lines[-1].append(one)
    return lines


def legend_width(one: Series) -> float:
    """Return the room that a name above the plot takes, with its marker."""
    return text_width(one.label, SIZE, bold=True) + 19
