"""The ledger and its findings: every figure of every entry, claims by theme."""

from __future__ import annotations

from pathlib import Path

from ebrank.paper.framework.outcome import Finding
from ebrank.paper.report.ledger import (
    OTHER,
    ledger_markdown,
    tally,
    themes,
)
from tests.golden import check_golden
from tests.paper.report.sample import NASTY, document


def test_the_file_tells_all() -> None:
    check_golden(Path(__file__).parent / "golden" / "LEDGER.md", ledger_markdown(document()))
    assert "1 trial, seed 1" in ledger_markdown(document(trials=1))


def test_names_are_no_markup() -> None:
    text = ledger_markdown(document(command="ebrank reproduce"))
    assert NASTY not in text
    assert "<script>" not in text


def test_a_finding_without_theme_or_subject_speaks_for_itself() -> None:
    (theme,) = themes([Finding("x", "it holds", "contradicted", "")])
    assert (theme.title, theme.subjects("contradicted")) == (OTHER, ["it holds"])
    assert tally(theme.findings) == "1 contradicted"
