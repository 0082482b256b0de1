"""Looks: each ranker's own, visible on white and on dark, distinct without color."""

from __future__ import annotations

import pytest

from ebrank.paper.exhibits.beyond import FAR_BELOW
from ebrank.paper.framework import entrants
from ebrank.paper.report.figures import palette
from ebrank.paper.report.figures.palette import LOOKS, OTHERS, Look, every_look, looks

DARK_PAGE = "#14171c"


def luminance(color: str) -> float:
    """Relative luminance, as WCAG 2.1 defines it."""
    shares = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(each: str, other: str) -> float:
    darker, lighter = sorted((luminance(each), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("look", every_look(), ids=lambda look: str(look.light))
def test_every_color_is_seen_on_its_page(look: Look) -> None:
    assert contrast(look.light, "#ffffff") >= 3.0
    assert contrast(look.dark, DARK_PAGE) >= 4.5


def test_every_entrant_has_a_look_of_its_own() -> None:
    everyone = (*entrants.ENTRANTS, *entrants.CONTENDERS)
    assert {entrant.style for entrant in everyone} == set(LOOKS)
    beyond = [each for each in entrants.CONTENDERS if each.key not in FAR_BELOW]
    beyond.append(entrants.entrant_of(entrants.UCBRANK))
    for drawn_together in (entrants.FIGURES, beyond):
        styles = {entrant.style for entrant in drawn_together}
        assert len({LOOKS[style].marker for style in styles}) == len(styles)
    assert len({look.marker for look in OTHERS}) == len(OTHERS)
    colors = [palette.INK, *(look.light for look in every_look())]
    assert len(set(colors)) == len(colors), "a page can tell all colors apart"
    assert [style for style, look in LOOKS.items() if look.emphasized] == ["ebrank", "auto"]
    solid = [style for style, look in LOOKS.items() if look.dash == palette.SOLID]
    assert solid == ["auto"], "told apart without color"


def test_strangers_look_different_from_each_other_and_keep_their_look() -> None:
    drawn = looks(["mine", "yours", "ebrank", "mine"])
    assert drawn[2] == LOOKS["ebrank"]
    assert drawn[0].light == drawn[3].light != drawn[1].light
    assert len({look.marker for look in drawn}) == 4
    many = looks([str(number) for number in range(40)])
    assert len(many) == 40, "more series than looks"
    assert len({look.light for look in many[:12]}) == 12


def test_a_stranger_is_not_taken_for_one_who_is_there() -> None:
    """The first spare color is nearly UCBRank's."""
    rivals = ["ucbrank", "prior", "cftopk", "ebrank"]
    *rival_looks, mine, _ = drawn = looks([*rivals, "mine", "yours"])
    assert rival_looks == [LOOKS[style] for style in rivals]
    for place, look in enumerate(drawn):
        assert all(palette._distance(look, other) >= palette.FAR for other in drawn[:place])
    assert not mine.emphasized
