"""One pair of axes: lines, steps, bars or points, with the names of series beside them.

There are no legend boxes and no frame, only faint horizontal lines, so that the numbers stand out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from ebrank.experiments.framework.outcome import Panel, Series
from ebrank.report.figures.bands import banded
from ebrank.report.figures.bars import draw_bars
from ebrank.report.figures.frame import LINE, Frame, horizontal, labeled_at_end, part_id, y_words
from ebrank.report.figures.labels import label_above, label_ends
from ebrank.report.figures.palette import INK, Look, looks
from ebrank.report.figures.scales import set_x_axis, set_y_axis, x_positions
from ebrank.report.figures.text_width import SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAINT = 0.14
_MUTED = 0.82
_FEW_POINTS = 9


def draw(axes: Axes, panel: Panel, room: Frame) -> None:
    """Draw a panel."""
    chosen = looks([series.style for series in panel.series])
    if panel.kind == "bars":
        draw_bars(axes, panel, chosen)
    else:
        _draw_series(axes, panel, chosen)
    across: Literal["x", "y"] = "x" if horizontal(panel) else "y"
    axes.grid(axis=across, color=INK, alpha=_FAINT, linewidth=0.6)
    if panel.diagonal:
        _draw_diagonal(axes)
    _draw_texts(axes, panel, room)
    if labeled_at_end(panel):
        label_ends(axes, panel, chosen, room)
    else:
        label_above(axes, panel, chosen, room)


def _draw_series(axes: Axes, panel: Panel, chosen: Sequence[Look]) -> None:
    """Draw lines or points."""
    set_x_axis(axes, panel)
    set_y_axis(axes, panel)
    for index, (series, look) in enumerate(zip(panel.series, chosen, strict=True)):
        x = x_positions(panel, series)
        if panel.kind == "points":
            _draw_points(axes, x, series, look, index)
        else:
            _draw_band(axes, panel, x, series, look, index)
            _draw_line(axes, panel, x, series, look, index)


def _draw_points(axes: Axes, x: list[float], series: Series, look: Look, index: int) -> None:
    if series.error:
        errors: dict[str, Any] = {"ecolor": look.light, "elinewidth": 0.8, "alpha": 0.7}
        drawn = axes.errorbar(x, series.y, series.error, fmt="none", **errors)
        for whisker in drawn[2]:
            whisker.set_gid(part_id(index, "whiskers"))
    size = 6.5 if look.marker == "*" else 4.5  # a star of the same width looks smaller
    style: dict[str, Any] = {"markersize": size, "markeredgewidth": 0}
    gid = part_id(index, "points")
    axes.plot(x, series.y, look.marker, color=look.light, gid=gid, **style)


def _draw_band(
    axes: Axes, panel: Panel, x: list[float], series: Series, look: Look, index: int
) -> None:
    if banded(panel, series):
        low = [y - half for y, half in zip(series.y, series.error, strict=True)]
        high = [y + half for y, half in zip(series.y, series.error, strict=True)]
        step: Literal["post"] | None = "post" if panel.kind == "steps" else None
        style: dict[str, Any] = {"color": look.light, "alpha": 0.11, "linewidth": 0}
        axes.fill_between(x, low, high, step=step, gid=part_id(index, "band"), **style)


def _draw_line(
    axes: Axes, panel: Panel, x: list[float], series: Series, look: Look, index: int
) -> None:
    """Draw a line or steps. With many points, markers are spaced out, and shifted by series."""
    every = None if len(x) <= _FEW_POINTS else (0.03 + 0.035 * (index % 5), 0.19)
    (line,) = axes.plot(
        x,
        series.y,
        drawstyle="steps-post" if panel.kind == "steps" else "default",
        color=look.light,
        linewidth=look.weight,
        marker=look.marker,
        markersize=3.2 + look.weight * 0.6,
        markeredgewidth=0,
        markevery=every,
        solid_capstyle="round",
        clip_on=False,  # so that a marker at the edge is not cut off
        zorder=2 + look.weight,
        gid=part_id(index, "line"),
    )
    if look.dash:
        line.set_dashes(list(look.dash))


def _draw_diagonal(axes: Axes) -> None:
    low = max(axes.get_xlim()[0], axes.get_ylim()[0])
    high = min(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([low, high], [low, high], color=INK, alpha=0.45, linewidth=0.8, zorder=1)


def _draw_texts(axes: Axes, panel: Panel, room: Frame) -> None:
    """Write title and labels; the y label is horizontal, above its axis."""
    x_label = panel.y_label if horizontal(panel) else panel.x_label
    if x_label == panel.title:
        x_label = ""
    axes.set_xlabel(x_label, fontsize=SIZE, color=INK, alpha=_MUTED, labelpad=3)
    left = -(room.left - 4) / room.width
    top = 1 + (room.top - LINE) / room.height
    style: dict[str, Any] = {"transform": axes.transAxes, "color": INK}
    axes.text(left, top, panel.title, fontsize=SIZE + 1, fontweight="bold", **style)
    below = 1 + (room.top - 2 * LINE) / room.height
    axes.text(left, below, y_words(panel), fontsize=SIZE, alpha=_MUTED, **style)
