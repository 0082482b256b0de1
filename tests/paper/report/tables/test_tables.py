"""Tables as CSV, Markdown, LaTeX, HTML and for a terminal: complete, and no name is a command.

`golden/` has two tables in every form.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ebrank.paper.framework.outcome import Cell, Column, Row, Table
from ebrank.paper.report.tables import TABLE_FILES
from ebrank.paper.report.tables.csv import comma_separated
from ebrank.paper.report.tables.html import html
from ebrank.paper.report.tables.latex import escaped as escaped_for_latex
from ebrank.paper.report.tables.latex import latex
from ebrank.paper.report.tables.markdown import code, escaped, grid, markdown, prose
from ebrank.paper.report.tables.terminal import text
from tests.golden import check_golden
from tests.paper.report.sample import NASTY, PERFORMANCE

GOLDEN = Path(__file__).parent / "golden"
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
ASCII = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=30)
HOSTILE = Table(
    *(NASTY, NASTY, NASTY),
    (Column(NASTY), Column("x", NASTY), Column("y")),
    (Row((NASTY, NASTY, Cell(0.5)), NASTY),),
)


def table(*texts: str | Cell) -> Table:
    return Table("t", "t", "", tuple(map(Column, "abc"[: len(texts)])), (Row(texts),) * 2)


FORMS: dict[str, Callable[[Table], str]] = {
    **TABLE_FILES,
    "html": lambda shown: html(shown, "t"),
    "60.txt": lambda shown: text(shown, width=60),
    "80.txt": lambda shown: text(shown, width=80),
    "200.txt": lambda shown: text(shown, width=200, color=True),
}


@pytest.mark.parametrize("form", FORMS)
def test_groups_bold_marks_and_deviations(form: str) -> None:
    check_golden(GOLDEN / f"performance.{form}", FORMS[form](PERFORMANCE))
    if form in TABLE_FILES or form == "html":
        check_golden(GOLDEN / f"hostile.{form}", FORMS[form](HOSTILE))


# --- CSV -----------------------------------------------------------------------------------------


def read(shown: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(comma_separated(shown))))


def test_any_text_is_a_cell_of_csv() -> None:
    odd = f'{NASTY},"\n;'
    assert read(table(odd))[0] == {"a": odd}
    assert float(read(table(Cell(1 / 3, digits=1)))[0]["a"]) == 1 / 3, "all digits survive"


# --- Markdown ------------------------------------------------------------------------------------


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


# --- LaTeX ---------------------------------------------------------------------------------------

COMMANDS = {
    *("begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule"),
    *("multicolumn", "cmidrule", "emph", "textbf", "textit", "scriptsize", "pm", "dagger"),
}


@given(ASCII)
def test_a_text_has_no_command_no_group_and_no_row_of_its_own(text: str) -> None:
    safe = escaped_for_latex(text)
    allowed = r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}"
    rest = re.sub(allowed, "", safe)
    rest = re.sub(r"\\[{}$&#%_]|\{[\[\]*]\}", "", rest)
    assert not set(rest) & set("\\{}$&#%_~^*[]")


def test_a_name_that_tries_does_not_get_out_of_latex() -> None:
    written = latex(HOSTILE)
    commands = set(re.findall(r"\\([a-zA-Z]+)", written))
    assert {name for name in commands if not name.startswith("text")} <= COMMANDS
    assert written.count(r"\begin") == written.count(r"\end") == 2
    (label,) = re.findall(r"\\label\{(.*)\}", written)
    assert re.fullmatch("tab:[a-zA-Z0-9-]+", label)
    for name in ("*", "[2em]"):  # what a line break would take for its argument
        assert not re.search(r"\\\\\s*[*\[]", latex(table(name, "x")))


# --- terminal -------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(cell_len, text(PERFORMANCE, width=width).splitlines())) <= width


def test_a_terminal_may_be_too_narrow_for_the_headings_of_groups() -> None:
    assert "171.3" in text(PERFORMANCE, width=10)


def test_columns_of_texts_that_do_not_fit_follow_below() -> None:
    names = [f"feature_{number}" for number in range(20)]
    row = Row(("a long name of an item", *(f"0.{number:06}" for number in range(20))))
    printed = text(Table("t", "", "", tuple(map(Column, ("item", *names))), (row,)), width=80)
    assert max(map(len, printed.splitlines())) <= 80
    assert set(names) | set(map(str, row.cells[1:])) <= set(printed.split())


def test_words_are_whole_beside_long_texts() -> None:
    long = "words that go on and on " * 8
    row = Row(("min_impressions", "marginal_certainty", long, long))
    columns = tuple(map(Column, ("parameter", "default", "takes", "what it is")))
    printed = text(Table("t", "", "", columns, (row,)), width=80)
    assert max(map(len, printed.splitlines())) <= 80
    assert {"min_impressions", "marginal_certainty"} <= set(printed.split())


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


def test_a_long_name_is_followed_by_no_empty_line() -> None:
    names = ("weighted outcome lost on the way", "ebrank:epsilon=5,examination=learned:")
    columns = (Column("measure"), *map(Column, ("today", "auto")))
    rows = tuple(Row((name, *["0.8771 [0.5963, 1.158]"] * 2)) for name in names)
    printed = text(Table("t", "", "", columns, rows), width=80)
    assert len(printed.splitlines()) == 2 + 2 * len(names)
    assert "" not in printed.splitlines()


def test_names_are_never_lost_beside_many_numbers() -> None:
    columns = (Column("ranker"), *(Column(f"weight of x{n}", "weights") for n in range(12)))
    rows = (Row(("EBRank (exposure)", *[Cell(0.5, sd=0.1)] * 12)),)
    printed = text(Table("t", "t", "", columns, rows), width=80)
    assert printed.count("EBRank (exposure)") == printed.count("ranker") > 1
    assert printed.count(".500 ± .100") == 12
    assert all(f"x{n}" in printed.split() for n in range(12))


def test_markup_in_names_is_text() -> None:
    table = Table("t", "[red]t", "", (Column("[b]x"),), (Row(("[link=http://x]y[/]",)),))
    printed = text(table, width=80)
    assert "[red]t" in printed
    assert "[link=http://x]y[/]" in printed
