"""One pair of axes: lines, steps, bars or points, with the names of series beside them.

No legend boxes, no frame, faint lines across: what is drawn are the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from ebrank.experiments.outcome import Panel, Series
from ebrank.report.bands import banded
from ebrank.report.bars import draw_bars
from ebrank.report.frame import LINE, Frame, lying, named_at_end, y_words
from ebrank.report.names import name_above, name_at_end
from ebrank.report.palette import INK, Look, looks
from ebrank.report.scales import places, set_x_axis, set_y_axis
from ebrank.report.text_width import SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAINT = 0.14
_MUTED = 0.82
_FEW_POINTS = 9


def draw(axes: Axes, panel: Panel, room: Frame) -> None:
    """Draw a panel."""
    chosen = looks([one.style for one in panel.series])
    if panel.kind == "bars":
        draw_bars(axes, panel, chosen)
    else:
        _draw_series(axes, panel, chosen)
    across: Literal["x", "y"] = "x" if lying(panel) else "y"
    axes.grid(axis=across, color=INK, alpha=_FAINT, linewidth=0.6)
    if panel.diagonal:
        _draw_diagonal(axes)
    _draw_texts(axes, panel, room)
    if named_at_end(panel):
        name_at_end(axes, panel, chosen, room)
    else:
        name_above(axes, panel, chosen, room)


def _draw_series(axes: Axes, panel: Panel, chosen: Sequence[Look]) -> None:
    """Draw lines or points."""
    set_x_axis(axes, panel)
    set_y_axis(axes, panel)
    for index, (one, look) in enumerate(zip(panel.series, chosen, strict=True)):
        x = places(panel, one)
        if panel.kind == "points":
            _draw_points(axes, x, one, look)
        else:
            _draw_band(axes, panel, x, one, look)
            _draw_line(axes, panel, x, one, look, index)


def _draw_points(axes: Axes, x: list[float], one: Series, look: Look) -> None:
    if one.error:
        errors: dict[str, Any] = {"ecolor": look.light, "elinewidth": 0.8, "alpha": 0.7}
        axes.errorbar(x, one.y, one.error, fmt="none", **errors)
    size = 6.5 if look.marker == "*" else 4.5  # a star of the same width looks smaller
    axes.plot(x, one.y, look.marker, color=look.light, markersize=size, markeredgewidth=0)


def _draw_band(axes: Axes, panel: Panel, x: list[float], one: Series, look: Look) -> None:
    if banded(panel, one):
        low = [y - half for y, half in zip(one.y, one.error, strict=True)]
        high = [y + half for y, half in zip(one.y, one.error, strict=True)]
        step: Literal["post"] | None = "post" if panel.kind == "steps" else None
        axes.fill_between(x, low, high, step=step, color=look.light, alpha=0.11, linewidth=0)


def _draw_line(
    axes: Axes, panel: Panel, x: list[float], one: Series, look: Look, index: int
) -> None:
    """Draw a line or stairs. Where points are many, markers stand at distances, not all alike."""
    every = None if len(x) <= _FEW_POINTS else (0.03 + 0.035 * (index % 5), 0.19)
    (line,) = axes.plot(
        x,
        one.y,
        drawstyle="steps-post" if panel.kind == "steps" else "default",
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


def _draw_diagonal(axes: Axes) -> None:
    low = max(axes.get_xlim()[0], axes.get_ylim()[0])
    high = min(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([low, high], [low, high], color=INK, alpha=0.45, linewidth=0.8, zorder=1)


def _draw_texts(axes: Axes, panel: Panel, room: Frame) -> None:
    """Write title and labels: that of y above its axis, where it can be read without turning."""
    x_label = panel.y_label if lying(panel) else panel.x_label
    if x_label == panel.title:
        x_label = ""
    axes.set_xlabel(x_label, fontsize=SIZE, color=INK, alpha=_MUTED, labelpad=3)
    left = -(room.left - 4) / room.width
    top = 1 + (room.top - LINE) / room.height
    style: dict[str, Any] = {"transform": axes.transAxes, "color": INK}
    axes.text(left, top, panel.title, fontsize=SIZE + 1, fontweight="bold", **style)
    below = 1 + (room.top - 2 * LINE) / room.height
    axes.text(left, below, y_words(panel), fontsize=SIZE, alpha=_MUTED, **style)
