"""The names of a panel's series: lines are named where they end, bars and points above the plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ebrank.experiments.outcome import Panel
from ebrank.report.bars import fillings
from ebrank.report.frame import LINE, TO_LABEL, Frame, legend_lines, legend_width, y_words
from ebrank.report.labels import spread
from ebrank.report.palette import Look
from ebrank.report.scales import places
from ebrank.report.text_width import SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def name_at_end(axes: Axes, panel: Panel, chosen: Sequence[Look], room: Frame) -> None:
    """Write each line's name where it ends; names that would overlap move apart on a leader."""
    drawn = [(one, look) for one, look in zip(panel.series, chosen, strict=True) if one.y]
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [to_axes.transform((places(panel, one)[-1], one.y[-1])) for one, _ in drawn]
    wanted = [float(end[1]) * room.height for end in ends]
    found = spread(wanted, gap=LINE - 1, low=0.0, high=room.height)
    for (one, look), end, height in zip(drawn, ends, found, strict=True):
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
        )
        axes.text(
            1 + TO_LABEL / room.width,
            level,
            one.label,
            transform=axes.transAxes,
            fontsize=SIZE,
            fontweight="bold" if look.emphasized else "normal",
            color=look.light,
            verticalalignment="center_baseline",
        )


def name_above(axes: Axes, panel: Panel, chosen: Sequence[Look], room: Frame) -> None:
    """Write the names of bars or points above the plot, each beside its marker."""
    looked = iter(zip(chosen, fillings(chosen), strict=True))
    for number, line in enumerate(legend_lines(panel)):
        x = -(room.left - 4)
        y = 1 + (room.top - (2 + bool(y_words(panel)) + number) * LINE) / room.height
        for one in line:
            look, filling = next(looked)
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
            )
            axes.text(
                (x + 10) / room.width,
                y,
                one.label,
                transform=axes.transAxes,
                fontsize=SIZE,
                fontweight="bold" if look.emphasized else "normal",
                color=look.light,
            )
            x += legend_width(one)
