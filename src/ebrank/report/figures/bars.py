"""Bars, vertical or horizontal, with a tone for each series that survives printing in grey."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from ebrank.experiments.framework.outcome import Panel
from ebrank.report.figures.frame import horizontal, part_id
from ebrank.report.figures.palette import INK, Look
from ebrank.report.figures.scales import categories, set_ticks, set_x_axis, set_y_axis, x_positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHARE = 0.8
"""The share of the distance between two names that bars take."""


def fillings(chosen: Sequence[Look]) -> list[float]:
    """Return how opaque each series' bars are: emphasized ones fully, others in several tones."""
    if len(chosen) == 1:
        return [1.0]
    tones = cycle((0.5, 0.2, 0.8, 0.35))
    return [1.0 if look.emphasized else next(tones) for look in chosen]


def bar_middles(panel: Panel, index: int) -> list[float]:
    """Return where the middles of a series' bars are along the names."""
    shift = _SHARE / len(panel.series) * (index - (len(panel.series) - 1) / 2)
    return [place + shift for place in x_positions(panel, panel.series[index])]


def draw_bars(axes: Axes, panel: Panel, chosen: Sequence[Look]) -> None:
    """Draw the bars of a panel, with whiskers where there are errors, and set its axes."""
    flat = horizontal(panel)
    wide = _SHARE / len(panel.series)
    full = fillings(chosen)
    for index, (series, look) in enumerate(zip(panel.series, chosen, strict=True)):
        middle = bar_middles(panel, index)
        tone: dict[str, Any] = {
            "facecolor": (look.light, full[index]),
            "edgecolor": look.light,
            "linewidth": 0.6,
        }
        if flat:
            bars = axes.barh(middle, series.y, wide * 0.9, **tone)
        else:
            bars = axes.bar(middle, series.y, wide * 0.9, **tone)
        for number, bar in enumerate(bars):
            bar.set_gid(part_id(index, f"bar-{number}"))
        if series.error:
            points = (series.y, middle) if flat else (middle, series.y)
            whiskers: dict[str, Any] = {"xerr" if flat else "yerr": series.error, "fmt": "none"}
            drawn = axes.errorbar(*points, ecolor=INK, elinewidth=0.8, capsize=1.5, **whiskers)
            for number, line in enumerate((*drawn[1], *drawn[2])):
                line.set_gid(part_id(index, f"whisker-{number}"))
    if flat:
        _set_horizontal_axes(axes, categories(panel) or [])
        if axes.get_xlim()[0] < 0:
            axes.axvline(0, color=INK, linewidth=0.7)
    else:
        set_x_axis(axes, panel)
        set_y_axis(axes, panel)
        if axes.get_ylim()[0] < 0:  # some bars hang from 0, which is not at the axis
            axes.axhline(0, color=INK, linewidth=0.7)


def _set_horizontal_axes(axes: Axes, names: Sequence[str]) -> None:
    """Write the names from top to bottom, in the order of reading."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    set_ticks(axes.xaxis, 5)
