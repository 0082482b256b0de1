"""Where things stand on the axes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.paper.framework.figures import Panel, Series
from ebrank.paper.report.figures.render import caption
from ebrank.paper.report.figures.scales import banded, set_axes, x_positions, y_range
from tests.paper.report.sample import FIGURE, GRID, bars, over_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def panel(*y: float, error: tuple[float, ...] = (), zero: bool = False) -> Panel:
    x = tuple(map(float, range(len(y))))
    return Panel("", "", "", (Series("a", "a", x, y, error),), zero=zero)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=10), st.floats(0, 1e3), st.booleans())
def test_all_values_with_their_errors_are_inside(y: list[float], error: float, zero: bool) -> None:
    low, high = y_range(panel(*y, error=(error,) * len(y), zero=zero))
    assert low <= min(y) - error
    assert high >= max(y) + error
    assert low < high
    assert not zero or low <= 0 <= high


def test_axes_from_zero_begin_there() -> None:
    assert y_range(panel(1.0, 2.0, zero=True))[0] == 0.0
    assert y_range(bars(("A", "B")))[0] == 0.0
    assert y_range(panel(1.0, 2.0))[0] > 0.9
    assert y_range(panel()) == (0.0, 1.0)


def test_names_are_places_in_order_of_appearance() -> None:
    series = (Series("one", "", ("B", "A"), (1.0, 2.0)), Series("two", "", ("A", "C"), (1.0, 2.0)))
    named = Panel("", "", "", series)
    assert [x_positions(named, index) for index in (0, 1)] == [[0.0, 1.0], [1.0, 2.0]]


def drawn(shown: Panel, inches: float = 2.0) -> Axes:
    from matplotlib.figure import Figure  # takes a while to import

    axes = Figure(figsize=(inches, inches)).add_axes((0.1, 0.1, 0.8, 0.8))
    set_axes(axes, shown)
    return axes


def test_a_grid_with_zero_can_be_logarithmic_and_its_numbers_do_not_touch() -> None:
    shown = [label.get_text() for label in drawn(GRID, 2.5).get_xticklabels()]
    assert (shown[0], shown[-1]) == ("0", "100")
    assert "70" not in shown


def test_numbers_of_an_axis_have_as_many_decimals() -> None:
    labels = drawn(panel(0.35, 1.0)).get_yticklabels()
    assert {len(label.get_text()) for label in labels} == {3}


def test_the_first_rank_is_on_top() -> None:
    axes = drawn(replace(panel(7.0, 3.0), down=True))
    bottom, top = axes.get_ylim()
    assert bottom > 7.0 > 1.0 > top
    assert [label.get_text() for label in axes.get_yticklabels()] == list("1234567")
    assert len(drawn(replace(panel(90.0, 3.0), down=True)).get_yticks()) < 10


def test_time_begins_at_zero_where_its_first_point_is_close() -> None:
    for first, begins in ((1.0, 0.0), (30.0, 30.0)):
        axes = drawn(Panel("", "", "", (Series("a", "a", (first, 100.0), (1.0, 2.0)),)))
        assert axes.get_xlim() == (begins, 100.0)


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ((), "only the bands of EBRank (paper), EBRank auto are drawn."),
        (("auto",), "only the band of EBRank (paper) is drawn."),
        (("auto", "ebrank"), "no band is drawn."),
    ],
)
def test_many_lines_leave_emphasized_ones_their_bands_and_say_so(
    left_out: tuple[str, ...], said: str
) -> None:
    few = tuple(each for each in over_time().series if each.style not in left_out)
    panel = replace(over_time(), series=few)
    emphasized = [style for style in ("ebrank", "auto") if style not in left_out]
    assert [each.style for each in panel.series if banded(panel, each)] == emphasized
    text = caption(replace(FIGURE, panels=(panel,)))
    assert text == f"Bands are deviations. Of so many lines, {said}"
    wide = tuple(
        each if each.style in emphasized else replace(each, error=(9.0,) * 12) for each in few
    )
    assert y_range(replace(panel, series=wide)) == y_range(panel), "what is not drawn needs no room"


def test_few_lines_and_bars_keep_their_bands() -> None:
    few = replace(over_time(), series=over_time().series[:4])
    for panel in (few, bars(tuple("ABCDEFGH"))):
        assert all(banded(panel, each) for each in panel.series if each.error)
    assert caption(replace(FIGURE, panels=(few,))) == FIGURE.caption
    assert not banded(GRID, GRID.series[0])
