"""LaTeX: balanced, complete lines; no name is a command."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ebrank.experiments.framework.outcome import Cell, Column, Row, Table
from ebrank.report.tables.latex import escaped, latex
from tests.report.sample import NASTY, PERFORMANCE

OURS = {
    *("begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule"),
    *("multicolumn", "cmidrule", "emph", "textbf", "textit", "scriptsize", "pm", "dagger"),
}
TEXT = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=30)


def body(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.endswith(r"\\")]


def columns(line: str) -> int:
    """Count columns as TeX does."""
    spanned = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line))
    return len(re.findall(r"(?<!\\)&", line)) + 1 + spanned


def test_every_line_has_all_columns() -> None:
    text = latex(PERFORMANCE)
    assert r"\begin{tabular}{lrrrrrr}" in text
    assert {columns(line) for line in body(text)} == {7}
    assert r"\cmidrule(lr){2-4}\cmidrule(lr){5-7}" in text
    assert text.count(r"\midrule") == 2


def test_best_marks_deviations_and_rows_apart() -> None:
    text = latex(PERFORMANCE)
    assert r"\textbf{171.3}$^{*\dagger}$ {\scriptsize $\pm$ 10.2}" in text
    assert r"\textit{Oracle} & --" in text
    assert r"\emph{W/o-Behav}" in text


@given(TEXT)
def test_a_text_has_no_command_no_group_and_no_row_of_its_own(text: str) -> None:
    safe = escaped(text)
    allowed = r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}"
    rest = re.sub(allowed, "", safe)
    rest = re.sub(r"\\[{}$&#%_]|\{[\[\]*]\}", "", rest)
    assert not set(rest) & set("\\{}$&#%_~^*[]")


def test_a_name_that_tries_does_not_get_out() -> None:
    row = Row((NASTY, Cell(1.0)), NASTY)
    table = Table(NASTY, NASTY, NASTY, (Column(NASTY), Column("x", NASTY)), (row,))
    text = latex(table)
    commands = set(re.findall(r"\\([a-zA-Z]+)", text))
    assert {name for name in commands if not name.startswith("text")} <= OURS
    assert text.count(r"\begin") == text.count(r"\end") == 2
    assert {columns(line) for line in body(text)} == {2}
    (label,) = re.findall(r"\\label\{(.*)\}", text)
    assert re.fullmatch("tab:[a-zA-Z0-9-]+", label)


def test_no_row_begins_with_what_a_line_break_takes() -> None:
    for name in ("*", "[2em]"):
        rows = (Row((name, "x")),) * 2
        text = latex(Table("t", "t", "", (Column("a"), Column("b")), rows))
        assert not re.search(r"\\\\\s*[*\[]", text)
