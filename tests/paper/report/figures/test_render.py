"""Pictures: the same bytes each time, all names in them as text, none upon another."""

from __future__ import annotations

import io
import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from ebrank.paper.framework.entrants import FIGURES
from ebrank.paper.framework.figures import Figure, Panel
from ebrank.paper.report.figures import render
from ebrank.paper.report.figures.palette import INK, LOOKS
from ebrank.paper.report.figures.render import inline_panels, png_file, svg_file
from tests.paper.report.sample import FIGURE, NASTY, OTHERS, over_time

pytestmark = pytest.mark.slow

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str | bytes) -> list[str]:
    return [
        "".join(each.itertext()).strip() for each in ElementTree.fromstring(svg).iter(f"{SVG}text")
    ]


def test_the_same_figure_gives_the_same_bytes_whatever_was_drawn_before(kinds_svg: bytes) -> None:
    import matplotlib as mpl

    small = Figure("small", "Small", "", OTHERS.panels[1:3])
    first = png_file(small), inline_panels(small, "p")
    with mpl.rc_context({"lines.linewidth": 9, "font.size": 30, "axes.grid": True}):
        assert (png_file(small), inline_panels(small, "p")) == first
        assert svg_file(OTHERS) == kinds_svg


def test_drawing_leaves_the_users_settings_alone() -> None:
    import matplotlib as mpl

    with mpl.rc_context({"lines.linewidth": 9}):
        svg_file(Figure("small", "Small", "", OTHERS.panels[1:2]))
        assert mpl.rcParams["lines.linewidth"] == 9


def test_every_name_is_in_the_picture_as_text(over_time_svg: bytes, kinds_svg: bytes) -> None:
    words = texts(over_time_svg)
    for each in FIGURES:
        assert words.count(each.label) == 3
    assert {"Warm-NDCG", "NDCG@5", "sessions"} <= set(words)
    words = texts(kinds_svg)
    assert {"CFTopK", "EBRank", "a long name", "A", "ε"} <= set(words)


@pytest.mark.parametrize("kind", ["lines", "steps"])
def test_names_at_the_ends_of_lines_do_not_overlap(kind: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    with render._drawing([over_time(kind)]) as drawing:
        canvas = FigureCanvasAgg(drawing)
        names = {each.label for each in FIGURES}
        found = [each for each in drawing.findobj(Text) if each.get_text() in names]
        renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
        boxes = [each.get_window_extent(renderer) for each in found]
        assert len(boxes) == len(FIGURES)
        for each, other in combinations(boxes, 2):
            assert min(each.y1, other.y1) - max(each.y0, other.y0) < 0.35 * each.height
        assert max(box.x1 for box in boxes) <= drawing.bbox.width
        assert min(box.y0 for box in boxes) >= 0


def test_png_is_white_and_sharp() -> None:
    from PIL import Image

    image = Image.open(io.BytesIO(png_file(FIGURE))).convert("RGB")
    assert image.getpixel((0, 0)) == (255, 255, 255)
    assert image.width > 2000


def test_pictures_in_a_page_have_its_colors_and_ids_of_their_own() -> None:
    first, second, _ = inline_panels(FIGURE, "time")
    for picture in (first, second):
        assert INK not in picture
        assert LOOKS["ebrank"].light not in picture
        assert "currentColor" in picture
        assert "var(--series-0)" in picture
        ids = set(re.findall(r'id="([^"]+)"', picture))
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', picture))
        assert used <= ids
    assert not set(re.findall(r'id="([^"]+)"', first)) & set(re.findall(r'id="([^"]+)"', second))
    assert first.startswith('<svg role="img"')


def test_pictures_say_what_they_show_and_names_are_no_markup(kinds_svg: bytes) -> None:
    root = ElementTree.fromstring(kinds_svg)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == OTHERS.title
    description = root.findtext(f"{SVG}desc") or ""
    assert description.startswith(NASTY)
    assert "EBRank" in description
    assert not list(root.iter(f"{SVG}metadata"))
    assert not list(root.iter(f"{SVG}script"))


def test_signs_in_names_are_not_mathematics() -> None:
    panel = Panel("$x^2$", "a_b", "$", over_time().series[:1])
    assert "$x^2$" in texts(svg_file(Figure("f", "f", "", (panel,))))
