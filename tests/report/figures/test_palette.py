"""Looks: each ranker's own, visible on white and on dark, distinct without color."""

from __future__ import annotations

import pytest

from ebrank.experiments.exhibits.beyond import FAR_BELOW
from ebrank.experiments.exhibits.time import OTHERS as OTHERS_OVER_TIME
from ebrank.experiments.framework.entrants import (
    CONTENDERS,
    ENTRANTS,
    FIGURES,
    UCBRANK,
    entrant_of,
)
from ebrank.report.figures.palette import (
    FAR,
    INK,
    LOOKS,
    OTHERS,
    Look,
    _distance,
    every_look,
    looks,
)

DARK_PAGE = "#14171c"


def luminance(color: str) -> float:
    """Relative luminance, as WCAG 2.1 defines it."""
    shares = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("look", every_look(), ids=lambda look: str(look.light))
def test_every_color_is_seen_on_its_page(look: Look) -> None:
    assert contrast(look.light, "#ffffff") >= 3.0
    assert contrast(look.dark, DARK_PAGE) >= 4.5


def test_the_instrument() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_every_entrant_has_a_look_of_its_own() -> None:
    assert {one.style for one in (*ENTRANTS, *CONTENDERS)} == set(LOOKS)
    beyond = [entrant_of(UCBRANK).style]
    beyond += [one.style for one in CONTENDERS if one.key not in FAR_BELOW]
    for drawn_together in ([e.style for e in FIGURES], [e.style for e in OTHERS_OVER_TIME], beyond):
        markers = {LOOKS[style].marker for style in drawn_together}
        assert len(markers) == len(set(drawn_together))
    assert len({look.marker for look in OTHERS}) == len(OTHERS)


def test_a_page_can_tell_all_colors_apart() -> None:
    colors = [INK, *(look.light for look in every_look())]
    assert len(set(colors)) == len(colors)


def test_only_ebrank_and_auto_are_emphasized() -> None:
    assert [style for style, look in LOOKS.items() if look.emphasized] == ["ebrank", "auto"]


def test_strangers_look_different_from_each_other_and_keep_their_look() -> None:
    drawn = looks(["mine", "yours", "ebrank", "mine"])
    assert drawn[2] == LOOKS["ebrank"]
    assert drawn[0].light == drawn[3].light != drawn[1].light
    assert len({look.marker for look in drawn}) == 4


def test_more_series_than_looks_are_drawn_all_the_same() -> None:
    assert len(looks([str(number) for number in range(40)])) == 40


def test_a_stranger_is_not_taken_for_one_who_is_there() -> None:
    """The first spare color is nearly UCBRank's."""
    rivals = ["ucbrank", "prior", "cftopk", "ebrank"]
    *known, mine, yours = looks([*rivals, "mine", "yours"])
    assert known == [LOOKS[style] for style in rivals]
    drawn = [*known, mine, yours]
    for place, look in enumerate(drawn):
        assert all(_distance(look, other) >= FAR for other in drawn[:place])
    assert not mine.emphasized


def test_a_dozen_strangers_have_a_dozen_colors() -> None:
    assert len({look.light for look in looks([str(number) for number in range(12)])}) == 12
