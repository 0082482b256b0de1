"""The rankers that a reader looks for first."""

from __future__ import annotations

from dataclasses import replace

from ebrank.experiments.framework.outcome import Cell, Row
from ebrank.report.page.standings import headline, headline_table, standings
from tests.report.results import NAME, SCORES, table2


def test_figures_are_those_of_table_2() -> None:
    found = standings(table2(), NAME)
    for key, scores in SCORES.items():
        assert [cell.value for cell in found[key].cells.values()] == [*scores, scores[2] / 200]
    assert found.keys() == SCORES.keys()
    assert standings(table2(), "another") == {}
    assert standings(None, NAME) == {}


def test_a_ranker_without_figures_is_left_out() -> None:
    table = table2()
    rows = tuple(
        Row((row.cells[0], *[Cell(None)] * 4), row.group) if row.cells[0] == "EBRank" else row
        for row in table.rows
    )
    assert standings(replace(table, rows=rows), NAME).keys() == SCORES.keys() - {"ebrank"}


def test_of_the_others_the_best_with_behavior_is_shown() -> None:
    chosen = [one.name for one in headline(standings(table2(), NAME))]
    assert chosen == [
        "BM25",
        "PDGD with clicks as a feature",
        "CFTopK with clicks as a feature",
        "UCBRank",
        "EBRank",
        "EBRank (exposure)",
    ]
    without = standings(table2(without="pdgd:features=concate"), NAME)
    assert "PRIOR" in [one.name for one in headline(without)]


def test_the_table_keeps_marks_and_sets_apart_what_is_apart() -> None:
    rows = headline_table(headline(standings(table2(), NAME))).rows
    (ours,) = (row for row in rows if row.cells[0] == "EBRank")
    assert ours.cells[3] == Cell(160.0, 0.01, 1, marks="*†")
    for place in (1, 2, 3):
        cells = [cell for row in rows if isinstance(cell := row.cells[place], Cell)]
        (best,) = (cell.value for cell in cells if cell.best)
        assert best == max(cell.value or 0.0 for cell in cells)
    assert [row.cells[0] for row in rows if row.apart] == ["EBRank (exposure)"]
