"""The ledger as tables and as `LEDGER.md`: their figures, ours, the differences, and remarks."""

from __future__ import annotations

from collections.abc import Sequence

from ebrank.experiments.document import Document
from ebrank.experiments.ledger import RULE, Entry, Section
from ebrank.experiments.outcome import Cell, Column, Finding, Row, Table
from ebrank.report.tables.markdown import escaped, grid, prose

HEADINGS = ("ranker", "figure", "reference", "ours", "difference", "remark")


def ledger_table(section: Section, name: str = "ledger") -> Table:
    """Return the entries of a section as a table."""
    columns = tuple(map(Column, HEADINGS))
    return Table(name, section.title, "", columns, tuple(map(_row, section.entries)))


def ledger_markdown(document: Document) -> str:
    """Return `LEDGER.md`: dataset by dataset, then what was not at hand."""
    lines = [
        "# Ledger",
        "",
        f"Made by `{document.command}`: {document.trials} trials, seed {document.seed}. {RULE}",
    ]
    for data in document.datasets:
        lines += ["", f"## {escaped(data.name)}", *_sections(data.ledger)]
    if document.missing:
        lines += ["", "## Not at hand", *_sections(document.missing)]
    return "\n".join([*lines, ""])


def _sections(sections: Sequence[Section]) -> list[str]:
    lines = []
    for section in sections:
        lines += ["", f"### {escaped(section.title)}"]
        if section.note:
            lines += ["", prose(section.note)]
        if section.entries:
            lines += ["", grid(ledger_table(section))]
        if section.findings:
            lines += ["", *map(_finding, section.findings)]
    return lines


def _row(entry: Entry) -> Row:
    cells = (
        entry.name,
        entry.figure,
        Cell(entry.reference, digits=entry.digits),
        Cell(entry.ours, sd=entry.sd, digits=entry.digits),
        Cell(entry.difference, digits=entry.digits),
        entry.remark,
    )
    return Row(cells, entry.group)


def _finding(finding: Finding) -> str:
    verdict = "holds" if finding.holds else "**does not hold**"
    return f"- {verdict}: {escaped(finding.claim)} ({escaped(finding.detail)})"
