"""Figures as SVG on white: panels in rows, with one legend for all of them beside these.

The same figure gives the same bytes: no date, no random ids, and none of the settings that an
earlier plot may have left in matplotlib. Letters stay letters.

A ranker has the same color, marker and dash in all figures. Any of the three tells lines apart, so
figures work in gray print and for color-blind readers.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

from ebrank.environment.extras import import_extra
from ebrank.paper.framework.display import Figure, Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

WIDTH, HEIGHT = 3.4, 2.6
"""Of a panel, in inches."""
BAR = 0.11
"""The height of a bar, in inches."""
FEW_LINES = 4
"""Of more lines, only emphasized ones have bands, which would hide each other."""
FEW_POINTS = 9
"""A line of more points has markers at some of them."""
INK = "#1b1e23"
STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.unicode_minus": True,
    "font.size": 9,
    "grid.color": "#dfe2e6",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "ebrank",
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "ytick.major.size": 0,
}


class Look(NamedTuple):
    """How a series is drawn.

    Attributes:
        light, dark: its color on white, and on a dark page.
        marker: as matplotlib names them.
        dash: lengths of strokes and gaps in points; () is a solid line.
        weight: of its line, in points.
    """

    light: str
    dark: str
    marker: str
    dash: tuple[float, ...] = ()
    weight: float = 1.2

    @property
    def emphasized(self) -> bool:
        """Whether it is one of the two that figures are about."""
        return self.weight > 2


DASHED, LONG, SHORT, DOTS = (4, 1.4), (7, 2), (3, 1.5), (1, 1.3)
DASH_DOT, DASH_DOT_DOT = (6, 1.5, 1, 1.5), (6, 1.5, 1, 1.5, 1, 1.5)
LOOKS = {
    "auto": Look("#0b7a4b", "#3ddc97", "*", (), 2.8),
    "ebrank": Look("#c4161c", "#ff6b66", "o", DASHED, 2.2),
    "ebrank-exposure": Look("#d97000", "#ffb04d", "D", SHORT, 1.8),
    "ucbrank": Look("#0067b1", "#5eb4f5", "s", LONG, 1.5),
    "cftopk": Look("#6a3d9a", "#b795e6", "v", SHORT),
    "cfrandomk": Look("#8c510a", "#d3a06a", "<", SHORT),
    "cfepsilon": Look("#c2388f", "#f58fd0", ">", SHORT),
    "bm25": Look("#6e6e6e", "#a9a9a9", "h", DOTS),
    "prior": Look("#00876c", "#3fcfa8", "^", LONG, 1.3),
    "pdgd": Look("#1f3b8f", "#8ea6ff", "p", DASH_DOT),
    "thompson": Look("#5b7a00", "#b2d14a", "8", DASH_DOT_DOT),
    "mgd": Look("#1492b5", "#58cdea", "X", DASH_DOT),
    "dbgd": Look("#3f6f8f", "#8fb8d4", "P", DASH_DOT),
    "random": Look("#8a7f5c", "#c9bd94", "d", DOTS),
    "oracle": Look("#3a3a3a", "#dcdcdc", "H", DOTS),
    "ebrank-untuned": Look("#d4666a", "#d98b8c", "H", SHORT, 1.4),
    "exposure-untuned": Look("#b5852f", "#cda56a", "d", SHORT, 1.4),
    "pbmucb": Look("#7049b3", "#ac8df0", "X", DASH_DOT),
    "smoothedctr": Look("#5d5d66", "#b3b3bd", "P", DOTS),
    "hybridlinucb": Look("#00839b", "#3cc4dd", "p", LONG),
    "posterior-ucb": Look("#9b4f96", "#d59ad0", "h", LONG),
    "toprank": Look("#4f5d2f", "#aebb86", "v", DASH_DOT_DOT),
}
"""By the style of a series."""


def looks(styles: Iterable[str]) -> dict[str, Look]:
    """Return the look of each style; unknown ones have those of rankers that are not there.

    >>> looks(["ebrank", "mine"])["mine"] == LOOKS["ucbrank"]
    True
    """
    wanted = dict.fromkeys(styles)
    spare = cycle(look for style, look in list(LOOKS.items())[3:] if style not in wanted)
    return {style: LOOKS.get(style) or next(spare) for style in wanted}


def svg(figure: Figure) -> bytes:
    """Return a figure as an SVG file."""
    matplotlib = import_extra("matplotlib", extra="report", purpose="to draw figures")
    file = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        about = {"Date": None, "Title": figure.title}
        _drawn(figure).savefig(file, format="svg", metadata=about, facecolor="white")
    return file.getvalue()


def _drawn(figure: Figure) -> Drawing:
    from matplotlib.figure import Figure as Drawing

    panels = figure.panels
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    drawing = Drawing((WIDTH * columns, rows * max(map(_height, panels))), layout="constrained")
    chosen = looks(series.style for panel in panels for series in panel.series)
    named: dict[str, Any] = {}
    for number, panel in enumerate(panels, start=1):
        axes = drawing.add_subplot(rows, columns, number)
        _draw(axes, panel, chosen)
        handles, labels = axes.get_legend_handles_labels()
        named = dict(zip(labels, handles, strict=True)) | named
    if len(named) > 1:
        drawing.set_figwidth(WIDTH * columns + 0.5 + 0.068 * max(map(len, named)))
        drawing.legend(named.values(), named, loc="outside right upper", handlelength=3.2)
    return drawing


def _height(panel: Panel) -> float:
    """Return the height of a panel; bars lie below each other, and take what they need."""
    if panel.kind != "bars":
        return HEIGHT
    return max(HEIGHT, 0.6 + BAR * (1 + len(panel.series)) * len(panel.series[0].x))


def _draw(axes: Axes, panel: Panel, chosen: Mapping[str, Look]) -> None:
    """Draw a panel on its axes."""
    axes.set_title(panel.title)
    labels = panel.x_label, panel.y_label
    for number, series in enumerate(panel.series):
        if panel.kind == "bars":
            _draw_bars(axes, panel, number, chosen[series.style])
        else:
            few = len(panel.series) <= FEW_LINES
            _draw_line(axes, series, chosen[series.style], panel.kind == "steps", few)
    if panel.kind == "bars":
        labels = panel.y_label, panel.x_label
        names = panel.series[0].x
        axes.set_yticks(range(len(names)), [str(name) for name in names])
        axes.invert_yaxis()  # names from top to bottom, in the order of reading
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        axes.axvline(0, color=INK, linewidth=0.7)
    elif panel.log_x:
        ticks = sorted({float(x) for series in panel.series for x in series.x})
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    if panel.zero and panel.kind != "bars":
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0] if _below_zero(panel) else 0.0))
    if panel.down:
        axes.invert_yaxis()
    axes.set_xlabel("" if labels[0] == panel.title else labels[0])
    axes.set_ylabel("" if labels[1] == panel.title else labels[1])


def _below_zero(panel: Panel) -> bool:
    return any(y < 0 for series in panel.series for y in series.y)


def _draw_line(axes: Axes, series: Series, look: Look, steps: bool, few: bool) -> None:
    """Draw a line or steps, with a band where bands are few."""
    x = [float(place) for place in series.x]
    if series.error and (few or look.emphasized):
        low, high = (
            [y + sign * half for y, half in zip(series.y, series.error, strict=True)]
            for sign in (-1, 1)
        )
        band: dict[str, Any] = {"step": "post"} if steps else {}
        axes.fill_between(x, low, high, color=look.light, alpha=0.11, linewidth=0, **band)
    axes.plot(
        x,
        series.y,
        drawstyle="steps-post" if steps else "default",
        color=look.light,
        linewidth=look.weight,
        linestyle=(0, look.dash) if look.dash else "-",
        marker=look.marker,
        markersize=3.2 + look.weight * 0.6,
        markeredgewidth=0,
        markevery=None if len(x) <= FEW_POINTS else max(1, len(x) // 5),
        label=series.label,
        zorder=2 + look.weight,
    )


def _draw_bars(axes: Axes, panel: Panel, number: int, look: Look) -> None:
    """Draw the bars of a series, which lie below those of the one before, with whiskers."""
    series, wide = panel.series[number], 0.8 / len(panel.series)
    shift = wide * (number - (len(panel.series) - 1) / 2)
    axes.barh(
        [place + shift for place in range(len(series.x))],
        series.y,
        0.9 * wide,
        color=(look.light, 1.0 if look.emphasized else 0.55),
        edgecolor=look.light,
        linewidth=0.6,
        xerr=series.error or None,
        error_kw={"elinewidth": 0.8, "capsize": 1.5},
        label=series.label,
    )
