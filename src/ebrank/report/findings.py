"""Findings by theme: what the paper claims, and for whom it holds.

>>> theme, = themes([Finding("a", "A is first", True, "+.1", "First", "A"),
...                Finding("b", "B is first", False, "−.1", "First", "B")])
>>> theme.title, theme.count, theme.holds_for, theme.not_for
('First', '1 of 2', ['A'], ['B'])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ebrank.experiments.framework.outcome import Finding

OTHER = "Other claims"
"""The theme of findings that have none."""


@dataclass(frozen=True)
class Theme:
    """Findings that check the same thing, each for another subject."""

    title: str
    findings: Sequence[Finding]

    @property
    def holds_for(self) -> list[str]:
        """For whom it holds."""
        return [_subject(finding) for finding in self.findings if finding.holds]

    @property
    def not_for(self) -> list[str]:
        """For whom it does not."""
        return [_subject(finding) for finding in self.findings if not finding.holds]

    @property
    def count(self) -> str:
        """How many hold of how many."""
        return f"{len(self.holds_for)} of {len(self.findings)}"


def themes(findings: Sequence[Finding]) -> list[Theme]:
    """Return findings by theme, in the order they come."""
    titles = dict.fromkeys(finding.theme for finding in findings)
    return [
        Theme(title or OTHER, [finding for finding in findings if finding.theme == title])
        for title in titles
    ]


def _subject(finding: Finding) -> str:
    return finding.subject or finding.claim
