"""The ledger and its findings: every figure of every entry, claims by theme."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebrank.experiments.framework.outcome import Finding
from ebrank.report.ledger import (
    OTHER,
    ledger_markdown,
    tally,
    themes,
)
from ebrank.report.page.html import theme_scale
from tests.golden import check_golden
from tests.report.sample import FINDINGS, NASTY, document


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
