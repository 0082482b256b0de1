"""Findings by theme: what the paper claims, and how much of it the test confirms.

>>> theme, = themes([Finding("a", "A leads", "confirmed", "", "Leads", "A"),
...                Finding("b", "B leads", "undecided", "", "Leads", "B")])
>>> theme.title, tally(theme.findings), theme.subjects("undecided")
('Leads', '1 confirmed, 1 undecided', ['B'])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ebrank.experiments.framework.outcome import VERDICTS, Effect, Finding, Verdict

OTHER = "Other claims"
"""The theme of findings that have none."""
SYMBOLS: dict[Verdict, str] = {"confirmed": "✓", "undecided": "○", "contradicted": "✗"}
HOW = (
    "A claim is confirmed or contradicted where Fisher's randomization test over test queries "
    "decides it (Holm-adjusted p < .05), else undecided. Brackets are the interval of the effect, "
    "over test queries, at the level of that test: 95 % where a claim is tested alone."
)
"""How to read findings."""


@dataclass(frozen=True)
class Theme:
    """Findings that check the same thing, each for another subject."""

    title: str
    findings: Sequence[Finding]

    def subjects(self, verdict: Verdict) -> list[str]:
        """Return the subjects with this verdict."""
        return [
            finding.subject or finding.claim
            for finding in self.findings
            if finding.verdict == verdict
        ]

    @property
    def range(self) -> tuple[float, float]:
        """The range of shares that the theme's intervals span, including 0."""
        effects = [finding.effect for finding in self.findings if finding.effect is not None]
        ends = [0.0, *(end for effect in effects for end in _ends(effect))]
        return min(ends), max(ends)


def themes(findings: Sequence[Finding]) -> list[Theme]:
    """Return findings by theme, in the order they come."""
    titles = dict.fromkeys(finding.theme for finding in findings)
    return [
        Theme(title or OTHER, [finding for finding in findings if finding.theme == title])
        for title in titles
    ]


def tally(findings: Sequence[Finding]) -> str:
    """Return how many are confirmed, undecided and contradicted."""
    verdicts = [finding.verdict for finding in findings]
    counts = {verdict: verdicts.count(verdict) for verdict in VERDICTS}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)


def _ends(effect: Effect) -> list[float]:
    values = (effect.value, effect.low, effect.high, effect.border)
    return [effect.relative(value) for value in values if value is not None]
