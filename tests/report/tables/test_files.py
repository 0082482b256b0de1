"""Tables as CSV, Markdown, LaTeX and HTML: complete, and no name is a command."""

from __future__ import annotations

import csv
import io
import re

from hypothesis import given
from hypothesis import strategies as st

from ebrank.experiments.framework.outcome import Cell, Column, Row, Table
from ebrank.report.tables.csv import comma_separated
from ebrank.report.tables.html import html
from ebrank.report.tables.latex import escaped as escaped_for_latex
from ebrank.report.tables.latex import latex
from ebrank.report.tables.markdown import code, escaped, grid, markdown, prose
from tests.report.sample import NASTY, PERFORMANCE

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
ASCII = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=30)
HOSTILE = Table(
    *(NASTY, NASTY, NASTY),
    (Column(NASTY), Column("x", NASTY), Column("y")),
    (Row((NASTY, NASTY, Cell(0.5)), NASTY),),
)


def table(*texts: str | Cell) -> Table:
    return Table("t", "t", "", tuple(map(Column, "abc"[: len(texts)])), (Row(texts),) * 2)


# --- CSV -----------------------------------------------------------------------------------------


def read(shown: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(comma_separated(shown))))


def test_numbers_are_whole_and_deviations_have_columns() -> None:
    rows = read(PERFORMANCE)
    assert (rows[1]["MQ2007 Warm"], rows[1]["MQ2007 Warm sd"]) == ("0.5", "0.1234")
    assert (rows[2]["MSLR Cum marks"], rows[3]["MSLR Cum"]) == ("*†", "")
    assert [row["group"] for row in rows] == ["W/o-Behav"] * 2 + ["W/-Behav"] * 2
    assert float(read(table(Cell(1 / 3, digits=1)))[0]["a"]) == 1 / 3, "all digits survive"


def test_any_text_is_a_cell_of_csv() -> None:
    text = f'{NASTY},"\n;'
    assert read(table(text))[0] == {"a": text}
    assert NASTY in read(HOSTILE)[0]


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


def test_groups_bold_marks_and_deviations_in_markdown() -> None:
    lines = grid(PERFORMANCE).split("\n")
    assert cells(lines[0])[:3] == ["ranker", "MQ2007 Cold", "MQ2007 Warm"]
    assert lines[1] == "|---" + "|---:" * 6 + "|"
    assert cells(lines[2])[0] == "**W/o-Behav**"
    assert cells(lines[3])[:2] == ["BM25", ".474 ± .004"]
    assert cells(lines[6])[1] == "**171.3**\\*† ± 10.2"
    assert cells(lines[7])[:2] == ["*Oracle*", "–"]
    assert all(len(cells(line)) == 7 for line in lines)
    assert ".500<sup>ab</sup>" in markdown(table(Cell(0.5, marks="ab"))), "letters are raised"


def test_code_is_not_escaped_and_all_else_is() -> None:
    assert prose("a*b `c*d`") == r"a\*b `c*d`"
    assert prose("one ` alone *") == r"one \` alone \*"
    assert code(NASTY).startswith("`` <script>")


# --- LaTeX ---------------------------------------------------------------------------------------

COMMANDS = {
    *("begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule"),
    *("multicolumn", "cmidrule", "emph", "textbf", "textit", "scriptsize", "pm", "dagger"),
}


def columns(text: str) -> set[int]:
    """Return how many columns the lines of a table have, as TeX counts them."""
    lines = [line for line in text.split("\n") if line.endswith(r"\\")]
    spans = [[int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line)] for line in lines]
    pairs = zip(lines, spans, strict=True)
    return {len(re.findall(r"(?<!\\)&", line)) + 1 + sum(own) for line, own in pairs}


def test_every_line_of_latex_has_all_columns() -> None:
    text = latex(PERFORMANCE)
    assert columns(text) == {7}
    assert text.count(r"\midrule") == 2
    for part in (
        r"\begin{tabular}{lrrrrrr}",
        r"\cmidrule(lr){2-4}\cmidrule(lr){5-7}",
        r"\textbf{171.3}$^{*\dagger}$ {\scriptsize $\pm$ 10.2}",
        r"\textit{Oracle} & --",
        r"\emph{W/o-Behav}",
    ):
        assert part in text


@given(ASCII)
def test_a_text_has_no_command_no_group_and_no_row_of_its_own(text: str) -> None:
    safe = escaped_for_latex(text)
    allowed = r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}"
    rest = re.sub(allowed, "", safe)
    rest = re.sub(r"\\[{}$&#%_]|\{[\[\]*]\}", "", rest)
    assert not set(rest) & set("\\{}$&#%_~^*[]")


def test_a_name_that_tries_does_not_get_out_of_latex() -> None:
    text = latex(HOSTILE)
    commands = set(re.findall(r"\\([a-zA-Z]+)", text))
    assert {name for name in commands if not name.startswith("text")} <= COMMANDS
    assert text.count(r"\begin") == text.count(r"\end") == 2
    assert columns(text) == {3}
    (label,) = re.findall(r"\\label\{(.*)\}", text)
    assert re.fullmatch("tab:[a-zA-Z0-9-]+", label)
    for name in ("*", "[2em]"):  # what a line break would take for its argument
        assert not re.search(r"\\\\\s*[*\[]", latex(table(name, "x")))


# --- HTML ----------------------------------------------------------------------------------------


def test_groups_of_columns_and_rows_have_headings_in_html() -> None:
    written = html(PERFORMANCE, "t")
    assert '<th scope="colgroup" colspan="3" class="group">MQ2007</th>' in written
    assert written.count('<tr class="heading">') == 2
    assert '<tr class="apart"><th scope="row">Oracle</th><td class="number">–' in written
    assert written.count('class="number best"') == 12
    assert '<sup style="min-width: 2ch">*†</sup>' in written


def test_names_are_no_html_and_long_texts_may_be_wrapped() -> None:
    written = html(HOSTILE, "t")
    assert "<script>" not in written
    assert written.count("&lt;script&gt;") == 6
    assert '<td class="long">' in written
