"""Where a panel's points are on its axes, and the numbers written beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ebrank.paper.framework.figures import Panel, Series
from ebrank.paper.report.figures.palette import looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

PLOT_WIDTH = 168.0
"""Of the area inside a panel's axes, in points; the picture grows with what is written around."""
DIGIT_WIDTH = 5.8
"""Of a digit in our font and size, in points."""
BAR_SHARE = 0.8
"""The share of the distance between two names that bars take."""
_ALL_RANKS = 10
"""Up to this many ranks, each has a tick."""
_LONG_NAME, _MANY_NAMES = 8, 10
_MANY_LINES = 5
"""From this many lines on, only emphasized ones have bands, which would hide each other."""


def banded(panel: Panel, series: Series) -> bool:
    """Return whether a series is drawn with its errors."""
    if not series.error:
        return False
    few = panel.kind == "bars" or len(panel.series) < _MANY_LINES
    return few or looks([series.style])[0].emphasized


def horizontal(panel: Panel) -> bool:
    """Return whether bars are horizontal, because their names are long or many."""
    names = categories(panel)
    if panel.kind != "bars" or names is None:
        return False
    return len(names) > _MANY_NAMES or max(map(len, names)) > _LONG_NAME


def categories(panel: Panel) -> list[str] | None:
    """Return the names along the x axis in the order they appear; None if x are numbers.

    >>> categories(Panel("", "", "", (Series("a", "a", ("A", "B"), (1.0, 2.0)),)))
    ['A', 'B']
    """
    values = [x for series in panel.series for x in series.x]
    if panel.kind != "bars" and not any(isinstance(x, str) for x in values):
        return None
    return list(dict.fromkeys(map(_name, values)))


def x_positions(panel: Panel, index: int) -> list[float]:
    """Return where a series' points are along the names or numbers; bars stand side by side."""
    series, names = panel.series[index], categories(panel)
    if names is None:
        return [float(x) for x in series.x]
    shift = 0.0
    if panel.kind == "bars":
        shift = BAR_SHARE / len(panel.series) * (index - (len(panel.series) - 1) / 2)
    return [names.index(_name(x)) + shift for x in series.x]


def _name(x: float | str) -> str:
    return x if isinstance(x, str) else compact(x)


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
    from_zero = panel.zero or panel.kind == "bars"  # a bar's length means something only from 0
    ends = [0.0] if from_zero else []
    if panel.down:
        ends.append(1.0)  # all ranks are compared with the first
    for series in panel.series:
        errors = series.error if banded(panel, series) else [0.0] * len(series.y)
        for y, error in zip(series.y, errors, strict=True):
            ends += [y - error, y + error]
    if not panel.series or not any(series.y for series in panel.series):
        return 0.0, 1.0
    bottom, top = min(ends), max(ends)
    air = 0.04 * (top - bottom) or 0.04 * abs(top) or 1.0
    return (bottom if from_zero and bottom == 0.0 else bottom - air), top + air


def set_axes(axes: Axes, panel: Panel) -> None:
    """Set limits, scales and ticks of both axes."""
    if horizontal(panel):  # names from top to bottom, in the order of reading
        names = categories(panel) or []
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(y_range(panel))
        set_ticks(axes.xaxis, 5)
        return
    _set_x_axis(axes, panel)
    low, high = y_range(panel)
    axes.set_ylim((high, low) if panel.down else (low, high))
    set_ticks(axes.yaxis, 6)
    if panel.down and high <= _ALL_RANKS:
        axes.set_yticks(range(1, int(high) + 1))


def _set_x_axis(axes: Axes, panel: Panel) -> None:
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
    if values[0] < values[-1]:
        axes.set_xlim(_beginning(panel, values), values[-1])
    if panel.log_x:
        ticks = _apart(axes, values)
        axes.set_xticks(ticks, [compact(tick) for tick in ticks])
    else:
        set_ticks(axes.xaxis, 4)


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
    texts = [compact(round(tick, 9)) for tick in ticks]
    decimals = max((len(text.partition(".")[2]) for text in texts), default=0)
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
    to_axes = axes.transData + axes.transAxes.inverted()
    kept: dict[float, tuple[float, float]] = {}
    for value in dict.fromkeys([values[0], values[-1], *values]):
        place = float(to_axes.transform((value, 0.0))[0]) * PLOT_WIDTH
        half = (len(compact(value)) + 0.7) / 2 * DIGIT_WIDTH
        if all(abs(place - other) >= half + room for other, room in kept.values()):
            kept[value] = place, half
    return sorted(kept)
