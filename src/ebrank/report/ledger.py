"""The ledger as tables and as `LEDGER.md`: published figures, ours, the differences, and remarks.

Many differences share a remark. So each remark has a letter, which marks the differences it is
about, and is written below the table once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ebrank.evaluation.letters import letter
from ebrank.experiments.document import Document
from ebrank.experiments.framework.numbers import counted
from ebrank.experiments.framework.outcome import Cell, Column, Finding, Row, Table
from ebrank.experiments.ledger.entries import RULE, LedgerEntry, LedgerSection
from ebrank.report.findings import Theme, themes
from ebrank.report.tables.markdown import code, escaped, grid, prose

COMPARED = ("reference", "ours", "difference")


def remarks(section: LedgerSection) -> dict[str, str]:
    """Return the letter of each remark of a section.

    >>> remarks(LedgerSection("", entries=(LedgerEntry("a", "Warm", 1.0, 2.0, remark="odd"),)))
    {'odd': 'a'}
    """
    distinct = dict.fromkeys(entry.remark for entry in section.entries if entry.remark)
    return {remark: letter(index) for index, remark in enumerate(distinct)}


def ledger_table(section: LedgerSection) -> Table:
    """Return the entries of a section as a table: a row for each ranker, with all its figures.

    If there is only one name, its figures are below each other.
    """
    letters = remarks(section)
    figures = tuple(dict.fromkeys(entry.figure for entry in section.entries))
    names = dict.fromkeys((entry.group, entry.name) for entry in section.entries)
    if len(names) == 1:
        columns = (Column("figure"), *map(Column, COMPARED))
        rows = [Row((entry.figure, *_compared(entry, letters))) for entry in section.entries]
    else:
        beside = (Column(title, figure) for figure in figures for title in COMPARED)
        columns = (Column("ranker"), *beside)
        by_name = {(entry.group, entry.name, entry.figure): entry for entry in section.entries}
        rows = []
        for group, name in names:
            entries = [by_name.get((group, name, figure)) for figure in figures]
            cells = (cell for entry in entries for cell in _compared(entry, letters))
            rows.append(Row((name, *cells), group))
    return Table("ledger", section.title, "", columns, tuple(rows))


def _compared(entry: LedgerEntry | None, letters: Mapping[str, str]) -> list[Cell]:
    """Return their figure, ours, and the difference with the letter of its remark."""
    if entry is None:
        return [Cell(None)] * len(COMPARED)
    letter = letters.get(entry.remark, "")
    return [
        Cell(entry.reference, sd=entry.reference_sd, digits=entry.digits),
        Cell(entry.ours, sd=entry.sd, digits=entry.digits),
        Cell(entry.difference, digits=entry.digits, marks=letter, signed=True),
    ]


def ledger_markdown(document: Document) -> str:
    """Return `LEDGER.md`: dataset by dataset, then the datasets that were not available."""
    trials = counted(document.trials, "trial")
    lines = [
        "# Ledger",
        "",
        f"Made by {code(document.command)}: {trials}, seed {document.seed}. {RULE}",
    ]
    for data in document.datasets:
        lines += ["", f"## {escaped(data.name)}", *_sections(data.ledger)]
    if document.missing:
        lines += ["", "## Not at hand", *_sections(document.missing)]
    return "\n".join([*lines, ""])


def _sections(sections: Sequence[LedgerSection]) -> list[str]:
    lines = []
    for section in sections:
        lines += ["", f"### {escaped(section.title)}"]
        if section.note:
            lines += ["", prose(section.note)]
        if section.entries:
            lines += ["", grid(ledger_table(section))]
            letters = remarks(section).items()
            lines += ["", *(f"- {letter}: {escaped(remark)}" for remark, letter in letters)]
        if section.findings:
            lines.append("")
            for theme in themes(section.findings):
                lines += [_theme(theme), *map(_finding, theme.findings)]
    return lines


def _theme(theme: Theme) -> str:
    holds = f" Holds for {escaped('; '.join(theme.holds_for))}." if theme.holds_for else ""
    fails = f" **Not for** {escaped('; '.join(theme.not_for))}." if theme.not_for else ""
    return f"- {escaped(theme.title)}: {theme.count}.{holds}{fails}"


def _finding(finding: Finding) -> str:
    verdict = "holds" if finding.holds else "**does not hold**"
    return f"  - {verdict}: {escaped(finding.claim)} ({escaped(finding.detail)})"
