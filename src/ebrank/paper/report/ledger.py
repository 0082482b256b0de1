"""The ledger as `LEDGER.md`: published figures, ours, and the differences; findings by theme.

>>> theme, = themes([Finding("a", "A leads", "confirmed", "", "Leads", "A"),
...                Finding("b", "B leads", "undecided", "", "Leads", "B")])
>>> theme.title, tally(theme.findings), theme.subjects("undecided")
('Leads', '1 confirmed, 1 undecided', ['B'])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ebrank.paper.document import Document
from ebrank.paper.framework.display import VERDICTS, Column, Finding, Row, Table, Verdict
from ebrank.paper.framework.numbers import counted
from ebrank.paper.ledger import RULE
from ebrank.paper.report.tables import code, escaped, grid, prose

SYMBOLS: dict[Verdict, str] = {"confirmed": "✓", "undecided": "○", "contradicted": "✗"}
HOW = (
    "A claim is confirmed or contradicted where Fisher's randomization test over test queries "
    "decides it (Holm-adjusted p < .05), else undecided. Brackets are the interval of the effect, "
    "over test queries, at the level of that test: 95 % where a claim is tested alone."
)
"""How to read findings."""


def ledger_markdown(document: Document) -> str:
    """Return `LEDGER.md`."""
    trials = counted(document.trials, "trial")
    lines = [
        "# Ledger",
        "",
        f"Made by {code(document.command)}: {trials}, seed {document.seed}. {escaped(RULE)}",
        "",
        f"## {escaped(document.name)}",
    ]
    for section in document.ledger:
        lines += ["", f"### {escaped(section.title)}"]
        if section.note:
            lines += ["", prose(section.note)]
        if section.table is not None:
            lines += ["", grid(section.table)]
        if section.findings:
            lines += ["", f"**{tally(section.findings)}.** {escaped(HOW)}"]
            lines += ["", grid(findings_table(section.findings))]
    return "\n".join([*lines, ""])


def findings_table(findings: Sequence[Finding]) -> Table:
    """Return findings as a table: a row for each claim, theme by theme."""
    columns = tuple(map(Column, ("claim", "verdict", "effect", "in", "decided by")))
    rows = []
    for theme in themes(findings):
        heading = f"{theme.title}: {tally(theme.findings)}"
        for finding in theme.findings:
            effect = finding.effect
            shown = ("–", "") if effect is None else (str(effect), effect.unit)
            verdict = f"{SYMBOLS[finding.verdict]} {finding.verdict}"
            rows.append(Row((finding.claim, verdict, *shown, finding.detail), heading))
    return Table("findings", "Findings", HOW, columns, tuple(rows))


class Theme(NamedTuple):
    """Findings that check the same thing, each for another subject."""

    title: str
    findings: Sequence[Finding]

    def subjects(self, verdict: Verdict) -> list[str]:
        """Return the subjects with this verdict."""
        return [finding.subject for finding in self.findings if finding.verdict == verdict]


def themes(findings: Sequence[Finding]) -> list[Theme]:
    """Return findings by theme, in the order they come."""
    titles = dict.fromkeys(finding.theme for finding in findings)
    return [
        Theme(title, [finding for finding in findings if finding.theme == title])
        for title in titles
    ]


def tally(findings: Sequence[Finding]) -> str:
    """Return how many are confirmed, undecided and contradicted."""
    verdicts = [finding.verdict for finding in findings]
    counts = {verdict: verdicts.count(verdict) for verdict in VERDICTS}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
