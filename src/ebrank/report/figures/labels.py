"""The names of a panel's series: lines are named where they end, bars and points above the plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ebrank.experiments.framework.outcome import Panel
from ebrank.report.figures.bars import fillings
from ebrank.report.figures.frame import (
    LINE,
    TO_LABEL,
    Frame,
    legend_lines,
    legend_width,
    part_id,
    y_words,
)
from ebrank.report.figures.palette import Look
from ebrank.report.figures.scales import x_positions
from ebrank.report.figures.text_width import SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def label_ends(axes: Axes, panel: Panel, chosen: Sequence[Look], room: Frame) -> None:
    """Write each line's name where it ends; names that would overlap move apart on a leader."""
    drawn = [
        (index, series, look)
        for index, (series, look) in enumerate(zip(panel.series, chosen, strict=True))
        if series.y
    ]
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [
        to_axes.transform((x_positions(panel, series)[-1], series.y[-1])) for _, series, _ in drawn
    ]
    wanted = [float(end[1]) * room.height for end in ends]
    heights = spread(wanted, gap=LINE - 1, low=0.0, high=room.height)
    for (index, series, look), end, height in zip(drawn, ends, heights, strict=True):
        bend = [end[0] + 3 / room.width, 1 + (TO_LABEL - 2) / room.width]
        level = height / room.height
        axes.plot(
            bend,
            [end[1], level],
            transform=axes.transAxes,
            color=look.light,
            linewidth=0.6,
            alpha=0.8,
            clip_on=False,
            gid=part_id(index, "leader"),
        )
        axes.text(
            1 + TO_LABEL / room.width,
            level,
            series.label,
            transform=axes.transAxes,
            fontsize=SIZE,
            fontweight="bold" if look.emphasized else "normal",
            color=look.light,
            verticalalignment="center_baseline",
            gid=part_id(index, "label"),
        )


def label_above(axes: Axes, panel: Panel, chosen: Sequence[Look], room: Frame) -> None:
    """Write the names of bars or points above the plot, each beside its marker."""
    looks = iter(enumerate(zip(chosen, fillings(chosen), strict=True)))
    for number, line in enumerate(legend_lines(panel)):
        x = -(room.left - 4)
        y = 1 + (room.top - (2 + bool(y_words(panel)) + number) * LINE) / room.height
        for series in line:
            index, (look, filling) = next(looks)
            bars = panel.kind == "bars"
            axes.plot(
                (x + 3) / room.width,
                y + 2.6 / room.height,
                "s" if bars else look.marker,
                transform=axes.transAxes,
                markerfacecolor=(look.light, filling if bars else 1.0),
                markeredgecolor=look.light,
                markersize=5,
                markeredgewidth=0.6,
                clip_on=False,
                gid=part_id(index, "key"),
            )
            axes.text(
                (x + 10) / room.width,
                y,
                series.label,
                transform=axes.transAxes,
                fontsize=SIZE,
                fontweight="bold" if look.emphasized else "normal",
                color=look.light,
                gid=part_id(index, "label"),
            )
            x += legend_width(series)


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
