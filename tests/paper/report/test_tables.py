"""Tables as CSV, Markdown and for a terminal: complete, and no name is a command.

`golden/` has two tables.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ebrank.paper.framework.display import Cell, Column, Row, Table
from ebrank.paper.report.tables import (
    code,
    comma_separated,
    escaped,
    grid,
    markdown,
    prose,
    terminal,
)
from tests.golden import check_golden
from tests.paper.report.sample import HOSTILE, NASTY, PERFORMANCE

GOLDEN = Path(__file__).parent / "golden"
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


def table(*texts: str | Cell) -> Table:
    return Table("t", "t", "", tuple(map(Column, "abc"[: len(texts)])), (Row(texts),) * 2)


def test_groups_bold_marks_and_deviations() -> None:
    check_golden(GOLDEN / "performance.md", markdown(PERFORMANCE))
    check_golden(GOLDEN / "performance.80.txt", terminal(PERFORMANCE, width=80))
    check_golden(GOLDEN / "hostile.md", markdown(HOSTILE))
    assert "\x1b[" in terminal(PERFORMANCE, width=200, color=True)


def test_any_text_and_all_digits_survive_in_csv() -> None:
    odd = f'{NASTY},"\n;'
    for cell, kept in ((odd, odd), (Cell(1 / 3, digits=1), str(1 / 3))):
        rows = list(csv.DictReader(io.StringIO(comma_separated(table(cell)))))
        assert rows[0] == {"a": kept}


def cells(line: str) -> list[str]:
    """Split a line where a Markdown reader would: at bars that are not escaped."""
    return [cell.strip() for cell in re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]]


@given(TEXT, TEXT)
def test_any_text_stays_in_its_cell_without_markup(text: str, other: str) -> None:
    line = grid(table(text, other)).split("\n")[2]
    shown = [re.sub(r"\\(.)", r"\1", cell) for cell in cells(line)]
    assert shown == [" ".join(x.split()) for x in (text, other)]
    assert not re.search(r"(?<!\\)[<>*_`\[\]|&$]", re.sub(r"\\\\", "", escaped(text)))


def test_code_is_not_escaped_and_all_else_is() -> None:
    assert prose("a*b `c*d`") == r"a\*b `c*d`"
    assert prose("one ` alone *") == r"one \` alone \*"
    assert code(NASTY).startswith("`` <script>")
    assert ".500<sup>ab</sup>" in markdown(table(Cell(0.5, marks="ab"))), "letters are raised"


LONG = "words that go on and on " * 8
NAMES = [f"feature_{number}" for number in range(20)]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(
    ("columns", "row"),
    [
        # columns that do not fit follow below, with the names of rows repeated
        (("item", *NAMES), ("a long name of an item", *(f"0.{n:06}" for n in range(20)))),
        (("ranker", *(f"x{n}" for n in range(9))), ("EBRank (exposure)", *[Cell(0.5, 0.1)] * 9)),
        # words are whole beside long texts, which are folded, not cut
        (("parameter", "default", "takes"), ("min_impressions", "marginal_certainty", LONG)),
        (("x", "remark"), (Cell(0.5), f"{LONG}end")),
        # markup is text
        (("[b]x",), ("[link=http://x]y[/]",)),
    ],
)
def test_every_word_is_printed_and_no_line_is_wider_than_the_terminal(
    width: int, columns: tuple[str, ...], row: tuple[str | Cell, ...]
) -> None:
    printed = terminal(Table("t", "", "", tuple(map(Column, columns)), (Row(row),)), width=width)
    assert max(map(cell_len, printed.splitlines())) <= width
    written = [*columns, *map(str, row)]
    assert {word for text in written for word in text.split()} <= set(printed.split())
    if isinstance(row[0], str):
        headings = [line for line in printed.splitlines() if line.split()[:1] == [columns[0]]]
        assert printed.count(row[0]) == len(headings), "each piece has the names of rows"


def test_very_long_names_and_narrow_terminals_lose_no_number() -> None:
    name = "ebrank:epsilon=5,examination=learned,learn_from=all"
    columns = (Column("ranker"), *(Column(f"NDCG{n}") for n in range(4)))
    shown = Table("t", "t", "", columns, (Row((name, *[Cell(0.5, 0.1, marks=" a")] * 4)),))
    printed = terminal(shown, width=80)
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.count(".500 a ± .100") == 4
    wrapped = ["ebrank:epsilon=5,", "  examination=learned,", "  learn_from=all"]
    assert all(printed.count(line) == printed.count("ranker") for line in wrapped)
    assert "171.3" in terminal(PERFORMANCE, width=10)
