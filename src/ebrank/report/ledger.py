"""The ledger as tables and as `LEDGER.md`: their figures, ours, the differences, and remarks."""

from __future__ import annotations

from collections.abc import Sequence

from ebrank.experiments.document import Document
from ebrank.experiments.ledger import RULE, Entry, Section
from ebrank.experiments.outcome import Cell, Column, Finding, Row, Table
from ebrank.report.tables.markdown import escaped, grid, prose

COMPARED = ("reference", "ours", "difference")


def ledger_table(section: Section, name: str = "ledger") -> Table:
    """Return the entries of a section as a table: a row for each ranker, with all its figures.

    Where there is one name only, its figures stand below each other.
    """
    figures = tuple(dict.fromkeys(entry.figure for entry in section.entries))
    names = dict.fromkeys((entry.group, entry.name) for entry in section.entries)
    remark = Column("remark")
    if len(names) == 1:
        columns = (Column("figure"), *map(Column, COMPARED), remark)
        rows = [Row((one.figure, *_compared(one), one.remark)) for one in section.entries]
    else:
        beside = (Column(title, figure) for figure in figures for title in COMPARED)
        columns = (Column("ranker"), *beside, remark)
        rows = [_row(section, group, whose, figures) for group, whose in names]
    return Table(name, section.title, "", columns, tuple(rows))


def _row(section: Section, group: str, name: str, figures: Sequence[str]) -> Row:
    entries = {
        entry.figure: entry
        for entry in section.entries
        if (entry.group, entry.name) == (group, name)
    }
    cells: list[Cell | str] = [name]
    for figure in figures:
        cells += _compared(entries[figure]) if figure in entries else [Cell(None)] * len(COMPARED)
    return Row((*cells, _remarks(list(entries.values()))), group)


def _compared(entry: Entry) -> list[Cell]:
    return [
        Cell(entry.reference, digits=entry.digits),
        Cell(entry.ours, sd=entry.sd, digits=entry.digits),
        Cell(entry.difference, digits=entry.digits),
    ]


def _remarks(entries: Sequence[Entry]) -> str:
    """Return the remarks on a ranker's figures, each once, with the figures it is about.

    >>> _remarks([Entry("a", "Warm", 1.0, 2.0, remark="odd"), Entry("a", "Cum", 1.0, 1.0)])
    'Warm: odd'
    """
    about: dict[str, list[str]] = {}
    for entry in entries:
        about.setdefault(entry.remark, []).append(entry.figure)
    if len(about) == 1:
        return next(iter(about))
    return ". ".join(f"{', '.join(whose)}: {remark}" for remark, whose in about.items() if remark)


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


def _finding(finding: Finding) -> str:
    verdict = "holds" if finding.holds else "**does not hold**"
    return f"- {verdict}: {escaped(finding.claim)} ({escaped(finding.detail)})"
