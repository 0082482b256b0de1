"""The rankers that a reader looks for first."""

from __future__ import annotations

from dataclasses import replace

from ebrank.experiments.framework.outcome import Cell, Column, Row
from ebrank.report.page.standings import headline, headline_table, standings
from tests.report.results import SCORES, TITLES, results, table2

DATA = results()


def test_figures_are_those_of_table_2() -> None:
    found = standings(table2(), DATA)
    for key, scores in SCORES.items():
        assert [cell.value for cell in found[key].cells.values()] == [*scores, scores[2] / 200]
    assert found.keys() == SCORES.keys()
    assert standings(table2(), replace(DATA, name="another")) == {}
    assert standings(None, DATA) == {}


def test_a_ranker_without_figures_is_left_out() -> None:
    table = table2()
    rows = tuple(
        Row((row.cells[0], *[Cell(None)] * 4), row.group) if row.cells[0] == "EBRank" else row
        for row in table.rows
    )
    assert standings(replace(table, rows=rows), DATA).keys() == SCORES.keys() - {"ebrank"}


def test_of_the_others_the_best_with_behavior_is_shown() -> None:
    chosen = [one.name for one in headline(standings(table2(), DATA))]
    assert chosen == [
        "BM25",
        "PDGD with clicks as a feature",
        "CFTopK with clicks as a feature",
        "UCBRank",
        "EBRank",
        "EBRank (exposure)",
        "auto",
    ]
    without = standings(table2(without="pdgd:features=concate"), DATA)
    assert "PRIOR" in [one.name for one in headline(without)]


def test_the_table_keeps_marks_and_sets_apart_what_is_apart() -> None:
    rows = headline_table(headline(standings(table2(), replace(DATA, ledger=())))).rows
    (ours,) = (row for row in rows if row.cells[0] == "EBRank")
    assert ours.cells[3] == Cell(160.0, 0.01, 1, marks="*†")
    for place in (1, 2, 3):
        cells = [cell for row in rows if isinstance(cell := row.cells[place], Cell)]
        (best,) = (cell.value for cell in cells if cell.best)
        assert best == max(cell.value or 0.0 for cell in cells)
    assert [row.cells[0] for row in rows if row.apart] == ["EBRank (exposure)", "auto"]
    assert [row.cells[0] for row in rows if row.focus] == ["EBRank"]


def test_published_figures_stand_beside_ours() -> None:
    table = headline_table(headline(standings(table2(), DATA)), "paper")
    beside = [Column(title, measure) for measure in TITLES[:3] for title in ("ours", "paper")]
    assert table.columns == (Column("ranker"), *beside, Column("Run-NDCG"))
    by_name = {row.cells[0]: row.cells for row in table.rows}
    assert [by_name["EBRank"][place] for place in (2, 4, 6)] == [
        Cell(0.6),
        Cell(0.8),
        Cell(171.3, digits=1),
    ]
    assert by_name["UCBRank"][2] == Cell(None)
    assert by_name["EBRank (exposure)"][2] == Cell(None), "the paper has no such row"
