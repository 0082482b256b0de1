"""Figures as pictures: SVG and PNG files, and SVG to put into a page.

The same figure gives the same bytes: no date, no random ids, and none of the settings that an
earlier plot may have left in matplotlib. Texts are measured with the font that matplotlib ships.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ebrank.experiments.framework.outcome import Figure, Panel
from ebrank.extras import import_extra
from ebrank.report.figures.bands import caption
from ebrank.report.figures.frame import Frame, frame
from ebrank.report.figures.hover import series_data
from ebrank.report.figures.palette import INK
from ebrank.report.figures.panels import draw
from ebrank.report.figures.svg import described, inline, without_part_ids
from ebrank.report.figures.text_width import FAMILY, SIZE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_POINTS_PER_INCH = 72
_IN_A_ROW = 3
_BETWEEN = 14.0
_LOOK: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
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
        picture = without_part_ids(_saved(drawing, "svg", facecolor="white").decode())
    header = '<?xml version="1.0" encoding="utf-8"?>\n'
    return (header + described(picture, figure.title, _description(figure, figure.panels))).encode()


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
            series = series_data(drawing, panel)
        title = f"{figure.title}: {panel.title}" if panel.title else figure.title
        accessible = described(picture, title, _description(figure, [panel]))
        pictures.append(inline(accessible, f"{prefix}-{number}", series))
    return pictures


@contextmanager
def _drawing(panels: Sequence[Panel]) -> Iterator[Drawing]:
    """Yield the panels drawn in rows, with our settings of matplotlib."""
    matplotlib = import_extra("matplotlib", extra="report", purpose="to draw figures")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_LOOK)
        yield _drawn(panels)


def _drawn(panels: Sequence[Panel]) -> Drawing:
    from matplotlib.figure import Figure as Drawing

    beside = 2 if len(panels) == 4 else _IN_A_ROW
    rows = [panels[start : start + beside] for start in range(0, len(panels), beside)]
    rooms = [[frame(panel) for panel in row] for row in rows]
    width = max(_total([_outer_width(room) for room in row]) for row in rooms)
    heights = [max(_outer_height(room) for room in row) for row in rooms]
    height = _total(heights)
    drawing = Drawing(figsize=(width / _POINTS_PER_INCH, height / _POINTS_PER_INCH))
    top = height
    for row, room_of, tall in zip(rows, rooms, heights, strict=True):
        left = 0.0
        for panel, room in zip(row, room_of, strict=True):
            bottom = top - room.top - room.height
            axes = drawing.add_axes(
                (
                    (left + room.left) / width,
                    bottom / height,
                    room.width / width,
                    room.height / height,
                )
            )
            draw(axes, panel, room)
            left += _outer_width(room) + _BETWEEN
        top -= tall + _BETWEEN
    return drawing


def _outer_width(room: Frame) -> float:
    return room.left + room.width + room.right


def _outer_height(room: Frame) -> float:
    return room.top + room.height + room.bottom


def _total(lengths: Sequence[float]) -> float:
    return sum(lengths) + _BETWEEN * (len(lengths) - 1)


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
