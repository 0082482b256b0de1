from __future__ import annotations

import statistics
from dataclasses import replace

import numpy as np
import pytest

from ebrank.experiments.framework.entrants import entrant_of
from ebrank.experiments.framework.measures import (
    COLD,
    CUM,
    MEASURES,
    RUN,
    WARM,
    against,
    cells,
    over_time,
)
from tests.experiments.made import CONFIG, QUERIES, result

FIGURES = [(0.5, 0.75, 0.25), (0.25, 0.5, 0.75), (0.75, 0.5, 0.5)]
RESULT = result("bm25", FIGURES)
BM25 = entrant_of("bm25")
SERVED = sum(CONFIG.discount**age for age in range(QUERIES))
"""The Cum-NDCG of lists with an NDCG of 1."""


def test_a_cell_is_the_mean_and_the_sample_deviation_over_trials() -> None:
    cold, warm, served = zip(*FIGURES, strict=True)
    for cell, column in zip(cells(RESULT), (cold, warm, served, served), strict=True):
        scale = SERVED if cell.digits == 1 else 1
        assert cell.value == pytest.approx(scale * statistics.mean(column))
        assert cell.sd == pytest.approx(scale * statistics.stdev(column))


def test_one_trial_has_no_deviation() -> None:
    alone = result("bm25", FIGURES[:1])
    assert [cell.sd for cell in cells(alone)] == [None] * 4
    assert over_time(BM25, alone, WARM).error == ()


def test_a_line_over_time_goes_through_the_means_at_each_checkpoint() -> None:
    line = over_time(BM25, RESULT, COLD)
    assert line.x == (50.0, 100.0)
    assert line.y == (0.25, 0.5)
    assert line.error == pytest.approx((0.125, 0.25))
    assert over_time(BM25, RESULT, CUM).y == pytest.approx((5.0, SERVED / 2))


def test_a_line_begins_where_every_trial_has_a_value() -> None:
    first, *others = RESULT.trials
    late = replace(first, run_ndcg=np.array([np.nan, 0.5]))
    line = over_time(BM25, replace(RESULT, trials=(late, *others)), RUN)
    assert line.x == (100.0,)
    assert len(line.y) == len(line.error) == 1
    assert np.isfinite(line.y).all()


def test_a_trial_without_a_value_leaves_a_cell_empty() -> None:
    first, *others = RESULT.trials
    never = replace(first, run_ndcg=np.full(2, np.nan))
    unserved = replace(RESULT, trials=(never, *others))
    assert unserved.unserved == 1
    *measured, run = cells(unserved)
    assert (run.value, run.sd) == (None, None)
    assert None not in [cell.value for cell in measured]


def test_a_line_against_something_takes_the_last_checkpoint() -> None:
    line = against(BM25, (1.0, 2.0), [RESULT, result("bm25", FIGURES[:1] * 3)], WARM)
    assert line.x == (1.0, 2.0)
    assert line.y == pytest.approx((np.mean([0.75, 0.5, 0.5]), 0.75))
    assert line.error[1] == 0.0


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [(0.5, False, ".500"), (-0.0312, True, "−.031"), (0.5, True, "+.500"), (1.0, False, "1.000")],
)
def test_values_read_as_in_the_paper(value: float, signed: bool, text: str) -> None:
    assert COLD.text(value, signed=signed) == text
    assert [measure.name for measure in MEASURES] == ["cold", "warm", "cum", "run"]
    assert CUM.text(-10.26, signed=True) == "−10.3"
