"""Findings by theme: none lost, none twice, and those without a theme are there too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ebrank.experiments.framework.outcome import VERDICTS, Finding
from ebrank.report.ledger import OTHER, tally, themes

WORDS = st.sampled_from(["", "a", "b", "c"])
FINDINGS = st.lists(
    st.builds(Finding, WORDS, st.just("claim"), st.sampled_from(VERDICTS), WORDS, WORDS, WORDS)
)


@given(FINDINGS)
def test_every_finding_appears_once_and_in_order(findings: list[Finding]) -> None:
    by_theme = themes(findings)
    assert len({theme.title for theme in by_theme}) == len(by_theme)
    assert sorted(map(id, findings)) == sorted(
        id(one) for theme in by_theme for one in theme.findings
    )
    for theme in by_theme:
        places = [next(i for i, f in enumerate(findings) if f is one) for one in theme.findings]
        assert places == sorted(places)
        assert sum(len(theme.subjects(verdict)) for verdict in VERDICTS) == len(theme.findings)


def test_a_finding_without_theme_or_subject_speaks_for_itself() -> None:
    (theme,) = themes([Finding("x", "it holds", "contradicted", "")])
    assert (theme.title, theme.subjects("contradicted")) == (OTHER, ["it holds"])
    assert tally(theme.findings) == "1 contradicted"
