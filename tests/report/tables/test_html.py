"""Tables in a page: groups, marks and deviations, and names that are no markup."""

from __future__ import annotations

from ebrank.experiments.framework.outcome import Cell, Column, Row, Table
from ebrank.report.tables.html import html
from tests.report.sample import NASTY, PERFORMANCE


def test_groups_of_columns_and_rows_have_headings() -> None:
    written = html(PERFORMANCE, "t")
    assert '<th scope="colgroup" colspan="3" class="group">MQ2007</th>' in written
    assert written.count('<tr class="heading">') == 2
    assert '<tr class="apart"><th scope="row">Oracle</th><td class="number">–' in written
    assert written.count('class="number best"') == 12
    assert '<sup style="min-width: 2ch">*†</sup>' in written


def test_names_are_no_markup_and_long_texts_may_be_wrapped() -> None:
    row = Row((NASTY, NASTY, Cell(0.5)), NASTY)
    written = html(Table("t", NASTY, "", (Column(NASTY), Column("x"), Column("y")), (row,)), "t")
    assert "<script>" not in written
    assert written.count("&lt;script&gt;") == 5
    assert '<td class="long">' in written
