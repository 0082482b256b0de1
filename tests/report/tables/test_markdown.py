"""Markdown: what is in a cell means itself, and stays in its cell."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ebrank.experiments.framework.outcome import Cell, Column, Row, Table
from ebrank.report.tables.markdown import code, escaped, grid, markdown, prose
from tests.report.sample import NASTY, PERFORMANCE

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


def cells(line: str) -> list[str]:
    """Split a line where a Markdown reader would: at bars that are not escaped."""
    return [cell.strip() for cell in re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]]


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


@given(TEXT, TEXT)
def test_any_text_stays_in_its_cell(one: str, other: str) -> None:
    table = Table("t", "t", "", (Column("a"), Column("b")), (Row((one, other)),))
    line = grid(table).split("\n")[2]
    assert [unescaped(cell) for cell in cells(line)] == [" ".join(x.split()) for x in (one, other)]


@given(TEXT)
def test_no_html_and_no_markup_survives(text: str) -> None:
    assert not re.search(r"(?<!\\)[<>*_`\[\]|&$]", re.sub(r"\\\\", "", escaped(text)))


def test_groups_bold_marks_and_deviations() -> None:
    lines = grid(PERFORMANCE).split("\n")
    assert cells(lines[0])[:3] == ["ranker", "MQ2007 Cold", "MQ2007 Warm"]
    assert lines[1] == "|---" + "|---:" * 6 + "|"
    assert cells(lines[2])[0] == "**W/o-Behav**"
    assert cells(lines[3])[:2] == ["BM25", ".474 ± .004"]
    assert cells(lines[6])[1] == "**171.3**\\*† ± 10.2"
    assert cells(lines[7])[:2] == ["*Oracle*", "–"]
    assert all(len(cells(line)) == 7 for line in lines)


def test_letters_are_raised() -> None:
    table = replace(PERFORMANCE, columns=(Column("x"),), rows=(Row((Cell(0.5, marks="ab"),)),))
    assert ".500<sup>ab</sup>" in markdown(table)


def test_code_is_not_escaped_and_all_else_is() -> None:
    assert prose("a*b `c*d`") == r"a\*b `c*d`"
    assert prose("one ` alone *") == r"one \` alone \*"
    assert code(NASTY).startswith("`` <script>")
