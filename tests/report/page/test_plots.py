"""The page's own plots: every effect on its theme's scale, inside, and in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.experiments.framework.outcome import Effect, Finding
from ebrank.report.ledger import Theme, tally, themes
from ebrank.report.page.plots import theme_scale
from tests.report.sample import NASTY, dataset

SHARES = st.floats(-1, 1).map(lambda share: round(share, 4))


def test_findings_are_counted_by_theme() -> None:
    findings = dataset().findings
    assert tally(findings) == "1 confirmed, 1 undecided, 1 contradicted"
    assert [(theme.title, tally(theme.findings)) for theme in themes(findings)] == [
        ("Someone is first", "1 confirmed, 1 undecided"),
        (NASTY, "1 contradicted"),
    ]


def test_effects_of_one_theme_share_a_scale() -> None:
    """−.25 of .5 is −50 %, +.15 is +30 %: the ends of the plot."""
    theme, without = themes(dataset().findings)
    scale = theme_scale(theme)
    assert (scale.low, scale.high) == pytest.approx((-0.5, 0.3))
    assert (scale.place(-0.5), scale.place(0.3)) == (5.0, 95.0)
    assert scale.place(0.0) == pytest.approx(5 + 90 * 50 / 80)
    assert [label for _, label in scale.ticks()] == ["−50 %", "0", "+20 %"]
    assert theme_scale(without).ticks() == [(50.0, "0")]


@given(st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=1, max_size=5))
def test_everything_is_drawn_inside_and_in_order(ends: list[tuple[float, float, float]]) -> None:
    effects = [
        Effect(value, low, high, "Cum-NDCG", whole=2.0) for low, value, high in map(sorted, ends)
    ]
    findings = [Finding("x", "", "undecided", "", effect=effect) for effect in effects]
    scale = theme_scale(Theme("theme", findings))
    for effect in effects:
        places = [
            scale.place(e / 2) for e in (effect.low, effect.value, effect.high) if e is not None
        ]
        assert places == sorted(places)
        assert 5 <= places[0] <= places[-1] <= 95
    ticks = dict(scale.ticks())
    assert all(5 <= place <= 95 for place in ticks)
    assert "0" in ticks.values()
