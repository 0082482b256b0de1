"""Pictures: the same bytes each time, every name as text, and every ranker told apart."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from ebrank.paper.exhibits.beyond import FAR_BELOW
from ebrank.paper.framework import entrants
from ebrank.paper.framework.display import Figure, Panel, Series
from ebrank.paper.report.figures import LOOKS, Look, looks, svg
from tests.paper.report.sample import FIGURE, GRID, OTHERS, bars, over_time

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: bytes) -> list[str]:
    root = ElementTree.fromstring(picture)
    return ["".join(each.itertext()).strip() for each in root.iter(f"{SVG}text")]


def luminance(color: str) -> float:
    """Relative luminance, as WCAG 2.1 defines it."""
    shares = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_every_color_is_seen_on_its_page(look: Look) -> None:
    assert 1.05 / (luminance(look.light) + 0.05) >= 3.0
    assert (luminance(look.dark) + 0.05) / (luminance("#14171c") + 0.05) >= 4.5


def test_every_entrant_has_a_look_of_its_own() -> None:
    everyone = (*entrants.ENTRANTS, *entrants.CONTENDERS)
    assert {entrant.style for entrant in everyone} == set(LOOKS)
    beyond = [each for each in entrants.CONTENDERS if each.key not in FAR_BELOW]
    beyond.append(entrants.entrant_of(entrants.UCBRANK))
    for drawn_together in (entrants.FIGURES, beyond):
        styles = {entrant.style for entrant in drawn_together}
        assert len({LOOKS[style].marker for style in styles}) == len(styles)
    assert len({look.light for look in LOOKS.values()}) == len(LOOKS)
    assert [style for style, look in LOOKS.items() if look.emphasized] == ["auto", "ebrank"]
    assert [style for style, look in LOOKS.items() if not look.dash] == ["auto"], "without color"


def test_strangers_look_like_nobody_who_is_there() -> None:
    drawn = looks(["mine", "yours", "ebrank", "mine", "ucbrank"])
    assert (drawn["ebrank"], drawn["ucbrank"]) == (LOOKS["ebrank"], LOOKS["ucbrank"])
    assert len({look.light for look in drawn.values()}) == len(drawn) == 4
    assert len(looks([str(number) for number in range(40)])) == 40, "more series than looks"


@pytest.mark.slow
def test_the_same_figure_gives_the_same_bytes_whatever_was_drawn_before() -> None:
    import matplotlib as mpl

    small = Figure("small", "Small", "", OTHERS.panels[1:3])
    first = svg(small)
    with mpl.rc_context({"lines.linewidth": 9, "font.size": 30, "axes.grid": True}):
        assert svg(small) == first
        assert mpl.rcParams["lines.linewidth"] == 9, "the user's settings stay"


@pytest.mark.slow
def test_every_name_is_in_the_picture_as_text_once() -> None:
    words = texts(svg(FIGURE))
    for each in entrants.FIGURES:
        assert words.count(each.label) == 1, "one legend for all panels"
    assert {"Warm-NDCG", "NDCG@5", "sessions"} <= set(words)
    picture = svg(OTHERS)
    assert {"CFTopK", "EBRank", "a long name", "A", "η", "0.2"} <= set(texts(picture))
    assert b"<script" not in picture


@pytest.mark.slow
def test_signs_in_names_are_not_mathematics_and_a_lone_series_needs_no_legend() -> None:
    panel = Panel("$x^2$", "a_b", "$", over_time().series[:1])
    words = texts(svg(Figure("f", "f", "", (panel,))))
    assert "$x^2$" in words
    assert over_time().series[0].label not in words


@pytest.mark.slow
def test_axes_from_zero_begin_there_and_the_first_rank_is_on_top() -> None:
    from matplotlib.figure import Figure as Drawing

    from ebrank.paper.report import figures

    def drawn(panel: Panel) -> tuple[float, float]:
        axes = Drawing().add_subplot()
        figures._draw(axes, panel, looks(series.style for series in panel.series))
        low, high = axes.get_ylim()
        return float(low), float(high)

    line = Series("a", "a", (0.0, 1.0), (2.0, 3.0), (0.1, 0.1))
    assert drawn(Panel("", "", "", (line,), zero=True))[0] == 0.0
    assert drawn(Panel("", "", "", (line,)))[0] > 1.5
    bottom, top = drawn(Panel("", "", "", (line,), down=True))
    assert bottom > 3.0 > 2.0 > top
    bottom, top = drawn(bars(("first", "second")))
    assert bottom > top, "names from top to bottom"
    assert drawn(GRID)[0] < 1.0
