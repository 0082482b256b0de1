"""What a page's script needs to show values and single lines: which part of a picture is which.

Parts of a series are marked by their ids (`series-2-line`), and its points come as JSON, each with
its place in the picture and its values as text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ebrank.experiments.framework.outcome import Panel, Series
from ebrank.report.figures.bars import bar_middles
from ebrank.report.figures.frame import horizontal
from ebrank.report.figures.palette import looks
from ebrank.report.figures.scales import x_positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS_PER_INCH = 72


def series_data(drawing: Figure, panel: Panel) -> str:
    """Return the series of a panel drawn alone, as JSON.

    Each has its label, its color, and its points: x and y in the picture, then the text to show.
    """
    (axes,) = drawing.axes
    height = drawing.get_figheight() * _POINTS_PER_INCH
    chosen = looks([series.style for series in panel.series])
    plain = [
        {
            "label": series.label,
            "color": look.light,
            "points": [
                [*_placed(axes, place, height), text]
                for place, text in zip(_places(panel, index), _texts(panel, series), strict=True)
            ],
        }
        for index, (series, look) in enumerate(zip(panel.series, chosen, strict=True))
    ]
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _places(panel: Panel, index: int) -> list[tuple[float, float]]:
    """Return where a series' points are on the axes."""
    series = panel.series[index]
    if panel.kind != "bars":
        return list(zip(x_positions(panel, series), series.y, strict=True))
    places = list(zip(bar_middles(panel, index), series.y, strict=True))
    return [(y, x) for x, y in places] if horizontal(panel) else places


def _placed(axes: Axes, place: Sequence[float], height: float) -> list[float]:
    """Return where a point of the axes is in the picture, in its own units, from the top left."""
    x, y = axes.transData.transform(place) * _POINTS_PER_INCH / axes.figure.dpi
    return [round(float(x), 1), round(height - float(y), 1)]


def _texts(panel: Panel, series: Series) -> list[str]:
    errors = series.error or (None,) * len(series.y)
    return [
        f"{_number(y)}{'' if error is None else f' ± {_number(error)}'}\n{_at(panel, x)}"
        for x, y, error in zip(series.x, series.y, errors, strict=True)
    ]


def _at(panel: Panel, x: float | str) -> str:
    return x if isinstance(x, str) else f"{panel.x_label}: {x:,g}"


def _number(value: float) -> str:
    """Return a value in four digits.

    >>> _number(0.84567), _number(-176.04)
    ('0.8457', '−176')
    """
    return f"{value:,.4g}".replace("-", "−")
