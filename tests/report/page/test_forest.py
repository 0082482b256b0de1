"""The forest plot: every claim on its theme's scale, and what decides it where it must be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.experiments.framework.outcome import Effect, Finding
from ebrank.report.page.forest import forest
from tests.report.sample import NASTY, dataset

SHARES = st.floats(-1, 1).map(lambda share: round(share, 4))


def test_findings_are_counted_by_theme() -> None:
    found = forest(dataset(), 5)
    assert found.tally == "1 confirmed, 1 undecided, 1 contradicted"
    assert [(theme.title, theme.tally) for theme in found.themes] == [
        ("Someone is first", "1 confirmed, 1 undecided"),
        (NASTY, "1 contradicted"),
    ]


def test_a_small_run_is_called_small() -> None:
    data = dataset()
    assert forest(data, 5).caution == forest(replace(data, test_queries=300), 5).caution == ""
    assert forest(replace(data, test_queries=30), 5).caution.startswith("30 test queries, 5 tri")


def test_effects_of_one_theme_share_a_scale() -> None:
    """−.25 of .5 is −50 %, +.15 is +30 %: the ends of the plot."""
    theme, other = forest(dataset(), 5).themes
    first, second = (claim.bar for claim in theme.claims)
    assert first is not None
    assert second is not None
    assert (second.low, first.high) == (4.0, 96.0)
    zero = 4 + 92 * 50 / 80
    assert first.border == pytest.approx(zero)
    assert second.border == pytest.approx(zero - 92 * 4 / 80)
    assert [tick.label for tick in theme.ticks] == ["−50 %", "0", "+20 %"]
    assert other.claims[0].bar is None


@given(st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=1, max_size=5))
def test_everything_is_drawn_inside_and_in_order(ends: list[tuple[float, float, float]]) -> None:
    findings = []
    for low, value, high in map(sorted, ends):
        effect = Effect(value, low, high, "Cum-NDCG", whole=2.0)
        findings.append(Finding("x", "claim", "undecided", "", "theme", effect=effect))
    (theme,) = forest(replace(dataset(), findings=tuple(findings)), 5).themes
    for claim in theme.claims:
        assert claim.bar is not None
        assert claim.bar.low is not None
        assert claim.bar.high is not None
        assert 4 <= claim.bar.low <= claim.bar.value <= claim.bar.high <= 96
    assert all(4 <= tick.place <= 96 for tick in theme.ticks)
    assert "0" in [tick.label for tick in theme.ticks]
