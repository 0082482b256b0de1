"""Cells and lines are means with their deviations, and numbers read as papers print them."""

from __future__ import annotations

import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.lab.simulation.result import Result
from ebrank.paper.framework.display import Series
from ebrank.paper.framework.entrants import entrant_of
from ebrank.paper.framework.measures import cells, figure_over_time, panels_against
from ebrank.paper.framework.numbers import number
from tests.paper.made import CONFIG, QUERIES, result

FIGURES = [(0.5, 0.75, 0.25), (0.25, 0.5, 0.75), (0.75, 0.5, 0.5)]
RESULT = result("bm25", FIGURES)
BM25 = entrant_of("bm25")
SERVED = sum(CONFIG.discount**age for age in range(QUERIES))
"""The Cum-NDCG of lists with an NDCG of 1."""


def over_time(shown: Result) -> list[Series]:
    panels = figure_over_time("", "", "", {BM25: shown}).panels
    return [line for panel in panels for line in panel.series]


def test_a_cell_is_the_mean_and_the_sample_deviation_over_trials() -> None:
    cold, warm, served = zip(*FIGURES, strict=True)
    for cell, column in zip(cells(RESULT), (cold, warm, served, served), strict=True):
        scale = SERVED if cell.digits == 1 else 1
        assert cell.value == pytest.approx(scale * statistics.mean(column))
        assert cell.sd == pytest.approx(scale * statistics.stdev(column))


def test_one_trial_has_no_deviation() -> None:
    alone = result("bm25", FIGURES[:1])
    assert [cell.sd for cell in cells(alone)] == [None] * 4
    assert [line.error for line in over_time(alone)] == [()] * 4


def test_a_line_over_time_goes_through_the_means_at_each_checkpoint() -> None:
    cold, _, cum, _ = over_time(RESULT)
    assert (cold.x, cold.y) == ((50.0, 100.0), (0.25, 0.5))
    assert cold.error == pytest.approx((0.125, 0.25))
    assert cum.y == pytest.approx((5.0, SERVED / 2))


def test_a_line_against_something_takes_the_last_checkpoint() -> None:
    varied = {1.0: RESULT, 2.0: result("bm25", FIGURES[:1] * 3)}
    (line,) = panels_against("x", {BM25: varied})[1].series
    assert line.x == (1.0, 2.0)
    assert line.y == pytest.approx((np.mean([0.75, 0.5, 0.5]), 0.75))
    assert line.error[1] == 0.0


@pytest.mark.parametrize(("served", "left"), [((np.nan, 0.5), (100.0,)), ((np.nan, np.nan), ())])
def test_where_a_trial_has_no_value_there_is_no_point_and_no_cell(
    served: tuple[float, float], left: tuple[float, ...]
) -> None:
    first, *others = RESULT.trials
    late = replace(RESULT, trials=(replace(first, run_ndcg=np.array(served)), *others))
    line = over_time(late)[3]
    assert line.x == left
    assert len(line.y) == len(line.error) == len(left)
    *measured, run = cells(late)
    assert (run.value is None) == (run.sd is None) == (late.unserved == 1) == (not left)
    assert None not in [cell.value for cell in measured]


@given(st.floats(-1e9, 1e9), st.integers(0, 6))
def test_a_number_reads_as_itself_rounded(value: float, digits: int) -> None:
    text = number(value, digits)
    assert float(text.replace("−", "-").replace(",", "")) == round(value, digits) + 0.0
    assert not text.startswith(("0.", "−0", "-"))
    assert len(text.partition(".")[2]) == digits
    sign = {True: "+", False: "−"}[value > 0] if round(abs(value), digits) else ""
    assert number(value, digits, signed=True) == sign + number(abs(value), digits)


def test_a_missing_number_is_a_dash() -> None:
    assert {number(value, 3) for value in (None, float("nan"), float("-inf"))} == {"–"}
