"""One pair of axes: lines, steps or bars, with the names of series beside them.

There is no frame, only faint lines across, so that the numbers stand out. Lines are named where
they end, bars above the plot.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from ebrank.paper.framework.figures import Panel
from ebrank.paper.report.figures.palette import INK, Look, looks
from ebrank.paper.report.figures.scales import (
    BAR_SHARE,
    PLOT_WIDTH,
    banded,
    categories,
    horizontal,
    set_axes,
    x_positions,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = 9.0
"""The font size of figures, in points."""
PLOT_HEIGHT = 168.0
_LINE = 10.5
"""From one name to the next, in points."""
_TO_LABEL = 13.0
"""From the plot to the names of lines, in points."""
_FEW_POINTS = 9
_LEGEND_WIDTH = 30
"""Characters that fit beside each other above a plot, which cannot grow with them."""


def plot_height(panel: Panel) -> float:
    """Return the height inside a panel's axes, in points; horizontal bars take what they need."""
    if not horizontal(panel):
        return PLOT_HEIGHT
    return max(60.0, len(categories(panel) or []) * (8.0 * len(panel.series) + 8.0))


def part_id(series: int, part: str) -> str:
    """Return the id with which a page finds a part of a series.

    >>> part_id(2, "line")
    'series-2-line'
    """
    return f"series-{series}-{part}"


def draw(axes: Axes, panel: Panel, height: float = PLOT_HEIGHT) -> None:
    """Draw a panel whose axes will be this high, in points."""
    chosen = looks([series.style for series in panel.series])
    flat = horizontal(panel)
    set_axes(axes, panel)
    axes.grid(axis="x" if flat else "y", color=INK, alpha=0.14, linewidth=0.6)
    paint = _draw_bars if panel.kind == "bars" else _draw_line
    for index, look in enumerate(chosen):
        paint(axes, panel, index, look)
    for artist in (*axes.lines, *axes.collections, *axes.patches):
        artist.set_in_layout(False)  # only what is written around the plot needs room
    x_label, y_label = panel.x_label, panel.y_label
    if flat:
        x_label, y_label = y_label, x_label
    muted: dict[str, Any] = {"color": INK, "alpha": 0.82, "labelpad": 3}
    axes.set_xlabel("" if x_label == panel.title else x_label, **muted)
    axes.set_ylabel("" if y_label == panel.title else y_label, **muted)
    if panel.kind == "bars" and len(panel.series) > 1:
        _name_above(axes, panel, chosen)
        return
    axes.set_title(panel.title, loc="left", fontsize=SIZE + 1, fontweight="bold", color=INK)
    if panel.kind != "bars":
        _name_ends(axes, panel, chosen, height)


def _draw_line(axes: Axes, panel: Panel, index: int, look: Look) -> None:
    """Draw a line or steps. With many points, markers are spaced out, and shifted by series."""
    series, x = panel.series[index], x_positions(panel, index)
    steps = panel.kind == "steps"
    if banded(panel, series):
        low, high = (
            [y + sign * half for y, half in zip(series.y, series.error, strict=True)]
            for sign in (-1, 1)
        )
        band: dict[str, Any] = {"color": look.light, "alpha": 0.11, "linewidth": 0}
        band |= {"step": "post"} if steps else {}
        axes.fill_between(x, low, high, gid=part_id(index, "band"), **band)
    (line,) = axes.plot(
        x,
        series.y,
        drawstyle="steps-post" if steps else "default",
        color=look.light,
        linewidth=look.weight,
        marker=look.marker,
        markersize=3.2 + look.weight * 0.6,
        markeredgewidth=0,
        markevery=None if len(x) <= _FEW_POINTS else (0.03 + 0.035 * (index % 5), 0.19),
        solid_capstyle="round",
        clip_on=False,  # so that a marker at the edge is not cut off
        zorder=2 + look.weight,
        gid=part_id(index, "line"),
    )
    if look.dash:
        line.set_dashes(list(look.dash))


def _draw_bars(axes: Axes, panel: Panel, index: int, look: Look) -> None:
    """Draw a series' bars, with whiskers where there are errors, in a tone that survives gray."""
    series, middle = panel.series[index], x_positions(panel, index)
    tone: dict[str, Any] = {
        "facecolor": (look.light, _filling(panel, index)),
        "edgecolor": look.light,
        "linewidth": 0.6,
        "label": series.label,
    }
    flat, wide = horizontal(panel), 0.9 * BAR_SHARE / len(panel.series)
    if flat:
        bars = axes.barh(middle, series.y, wide, **tone)
    else:
        bars = axes.bar(middle, series.y, wide, **tone)
    _tag(bars, index, "bar")
    if series.error:
        points = (series.y, middle) if flat else (middle, series.y)
        errors: dict[str, Any] = {"xerr" if flat else "yerr": series.error, "fmt": "none"}
        whiskers = axes.errorbar(*points, ecolor=INK, elinewidth=0.8, capsize=1.5, **errors)
        _tag((*whiskers[1], *whiskers[2]), index, "whisker")
    if min(series.y, default=0.0) < 0:  # some bars hang from 0, which is not at the axis
        (axes.axvline if flat else axes.axhline)(0, color=INK, linewidth=0.7)


def _filling(panel: Panel, index: int) -> float:
    """Return how opaque a series' bars are: emphasized ones fully, others in several tones."""
    chosen = looks([series.style for series in panel.series])
    if len(chosen) == 1:
        return 1.0
    tones = cycle((0.5, 0.2, 0.8, 0.35))
    return [1.0 if look.emphasized else next(tones) for look in chosen][index]


def _tag(artists: Any, index: int, part: str) -> None:  # noqa: ANN401 (several kinds of containers)
    for number, artist in enumerate(artists):
        artist.set_gid(part_id(index, f"{part}-{number}"))


def _name_above(axes: Axes, panel: Panel, chosen: Sequence[Look]) -> None:
    """Write the title and the names of bars above the plot, each beside its tone."""
    longest = max(len(series.label) for series in panel.series)
    legend = axes.legend(
        title=panel.title,
        title_fontproperties={"weight": "bold", "size": SIZE + 1},
        alignment="left",
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=max(1, _LEGEND_WIDTH // (longest + 5)),
        labelcolor=[look.light for look in chosen],
        frameon=False,
        fontsize=SIZE,
        handlelength=0.9,
        handletextpad=0.5,
        columnspacing=1.2,
        labelspacing=0.3,
        borderpad=0.2,
        borderaxespad=0.2,
    )
    legend.get_title().set_color(INK)
    parts = zip(chosen, legend.get_texts(), legend.legend_handles, strict=True)
    for index, (look, text, key) in enumerate(parts):
        text.set_fontweight("bold" if look.emphasized else "normal")
        text.set_gid(part_id(index, "label"))
        if key is not None:
            key.set_gid(part_id(index, "key"))


def _name_ends(axes: Axes, panel: Panel, chosen: Sequence[Look], height: float) -> None:
    """Write each line's name where it ends; names that would overlap move apart on a leader."""
    ends = {
        index: (x_positions(panel, index)[-1], series.y[-1])
        for index, series in enumerate(panel.series)
        if series.y
    }
    to_axes = axes.transData + axes.transAxes.inverted()
    places = [to_axes.transform(end) for end in ends.values()]
    wanted = [float(place[1]) * height for place in places]
    levels = spread(wanted, gap=_LINE, low=0.0, high=height)
    for index, (x, y), level in zip(ends, places, levels, strict=True):
        color, bold = chosen[index].light, chosen[index].emphasized
        leader = axes.plot(  # not an arrow, whose path would take longer than all else
            (x + 3 / PLOT_WIDTH, 1 + (_TO_LABEL - 2) / PLOT_WIDTH),
            (y, level / height),
            transform=axes.transAxes,
            color=color,
            linewidth=0.6,
            alpha=0.8,
            clip_on=False,
            in_layout=False,
        )
        _tag(leader, index, "leader")
        axes.text(
            1 + _TO_LABEL / PLOT_WIDTH,
            level / height,
            panel.series[index].label,
            transform=axes.transAxes,
            fontweight="bold" if bold else "normal",
            color=color,
            verticalalignment="center_baseline",
            gid=part_id(index, "label"),
        )


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Return heights of labels, close to those wanted, `gap` apart, between `low` and `high`.

    They keep the order of the wanted heights, and ties the order given. The sum of squared moves is
    the least possible: labels that must move together are centered around their mean (isotonic
    regression). If there is not enough room for all, the gap shrinks.

    >>> spread([0.0, 1.0, 9.0], gap=2.0, low=0.0, high=10.0)
    [0.0, 2.0, 9.0]
    """
    # We tried adjustText: eleven labels still overlapped, left the picture, and lost the order of
    # their lines, at three to twenty times the cost.
    from scipy.optimize import isotonic_regression

    count = len(wanted)
    if count > 1:
        gap = min(gap, (high - low) / (count - 1))
    order = sorted(range(count), key=lambda index: wanted[index])
    level = isotonic_regression([wanted[index] - gap * rank for rank, index in enumerate(order)]).x
    heights = [0.0] * count
    for rank, index in enumerate(order):
        inside = min(max(float(level[rank]), low), high - gap * (count - 1))
        heights[index] = inside + gap * rank
    return heights
