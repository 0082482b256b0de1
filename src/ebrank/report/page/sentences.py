"""The results in sentences: who leads, what concatenation costs, how long new items wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from ebrank.experiments.document import DatasetRecord
from ebrank.experiments.exhibits.extras.waiting import SHOWN
from ebrank.experiments.exhibits.table2 import HINGES
from ebrank.experiments.framework.entrants import (
    EBRANK,
    EXPOSURE,
    NAMES,
    PAPER,
    UCBRANK,
    entrant_of,
)
from ebrank.experiments.framework.numbers import number
from ebrank.experiments.framework.outcome import Cell, Column, Finding, Table
from ebrank.report.page.standings import CLICKS_AS_FEATURE, COLD, CUM, WARM, Standing

VERDICT_OF_LOSS = {
    "confirmed": "A loss is confirmed for",
    "undecided": "It is undecided for",
    "contradicted": "It is contradicted for",
}
WAITING = (EBRANK, EXPOSURE, UCBRANK, CLICKS_AS_FEATURE)
"""The rankers whose waits are mentioned."""
MEDIAN = Column("median wait", SHOWN)


def sentences(data: DatasetRecord, standings: Mapping[str, Standing]) -> list[str]:
    """Return the results on a dataset: who is first, what concatenation costs, who waits."""
    texts = [*leaders(standings), *concatenation(standings, data.findings)]
    for table in data.tables:
        if table.name.startswith("waiting"):
            texts += waits(table)
    return texts


def leaders(standings: Mapping[str, Standing]) -> Iterator[str]:
    """Yield who is first among the paper's rankers, how far ahead, and whether significantly."""
    paper = [standings[entrant.key] for entrant in PAPER if entrant.key in standings]
    if len(paper) < 2:
        return
    for measure in (WARM, CUM):
        first, second, *_ = sorted(paper, key=lambda standing: -standing.value(measure))
        sure = "" if "†" in first.cells[measure].marks else "not "
        text = (
            f"{first.name} is first in {measure} with {_value(first, measure)}, "
            f"{_lead(first, second, measure)} ahead of {second.name}; it is {sure}significantly "
            "ahead of all others."
        )
        ours = standings.get(EBRANK)
        if ours is not None and ours not in (first, second):
            text += f" {ours.name} has {_value(ours, measure)}."
        if EXPOSURE in standings:
            variant = standings[EXPOSURE]
            text += f" The variant {variant.name} has {_value(variant, measure)}."
        yield text


def concatenation(standings: Mapping[str, Standing], findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what clicks as a feature do to the ranking of items without clicks."""
    keys = [(f"{name}:features=concate", f"{name}:features=none") for name in NAMES]
    pairs = [
        (standings[concate], standings[none])
        for concate, none in keys
        if concate in standings and none in standings
    ]
    if not pairs:
        return
    changes = [concate.value(COLD) - none.value(COLD) for concate, none in pairs]
    worst, other = pairs[changes.index(min(changes))]
    digits = worst.cells[COLD].digits
    text = (
        f"Behavior concatenated as a feature changes {COLD} by "
        f"{number(fmean(changes), digits, signed=True)} on average over {len(pairs)} "
        f"rankers, at worst from {_value(other, COLD)} to {_value(worst, COLD)} "
        f"({worst.entrant.label})."
    )
    checked = [finding for finding in findings if finding.name.startswith("exploitation-bias-")]
    for verdict, words in VERDICT_OF_LOSS.items():
        who = [finding.subject for finding in checked if finding.verdict == verdict]
        if who:
            text += f" {words} {listed(who)}."
    yield f"{text} {HINGES}."


def waits(table: Table) -> Iterator[str]:
    """Yield how long the median new relevant item waits to be shown, shortest wait first."""
    medians = _medians(table)
    never = medians.pop(None, [])
    waited = [f"{wait:,.0f} with {listed(names)}" for wait, names in sorted(medians.items())]
    text = ""
    if waited:
        text = (
            "The median new relevant item waits for its first impression, in sessions of its "
            f"query: {', '.join(waited)}."
        )
    if never:
        show = "shows" if len(never) == 1 else "show"
        text += f" {listed(never)} {show} fewer than half of these items before the end."
    if text:
        yield text.strip()


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence.

    >>> listed(["A"]), listed(["A", "B", "C"])
    ('A', 'A, B and C')
    """
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _medians(table: Table) -> dict[float | None, list[str]]:
    """Return rankers by their median wait for the first impression; None if not reached."""
    if MEDIAN not in table.columns:
        return {}
    column = table.columns.index(MEDIAN)
    rows = {(row.cells[0], row.group): row for row in table.rows}
    medians: dict[float | None, list[str]] = {}
    for entrant in map(entrant_of, WAITING):
        row = rows.get((entrant.label, entrant.heading))
        if row is not None:
            cell = row.cells[column]
            wait = cell.value if isinstance(cell, Cell) else None
            medians.setdefault(wait, []).append(Standing(entrant, {}).name)
    return medians


def _value(standing: Standing, measure: str) -> str:
    return number(standing.value(measure), standing.cells[measure].digits)


def _lead(first: Standing, second: Standing, measure: str) -> str:
    return number(first.value(measure) - second.value(measure), first.cells[measure].digits)
