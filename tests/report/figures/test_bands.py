"""Bands: all where lines are few, that of EBRank where they are many, and the caption says so."""

from __future__ import annotations

from dataclasses import replace

from ebrank.report.figures.bands import MANY, NONE, banded, caption
from ebrank.report.figures.scales import y_range
from tests.report.sample import FIGURE, POINTS, bars, over_time


def test_many_lines_leave_ebrank_its_band_and_say_so() -> None:
    panel = over_time()
    assert [one.style for one in panel.series if banded(panel, one)] == ["ebrank"]
    assert caption(FIGURE) == (
        "Bands are deviations. Of so many lines, only the band of EBRank is drawn."
    )


def test_without_ebrank_no_band_is_drawn_and_the_caption_says_so() -> None:
    panel = over_time()
    others = replace(panel, series=tuple(one for one in panel.series if one.style != "ebrank"))
    assert not any(banded(others, one) for one in others.series)
    assert caption(replace(FIGURE, panels=(others,))) == f"Bands are deviations. {NONE}"


def test_few_lines_bars_and_points_keep_theirs() -> None:
    few = replace(over_time(), series=over_time().series[: MANY - 1])
    for panel in (few, bars(tuple("ABCDEFGH")), POINTS):
        assert all(banded(panel, one) for one in panel.series if one.error)
    assert caption(replace(FIGURE, panels=(few,))) == FIGURE.caption
    assert not banded(POINTS, POINTS.series[1])


def test_bands_that_are_not_drawn_take_no_room() -> None:
    panel = over_time()
    others = tuple(
        one if one.style == "ebrank" else replace(one, error=(9.0,) * 12) for one in panel.series
    )
    assert y_range(replace(panel, series=others)) == y_range(panel)
