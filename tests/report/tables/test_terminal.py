"""Tables on a terminal: aligned, in color if asked for, never wider than it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from ebrank.experiments.framework.outcome import Cell, Column, Row, Table
from ebrank.report.tables.terminal import text
from tests.report.sample import PERFORMANCE


def one_dataset() -> Table:
    rows = tuple(replace(row, cells=row.cells[:4]) for row in PERFORMANCE.rows)
    return replace(PERFORMANCE, columns=PERFORMANCE.columns[:4], rows=rows)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(cell_len, text(PERFORMANCE, width=width).splitlines())) <= width


def test_points_marks_and_deviations_align() -> None:
    lines = text(one_dataset(), width=80).splitlines()
    (bm25,) = (line for line in lines if "BM25" in line)
    (ebrank,) = (line for line in lines if "EBRank" in line)
    assert bm25.index(".474") + len(".474") == ebrank.index("171.3") + len("171.3")
    assert bm25.index("±") == ebrank.index("±")
    assert "171.3*† ± 10.2" in ebrank


def test_wide_tables_come_in_pieces_with_whole_groups_and_the_names_repeated() -> None:
    printed = text(PERFORMANCE, width=80)
    first, second = printed.split("MSLR")
    assert "MQ2007" in first
    assert "MQ2007" not in second
    assert printed.count("EBRank") == 2
    assert printed.count("Best in bold.") == 1
    assert text(PERFORMANCE, width=200).count("EBRank") == 1


def test_long_texts_are_folded_not_cut() -> None:
    remark = "a remark that goes on " * 8 + "end"
    table = Table("t", "t", "", (Column("x"), Column("remark")), (Row((Cell(0.5), remark)),))
    printed = text(table, width=60)
    assert max(map(len, printed.splitlines())) <= 60
    assert printed.split().count("remark") == 8 + 1
    assert printed.split()[-1] == "end"


def test_words_of_names_are_never_broken() -> None:
    name = "ebrank:epsilon=5,examination=learned,learn_from=all"
    columns = (Column("ranker"), *(Column(f"NDCG{n}") for n in range(4)))
    table = Table("t", "t", "", columns, (Row((name, *[Cell(0.5, 0.1, marks=" a")] * 4)),))
    printed = text(table, width=80)
    wrapped = ["ebrank:epsilon=5,", "  examination=learned,", "  learn_from=all"]
    assert all(printed.count(line) == printed.count("ranker") > 1 for line in wrapped)
    assert max(map(len, printed.splitlines())) <= 80


def test_names_are_never_lost_beside_many_numbers() -> None:
    columns = (Column("ranker"), *(Column(f"weight of x{n}", "weights") for n in range(12)))
    rows = (Row(("EBRank (exposure)", *[Cell(0.5, sd=0.1)] * 12)),)
    printed = text(Table("t", "t", "", columns, rows), width=80)
    assert printed.count("EBRank (exposure)") == printed.count("ranker") > 1
    assert printed.count(".500 ± .100") == 12
    assert all(f"x{n}" in printed.split() for n in range(12))


def test_color_only_where_asked_for() -> None:
    assert "\x1b" not in text(PERFORMANCE, width=80)
    colored = text(PERFORMANCE, width=80, color=True)
    assert "\x1b[1;32m" in colored  # bold and green: the best
    assert "\x1b[2m" in colored  # dim: deviations, and rows set apart


def test_markup_in_names_is_text() -> None:
    table = Table("t", "[red]t", "", (Column("[b]x"),), (Row(("[link=http://x]y[/]",)),))
    printed = text(table, width=80)
    assert "[red]t" in printed
    assert "[link=http://x]y[/]" in printed
