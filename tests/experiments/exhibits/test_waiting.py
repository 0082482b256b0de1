from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ebrank.experiments.exhibits import waiting
from ebrank.experiments.framework.entrants import ENTRANTS, FIGURES
from ebrank.experiments.framework.outcome import Cell, Outcome
from ebrank.experiments.framework.runner import FinishedDataset
from tests.experiments.made import result

SHOWN, TOP, WATCHED = [0, 2, -1, 3], [5, -1, -1, -1], [9, 9, 1, 9]


def made(
    finished: FinishedDataset, trials: list[tuple[list[int], list[int], list[int]]]
) -> tuple[Outcome, dict[str, tuple[Cell | str, ...]]]:
    """Return the outcome if every ranker had trials with these waits, and its rows."""
    results = {}
    for name in waiting.runs(finished.setup):
        plain = result("bm25", [(0.5, 0.5, 0.5)] * len(trials))
        each = tuple(
            replace(
                trial,
                wait_shown=np.array(shown, np.int64),
                wait_top=np.array(top, np.int64),
                watched=np.array(watched, np.int64),
            )
            for trial, (shown, top, watched) in zip(plain.trials, trials, strict=True)
        )
        results[name] = replace(plain, trials=each)
    outcome = waiting.outcome(finished.setup, results)
    return outcome, {str(row.cells[0]): row.cells[1:] for row in outcome.tables[0].rows}


def test_shares_count_those_still_waiting_for_as_long_as_they_were_watched(
    finished: FinishedDataset,
) -> None:
    outcome, rows = made(finished, [(SHOWN, TOP, WATCHED)])
    shown, top = outcome.figures[0].panels
    line = shown.series[0]
    # at 0 one of four; the one watched until 1 leaves; at 2 one of two left, at 3 the last
    assert line.x == (0.0, 2.0, 3.0, 9.0)
    assert line.y == pytest.approx((1 / 4, 1 - 3 / 4 / 2, 1.0, 1.0))
    assert line.error[0] == pytest.approx(np.sqrt(1 / 4 * 3 / 4 / 4))
    assert top.series[0].x == (0.0, 5.0, 9.0)
    assert top.series[0].y == pytest.approx((0.0, 1 / 3, 1 / 3))
    values = [cell.value if isinstance(cell, Cell) else cell for cell in rows["EBRank"]]
    # nobody was watched for ten sessions
    assert values == pytest.approx([4.0, 2.0, None, 1.0, None, None, 1 / 3])


@pytest.mark.parametrize(("last", "share"), [(9, None), (10, 0.5), (11, 0.5)])
def test_a_share_is_given_while_an_item_is_watched(
    finished: FinishedDataset, last: int, share: float | None
) -> None:
    _, rows = made(finished, [([3, -1], [-1, -1], [last, last])])
    assert rows["EBRank"][2] == Cell(share, digits=2)


def test_trials_are_taken_together(finished: FinishedDataset) -> None:
    _, rows = made(finished, [(SHOWN, TOP, WATCHED), ([1], [-1], [4])])
    assert rows["EBRank"][0] == Cell(5.0, digits=0)


def test_nothing_entered_nothing_waited(finished: FinishedDataset) -> None:
    outcome, rows = made(finished, [([], [], [])])
    assert outcome.figures[0].panels[0].series[0].y == ()
    assert rows["BM25"][0] == Cell(0.0, digits=0)
    assert [cell.value for cell in rows["BM25"][1:] if isinstance(cell, Cell)] == [None] * 6


def test_how_the_top_was_looked_up_is_said_wherever_it_is_shown(finished: FinishedDataset) -> None:
    outcome, _ = made(finished, [(SHOWN, TOP, WATCHED)])
    (table,), (figure,) = outcome.tables, outcome.figures
    label = "top 5 by its own estimate, at a model update"
    assert {column.group for column in table.columns[5:]} == {label}
    assert figure.panels[1].title == f"Until the {label}"
    for caption in (table.caption, figure.caption):
        assert "at model updates" in caption
        assert "exploration left out" in caption
        assert "even BM25 and Oracle seem to wait" in caption
    assert "independent" in figure.caption


def test_rankers_not_in_the_paper_share_one_heading(finished: FinishedDataset) -> None:
    outcome, _ = made(finished, [(SHOWN, TOP, WATCHED)])
    apart = [row.cells[0] for row in outcome.tables[0].rows if row.group == "for comparison"]
    assert apart == ["Thompson", "Random", "Oracle"]


def test_all_rankers_of_a_real_run(finished: FinishedDataset) -> None:
    outcome = finished.outcomes["waiting"]
    (table,) = outcome.tables
    assert [row.cells[0] for row in table.rows] == [one.label for one in ENTRANTS]
    items = {row.cells[1] for row in table.rows}
    assert len(items) == 1, "all rankers meet the same arrivals"
    for panel in outcome.figures[0].panels:
        assert [line.style for line in panel.series] == [one.style for one in FIGURES]
        assert all(list(line.y) == sorted(line.y) for line in panel.series)
