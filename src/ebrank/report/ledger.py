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
from ebrank.report.findings import HOW, SYMBOLS, tally, themes
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
