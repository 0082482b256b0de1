"""Figures as pictures: SVG and PNG files, and SVG to put into a page.

The same figure gives the same bytes: no date, no random ids, and none of the settings that an
earlier plot may have left in matplotlib. Texts are measured with the font that matplotlib ships.

SVG is adapted to pages: to screen readers, dark pages, and many figures on one page. Texts stay
texts, so a page can be searched and uses the reader's own fonts.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from ebrank.environment.extras import import_extra
from ebrank.paper.framework.figures import Figure, Panel, Series
from ebrank.paper.report.figures.palette import INK, every_look, looks
from ebrank.paper.report.figures.panels import SIZE, draw, plot_height
from ebrank.paper.report.figures.scales import PLOT_WIDTH, banded, horizontal, x_positions

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

FAMILY = "DejaVu Sans"
"""The font that matplotlib ships, so that texts are measured the same everywhere."""
_FONTS = "'DejaVu Sans', Verdana, Geneva, sans-serif"
"""Families about as wide as the font that the layout was measured with."""
_POINTS_PER_INCH = 72
_IN_A_ROW = 3
_LOOK: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.w_pad": 0.04,
    "figure.constrained_layout.h_pad": 0.04,
    "figure.constrained_layout.wspace": 0.03,
    "figure.constrained_layout.hspace": 0.05,
    "figure.dpi": _POINTS_PER_INCH,
    "font.family": [FAMILY],
    "font.size": SIZE,
    "path.simplify": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "ebrank",
    "text.parse_math": False,
    "xtick.color": INK,
    "xtick.major.size": 3,
    "ytick.color": INK,
    "ytick.major.size": 0,
}


def svg_file(figure: Figure) -> bytes:
    """Return a figure as an SVG file on white."""
    with _drawing(figure.panels) as drawing:
        picture = _saved(drawing, "svg", facecolor="white").decode()
    picture = re.sub(r' id="series-\d+-[^"]*"', "", picture)  # panels would share the parts' ids
    header = '<?xml version="1.0" encoding="utf-8"?>\n'
    return (
        header + _described(picture, figure.title, _description(figure, figure.panels))
    ).encode()


def png_file(figure: Figure) -> bytes:
    """Return a figure as a PNG file on white, sharp enough for print."""
    with _drawing(figure.panels) as drawing:
        return _saved(drawing, "png", facecolor="white", dpi=200)


FIGURE_FILES = {"svg": svg_file, "png": png_file}
"""What a report writes for each figure, by the ending of the file."""


def inline_panels(figure: Figure, prefix: str) -> list[str]:
    """Return each panel as an SVG element for a page, with ids that begin with `prefix`."""
    pictures = []
    for number, panel in enumerate(figure.panels):
        with _drawing([panel]) as drawing:
            picture = _saved(drawing, "svg", transparent=True).decode()
            series = _series_data(drawing, panel)
        title = f"{figure.title}: {panel.title}" if panel.title else figure.title
        accessible = _described(picture, title, _description(figure, [panel]))
        pictures.append(_inline(accessible, f"{prefix}-{number}", series))
    return pictures


def caption(figure: Figure) -> str:
    """Return a figure's caption, with a note on bands that were left out."""
    drawn = [
        (series.label, banded(panel, series))
        for panel in figure.panels
        for series in panel.series
        if series.error
    ]
    if all(with_band for _, with_band in drawn):
        return figure.caption
    names = list(dict.fromkeys(label for label, with_band in drawn if with_band))
    which = "no band is drawn"
    if names:
        which = f"only the bands of {', '.join(names)} are drawn"
    if len(names) == 1:
        which = f"only the band of {names[0]} is drawn"
    return f"{figure.caption} Of so many lines, {which}.".strip()


@contextmanager
def _drawing(panels: Sequence[Panel]) -> Iterator[Drawing]:
    """Yield the panels drawn in rows, with our settings of matplotlib."""
    matplotlib = import_extra("matplotlib", extra="report", purpose="to draw figures")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_LOOK)
        yield _drawn(panels)


def _drawn(panels: Sequence[Panel]) -> Drawing:
    """Return the panels in rows: all plots have the same size, the picture what they need.

    Constrained layout fits plots and labels into a picture of a given size. So it lays out a
    picture without labels' room first, and the picture then grows by what the plots lack.
    """
    from matplotlib.figure import Figure as Drawing

    columns = min(len(panels), 2 if len(panels) == 4 else _IN_A_ROW)
    rows = -(-len(panels) // columns)
    height = max(map(plot_height, panels))
    drawing = Drawing((8 * columns, 8 * rows), layout="constrained")
    for number, panel in enumerate(panels, start=1):
        draw(drawing.add_subplot(rows, columns, number), panel, height)
    engine = drawing.get_layout_engine()
    assert engine is not None
    engine.execute(drawing)
    (width, tall), plot = drawing.get_size_inches(), drawing.axes[0].get_window_extent()
    drawing.set_size_inches(
        width + columns * (PLOT_WIDTH - plot.width) / _POINTS_PER_INCH,
        tall + rows * (height - plot.height) / _POINTS_PER_INCH,
    )
    engine.execute(drawing)
    drawing.set_layout_engine("none")  # the same places in every format
    return drawing


def _saved(drawing: Drawing, form: str, **options: Any) -> bytes:  # noqa: ANN401 (of savefig)
    file = io.BytesIO()
    left_out = {"Date": None} if form == "svg" else {"Software": None}
    drawing.savefig(file, format=form, metadata=left_out, **options)
    return file.getvalue()


def _description(figure: Figure, panels: Sequence[Panel]) -> str:
    """Return in words what a picture shows, for screen readers."""
    text = caption(figure)
    sentences = [text] if text else []
    for panel in panels:
        names = ", ".join(series.label for series in panel.series)
        sentences.append(f"{panel.title}: {panel.y_label} by {panel.x_label} of {names}.")
    return " ".join(sentences)


def _series_data(drawing: Drawing, panel: Panel) -> str:
    """Return the series of a panel drawn alone, as JSON, for the script that shows values.

    Each has its label, its color, and its points: x and y in the picture, then the text to show.
    """
    (axes,) = drawing.axes
    height = drawing.get_figheight() * _POINTS_PER_INCH
    chosen = looks([series.style for series in panel.series])
    plain = []
    for index, (series, look) in enumerate(zip(panel.series, chosen, strict=True)):
        points = []
        texts = _texts(panel, series)
        for *place, text in zip(x_positions(panel, index), series.y, texts, strict=True):
            x, y = axes.transData.transform(place[::-1] if horizontal(panel) else place)
            points.append([round(float(x), 1), round(height - float(y), 1), text])
        plain.append({"label": series.label, "color": look.light, "points": points})
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _texts(panel: Panel, series: Series) -> list[str]:
    errors = series.error or (None,) * len(series.y)
    return [
        f"{_number(y)}{'' if error is None else f' ± {_number(error)}'}\n"
        + (x if isinstance(x, str) else f"{panel.x_label}: {x:,g}")
        for x, y, error in zip(series.x, series.y, errors, strict=True)
    ]


def _number(value: float) -> str:
    """Return a value in four digits.

    >>> _number(0.84567), _number(-176.04)
    ('0.8457', '−176')
    """
    return f"{value:,.4g}".replace("-", "−")


# --- SVG for pages -------------------------------------------------------------------------------


def _described(svg: str, title: str, description: str) -> str:
    """Return a picture with a title and description, without matplotlib's metadata."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = svg.replace(f"'{FAMILY}'", _FONTS)
    words = f"<title>{escape(title)}</title>\n <desc>{escape(description)}</desc>"
    begin = re.compile("<svg ([^>]*>)")
    return begin.sub(lambda tag: f'<svg role="img" {tag[1]}\n {words}', svg, count=1)


def _inline(svg: str, prefix: str, series: str) -> str:
    """Return a described picture to put into a page: in its size and colors.

    Ink becomes the color of the surrounding text, each series' color a variable of `variables`. Ids
    get a prefix, since they must be unique on a page. The page's script reads `series`.
    """

    def sized(match: re.Match[str]) -> str:
        return f' data-series="{escape(series)}" style="--width: {match[1]}pt"'

    svg = re.sub(r' width="([0-9.]+)pt" height="[^"]*"', sized, svg, count=1)
    svg = svg.replace(INK, "currentColor")
    for number, look in enumerate(every_look()):
        svg = svg.replace(look.light, f"var(--series-{number})")
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    return re.sub(r'(href="#|url\(#)', rf"\1{prefix}-", svg)


def variables(*, dark: bool) -> str:
    """Return the series' colors as CSS, for a light or a dark page.

    >>> variables(dark=False).split("; ")[0]
    '--series-0: #c4161c'
    """
    colors = [look.dark if dark else look.light for look in every_look()]
    return "; ".join(f"--series-{number}: {color}" for number, color in enumerate(colors))
