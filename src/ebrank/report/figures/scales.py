"""Positions on a panel's axes, and the numbers written beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ebrank.experiments.framework.outcome import Panel, Series
from ebrank.report.figures.bands import banded
from ebrank.report.figures.text_width import SIZE, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_BETWEEN_TICKS = 4.0
"""Points between the numbers below an axis."""


_ALL_RANKS = 10
"""Up to this many ranks, each has a tick."""


def categories(panel: Panel) -> list[str] | None:
    """Return the names along the x axis in the order they appear; None if x are numbers.

    >>> categories(Panel("", "", "", (Series("a", "a", ("A", "B"), (1.0, 2.0)),)))
    ['A', 'B']
    """
    values = [x for series in panel.series for x in series.x]
    if panel.kind != "bars" and not any(isinstance(x, str) for x in values):
        return None
    return list(dict.fromkeys(x if isinstance(x, str) else compact(x) for x in values))


def x_positions(panel: Panel, series: Series) -> list[float]:
    """Return a series' positions on the x axis: names at 0, 1, 2, ..., numbers at themselves."""
    names = categories(panel)
    if names is None:
        return [float(x) for x in series.x]
    return [float(names.index(x if isinstance(x, str) else compact(x))) for x in series.x]


def compact(value: float) -> str:
    """Return a number in as few characters as possible.

    >>> [compact(value) for value in (0, 0.25, 5.0, 2000, 59000, 1150000)]
    ['0', '0.25', '5', '2,000', '59k', '1.15M']
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size * (1 if size > 1e3 else 10):
            return f"{value / size:g}{letter}"
    return f"{value:,g}".replace("-", "−")


def y_range(panel: Panel) -> tuple[float, float]:
    """Return the lowest and the highest y to show: all values with their errors, and some air."""
    drawn = [pair for series in panel.series for pair in _with_errors(panel, series)]
    low = [y - error for y, error in drawn]
    high = [y + error for y, error in drawn]
    if panel.down:
        low.append(1.0)  # all ranks are compared with the first
    if panel.zero or panel.kind == "bars":  # a bar's length means something only from 0
        low.append(0.0)
        high.append(0.0)
    if not low:
        return 0.0, 1.0
    bottom, top = min(low), max(high)
    air = 0.04 * (top - bottom) or 0.04 * abs(top) or 1.0
    grounded = (panel.zero or panel.kind == "bars") and bottom == 0.0
    return (bottom if grounded else bottom - air), top + air


def set_x_axis(axes: Axes, panel: Panel) -> None:
    """Set limits, scale and ticks of the x axis."""
    names = categories(panel)
    if names is not None:
        margin = 0.6 if panel.kind == "bars" else 0.25
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-margin, len(names) - 1 + margin)
        axes.tick_params(axis="x", length=0 if panel.kind == "bars" else 3)
        return
    values = sorted({float(x) for series in panel.series for x in series.x})
    if not values:
        return
    if panel.log_x:
        _set_log_scale(axes, values)
    air = 0.03 * (values[-1] - values[0]) if panel.kind == "points" and not panel.log_x else 0.0
    if values[0] < values[-1]:
        axes.set_xlim(_beginning(panel, values) - air, values[-1] + air)
    if panel.log_x:
        ticks = _apart(axes, values)
        axes.set_xticks(ticks, [compact(tick) for tick in ticks])
    else:
        set_ticks(axes.xaxis, 4)


def set_y_axis(axes: Axes, panel: Panel) -> None:
    """Set limits and ticks of the y axis, with faint lines across."""
    low, high = y_range(panel)
    axes.set_ylim((high, low) if panel.down else (low, high))
    set_ticks(axes.yaxis, 6)
    if panel.down and high <= _ALL_RANKS:
        axes.set_yticks(range(1, int(high) + 1))
    if panel.diagonal:  # to compare y with x, both axes must be the same
        limits = _union(axes.get_xlim(), axes.get_ylim())
        axes.set_xlim(limits)
        axes.set_ylim(limits)
        set_ticks(axes.xaxis, 6)


def set_ticks(axis: Axis, most: int) -> None:
    """Set at most `most` ticks at round numbers, all with the same number of decimals."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(lambda value, _: _like(value, axis.get_majorticklocs()))


def _like(value: float, ticks: Iterable[float]) -> str:
    """Return a tick's number with as many decimals as the others need.

    >>> _like(1.0, [0.9, 1.0]), _like(2000.0, [0.0, 2000.0])
    ('1.0', '2,000')
    """
    shown = [compact(round(tick, 9)) for tick in ticks]
    decimals = max((len(text.partition(".")[2]) for text in shown), default=0)
    short = compact(round(value, 9))
    if short[-1].isalpha() or not decimals:
        return short
    return f"{round(value, 9):,.{decimals}f}".replace("-", "−")


def _beginning(panel: Panel, values: list[float]) -> float:
    """Return where the x axis begins: at 0 if the first point is close to it."""
    near = panel.kind == "lines" and not panel.log_x and 0 < values[0] < 0.1 * values[-1]
    return 0.0 if near else values[0]


def _set_log_scale(axes: Axes, values: list[float]) -> None:
    """Make the axis logarithmic, with 0 half a decade from the rest."""
    if values[0] > 0:
        axes.set_xscale("log")
    else:
        positive = next((value for value in values if value > 0), 1.0)
        axes.set_xscale("symlog", linthresh=positive, linscale=0.5)
    axes.minorticks_off()


def _apart(axes: Axes, values: list[float]) -> list[float]:
    """Return the values whose numbers fit below the axis without touching, both ends included."""
    to_points = axes.figure.dpi_scale_trans.inverted()
    kept: list[tuple[float, float, float]] = []
    for value in dict.fromkeys([values[0], values[-1], *values]):
        place = to_points.transform(axes.transData.transform((value, 0.0)))[0] * 72
        half = (text_width(compact(value), SIZE) + _BETWEEN_TICKS) / 2
        if all(abs(place - other) >= half + room for _, other, room in kept):
            kept.append((value, float(place), half))
    return sorted(value for value, _, _ in kept)


def _with_errors(panel: Panel, series: Series) -> list[tuple[float, float]]:
    error = series.error if banded(panel, series) else [0.0] * len(series.y)
    return list(zip(series.y, error, strict=True))


def _union(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
    return min(x[0], y[0]), max(x[1], y[1])
