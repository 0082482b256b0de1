"""How results were made: every run, and how long it took."""

from __future__ import annotations

import pytest

from ebrank.experiments.framework.outcome import Cell
from ebrank.report.page.run_tables import runs_table, times_table
from tests.report.sample import NASTY, TIMES, dataset


def test_runs_are_means_with_deviations() -> None:
    (row,) = runs_table(dataset()).rows
    assert row.cells[0] == "ebrank:epsilon=5.0"
    cold = row.cells[4]
    assert isinstance(cold, Cell)
    assert cold.value == pytest.approx(0.55)
    assert cold.sd == pytest.approx(0.0707106781)


def test_times_are_in_words() -> None:
    table = times_table(TIMES)
    assert table is not None
    assert [row.cells[2] for row in table.rows] == ["1 min 15 s", "3.0 s", "1 h 2 min"]
    assert {row.group for row in table.rows} == {NASTY}
    assert table.caption.startswith("Trials on 2 cores at a time")
    alone = times_table(TIMES | {"jobs": 1})
    assert alone is not None
    assert alone.caption.startswith("Trials on 1 core at a time")


@pytest.mark.parametrize("times", [{}, {"datasets": [{}]}, {"datasets": 1}, {"datasets": [1]}])
def test_a_file_of_another_version_is_no_trouble(times: dict[str, object]) -> None:
    assert times_table(times) is None
