"""The ledger as tables and as `LEDGER.md`: published figures, ours, and the differences.

Findings stand by theme: what the paper claims, and how much of it the test confirms.

>>> theme, = themes([Finding("a", "A leads", "confirmed", "", "Leads", "A"),
...                Finding("b", "B leads", "undecided", "", "Leads", "B")])
>>> theme.title, tally(theme.findings), theme.subjects("undecided")
('Leads', '1 confirmed, 1 undecided', ['B'])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ebrank.paper.document import Document
from ebrank.paper.framework.numbers import counted
from ebrank.paper.framework.outcome import (
    VERDICTS,
    Cell,
    Column,
    Finding,
    Row,
    Table,
    Verdict,
)
from ebrank.paper.ledger import MARK, RULE, LedgerEntry, LedgerSection
from ebrank.paper.report.tables.markdown import code, escaped, grid, prose

OTHER = "Other claims"
"""The theme of findings that have none."""
SYMBOLS: dict[Verdict, str] = {"confirmed": "✓", "undecided": "○", "contradicted": "✗"}
HOW = (
    "A claim is confirmed or contradicted where Fisher's randomization test over test queries "
    "decides it (Holm-adjusted p < .05), else undecided. Brackets are the interval of the effect, "
    "over test queries, at the level of that test: 95 % where a claim is tested alone."
)
"""How to read findings."""
COMPARED = ("reference", "ours", "difference")


def ledger_table(section: LedgerSection) -> Table:
    """Return the entries of a section as a table: a row for each ranker, with all its figures.

    If there is only one name, its figures are below each other.
    """
    figures = tuple(dict.fromkeys(entry.figure for entry in section.entries))
    names = dict.fromkeys((entry.group, entry.name) for entry in section.entries)
    if len(names) == 1:
        columns = (Column("figure"), *map(Column, COMPARED))
        rows = [Row((entry.figure, *_compared(entry))) for entry in section.entries]
    else:
        beside = (Column(title, figure) for figure in figures for title in COMPARED)
        columns = (Column("ranker"), *beside)
        by_name = {(entry.group, entry.name, entry.figure): entry for entry in section.entries}
        rows = []
        for group, name in names:
            entries = [by_name.get((group, name, figure)) for figure in figures]
            cells = (cell for entry in entries for cell in _compared(entry))
            rows.append(Row((name, *cells), group))
    return Table("ledger", section.title, "", columns, tuple(rows))


def _compared(entry: LedgerEntry | None) -> list[Cell]:
    """Return their figure, ours, and the difference, marked if it is beyond the spread."""
    if entry is None:
        return [Cell(None)] * len(COMPARED)
    mark = MARK if entry.beyond_the_spread else ""
    return [
        Cell(entry.reference, sd=entry.reference_sd, digits=entry.digits),
        Cell(entry.ours, sd=entry.sd, digits=entry.digits),
        Cell(entry.difference, digits=entry.digits, marks=mark, signed=True),
    ]


def ledger_markdown(document: Document) -> str:
    """Return `LEDGER.md`, dataset by dataset."""
    trials = counted(document.trials, "trial")
    lines = [
        "# Ledger",
        "",
        f"Made by {code(document.command)}: {trials}, seed {document.seed}. {escaped(RULE)}",
    ]
    for data in document.datasets:
        lines += ["", f"## {escaped(data.name)}", *_sections(data.ledger)]
    return "\n".join([*lines, ""])


def _sections(sections: Sequence[LedgerSection]) -> list[str]:
    lines = []
    for section in sections:
        lines += ["", f"### {escaped(section.title)}"]
        if section.note:
            lines += ["", prose(section.note)]
        if section.entries:
            lines += ["", grid(ledger_table(section))]
        if section.findings:
            lines += ["", f"**{tally(section.findings)}.** {escaped(HOW)}"]
            lines += ["", grid(findings_table(section.findings))]
    return lines


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
