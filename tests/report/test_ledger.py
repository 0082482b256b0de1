"""The ledger and its findings: every figure of every entry, remarks by letter, claims by theme."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.experiments.framework.outcome import VERDICTS, Cell, Effect, Finding
from ebrank.experiments.ledger.entries import LedgerEntry, LedgerSection
from ebrank.report.ledger import (
    OTHER,
    Theme,
    ledger_markdown,
    ledger_table,
    remarks,
    tally,
    themes,
)
from ebrank.report.page.plots import theme_scale
from tests.golden import check_golden
from tests.report.sample import FINDINGS, LEDGER, NASTY, document

TABLE2 = LEDGER[1]
WORDS = st.sampled_from(["", "a", "b", "c"])
SOME = st.lists(
    st.builds(Finding, WORDS, st.just("claim"), st.sampled_from(VERDICTS), WORDS, WORDS, WORDS)
)
SHARES = st.floats(-1, 1).map(lambda share: round(share, 4))


def test_a_row_for_each_ranker_with_all_its_figures() -> None:
    ebrank, nasty = (row.cells for row in ledger_table(TABLE2).rows)
    assert ebrank[1:4] == (Cell(0.849), Cell(0.852, sd=0.004), Cell(0.852 - 0.849, signed=True))
    assert nasty[4:] == (Cell(None),) * 3, "it has no such figure"
    entries = tuple(LedgerEntry(name, "x^b", 0.5, 0.4, reference_sd=0.1) for name in "ab")
    assert ledger_table(LedgerSection("", entries=entries)).rows[0].cells[1] == Cell(0.5, sd=0.1)


def test_the_file_tells_all() -> None:
    check_golden(Path(__file__).parent / "golden" / "LEDGER.md", ledger_markdown(document()))
    assert "1 trial, seed 1" in ledger_markdown(document(trials=1))


def test_a_remark_stands_once() -> None:
    same = tuple(LedgerEntry(str(number), "Warm", 1.0, 2.0, remark="odd") for number in range(30))
    assert remarks(LedgerSection("", entries=same)) == {"odd": "a"}


def test_names_are_no_markup() -> None:
    text = ledger_markdown(document(command="ebrank reproduce", missing=()))
    assert NASTY not in text
    assert "<script>" not in text


@given(SOME)
def test_every_finding_appears_once_and_in_order(findings: list[Finding]) -> None:
    by_theme = themes(findings)
    assert len({theme.title for theme in by_theme}) == len(by_theme)
    shown = [id(finding) for theme in by_theme for finding in theme.findings]
    order = [id(finding) for finding in findings]
    assert sorted(shown) == sorted(order)
    for theme in by_theme:
        places = [order.index(id(finding)) for finding in theme.findings]
        assert places == sorted(places)
        assert sum(len(theme.subjects(verdict)) for verdict in VERDICTS) == len(theme.findings)


def test_a_finding_without_theme_or_subject_speaks_for_itself() -> None:
    (theme,) = themes([Finding("x", "it holds", "contradicted", "")])
    assert (theme.title, theme.subjects("contradicted")) == (OTHER, ["it holds"])
    assert tally(theme.findings) == "1 contradicted"


# --- the page's plots ----------------------------------------------------------------------------


def test_effects_of_one_theme_share_a_scale() -> None:
    """−.25 of .5 is −50 %, +.15 is +30 %: the ends of the plot."""
    theme, without = themes(FINDINGS)
    scale = theme_scale(theme)
    assert (scale.low, scale.high) == pytest.approx((-0.5, 0.3))
    assert (scale.place(-0.5), scale.place(0.3)) == (5.0, 95.0)
    assert scale.place(0.0) == pytest.approx(5 + 90 * 50 / 80)
    assert [label for _, label in scale.ticks()] == ["−50 %", "0", "+20 %"]
    assert theme_scale(without).ticks() == [(50.0, "0")]


@given(st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=1, max_size=5))
def test_everything_is_drawn_inside_and_in_order(ends: list[tuple[float, float, float]]) -> None:
    triples = [sorted(each) for each in ends]
    findings = [
        Finding("x", "", "undecided", "", effect=Effect(value, low, high, "Cum-NDCG", whole=2.0))
        for low, value, high in triples
    ]
    scale = theme_scale(Theme("theme", findings))
    for triple in triples:
        places = [scale.place(end / 2) for end in triple]
        assert places == sorted(places)
        assert 5 <= places[0] <= places[-1] <= 95
    ticks = dict(scale.ticks())
    assert all(5 <= place <= 95 for place in ticks)
    assert "0" in ticks.values()
