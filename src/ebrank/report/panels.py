"""One pair of axes: lines, steps, bars or points, with the names of series beside them.

No legend boxes, no frame, faint lines across: what is drawn are the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ebrank.experiments.outcome import Panel, Series
from ebrank.report.frame import LINE, SIZE, Frame, lying, named_at_end
from ebrank.report.names import name_above, name_at_end
from ebrank.report.palette import INK, Look, looks
from ebrank.report.scales import categories, places, set_ticks, set_x_axis, set_y_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAINT = 0.14
_MUTED = 0.82


def draw(axes: Axes, panel: Panel, room: Frame) -> None:
    """Draw a panel."""
    chosen = looks([one.style for one in panel.series])
    if lying(panel):
        _draw_lying_bars(axes, panel, chosen)
    else:
        set_x_axis(axes, panel)
        set_y_axis(axes, panel)
        for index, (one, look) in enumerate(zip(panel.series, chosen, strict=True)):
            _draw_series(axes, panel, one, look, index)
    across: Literal["x", "y"] = "x" if lying(panel) else "y"
    axes.grid(axis=across, color=INK, alpha=_FAINT, linewidth=0.6)
    if panel.diagonal:
        _draw_diagonal(axes)
    _draw_texts(axes, panel, room)
    if named_at_end(panel):
        name_at_end(axes, panel, chosen, room)
    else:
        name_above(axes, panel, chosen, room)


def _draw_series(axes: Axes, panel: Panel, one: Series, look: Look, index: int) -> None:
    x = places(panel, one)
    y, error = list(one.y), list(one.error)
    if panel.kind == "bars":
        wide = 0.8 / len(panel.series)
        middle = [place + wide * (index - (len(panel.series) - 1) / 2) for place in x]
        axes.bar(middle, y, wide * 0.92, color=look.light)
        if error:
            axes.errorbar(middle, y, error, fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.5)
    elif panel.kind == "points":
        axes.plot(x, y, look.marker, color=look.light, markersize=4.5, markeredgewidth=0)
        if error:
            axes.errorbar(x, y, error, fmt="none", ecolor=look.light, elinewidth=0.8, alpha=0.7)
    else:
        _draw_line(axes, panel, (x, y, error), look, index)


def _draw_line(
    axes: Axes,
    panel: Panel,
    points: tuple[list[float], list[float], list[float]],
    look: Look,
    index: int,
) -> None:
    """Draw a line or stairs, with the band of its deviation."""
    x, y, error = points
    stairs = panel.kind == "steps"
    if error:
        low = [value - half for value, half in zip(y, error, strict=True)]
        high = [value + half for value, half in zip(y, error, strict=True)]
        step = "post" if stairs else None
        axes.fill_between(x, low, high, step=step, color=look.light, alpha=0.11, linewidth=0)  # type: ignore[arg-type]
    # Markers of lines with many points stand at distances, and not all at the same place.
    every = None if len(x) <= 9 else (0.03 + 0.035 * (index % 5), 0.19)
    (line,) = axes.plot(
        x,
        y,
        drawstyle="steps-post" if stairs else "default",
        color=look.light,
        linewidth=look.weight,
        marker=look.marker,
        markersize=3.2 + look.weight * 0.6,
        markeredgewidth=0,
        markevery=every,
        solid_capstyle="round",
        clip_on=False,  # a marker at the edge is whole
        zorder=2 + look.weight,
    )
    if look.dash:
        line.set_dashes(list(look.dash))


def _draw_lying_bars(axes: Axes, panel: Panel, chosen: Sequence[Look]) -> None:
    names = categories(panel) or []
    wide = 0.8 / len(panel.series)
    for index, (one, look) in enumerate(zip(panel.series, chosen, strict=True)):
        shift = wide * (index - (len(panel.series) - 1) / 2)
        middle = [place + shift for place in places(panel, one)]
        axes.barh(middle, list(one.y), wide * 0.92, color=look.light)
        if one.error:
            axes.errorbar(
                list(one.y), middle, xerr=list(one.error), fmt="none", ecolor=INK, elinewidth=0.8
            )
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    set_ticks(axes.xaxis, 4)


def _draw_diagonal(axes: Axes) -> None:
    low = max(axes.get_xlim()[0], axes.get_ylim()[0])
    high = min(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([low, high], [low, high], color=INK, alpha=0.45, linewidth=0.8, zorder=1)


def _draw_texts(axes: Axes, panel: Panel, room: Frame) -> None:
    """Write title and labels: that of y above its axis, where it can be read without turning."""
    x_label, y_label = panel.x_label, panel.y_label
    if lying(panel):
        x_label, y_label = y_label, x_label
    axes.set_xlabel(x_label, fontsize=SIZE, color=INK, alpha=_MUTED, labelpad=3)
    left = -(room.left - 4) / room.width
    top = 1 + (room.top - LINE) / room.height
    texts = axes.transAxes
    axes.text(
        left, top, panel.title, transform=texts, fontsize=SIZE + 1, fontweight="bold", color=INK
    )
    below = 1 + (room.top - 2 * LINE) / room.height
    axes.text(left, below, y_label, transform=texts, fontsize=SIZE, color=INK, alpha=_MUTED)
