"""What the figures say, in plain sentences that are made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from ebrank.experiments.document import DatasetRecord
from ebrank.experiments.extras.waiting import SHOWN
from ebrank.experiments.lineup import EBRANK, EXPOSURE, NAMES, PAPER, UCBRANK, entrant
from ebrank.experiments.outcome import Cell, Column, Finding, Table
from ebrank.report.headline import CLICKS_AS_FEATURE, COLD, CUM, WARM, Standing
from ebrank.report.numbers import number

WAITING = (EBRANK, EXPOSURE, UCBRANK, CLICKS_AS_FEATURE)
"""Whose waits are told."""
MEDIAN = Column("median wait", SHOWN)


def sentences(data: DatasetRecord, found: Mapping[str, Standing]) -> list[str]:
    """Return what was found on a dataset: who is first, what concatenation costs, who waits."""
    told = [*leaders(found), *concatenation(found, data.findings)]
    for table in data.tables:
        if table.name.startswith("waiting"):
            told += waits(table)
    return told


def leaders(found: Mapping[str, Standing]) -> Iterator[str]:
    """Yield who is first among the paper's rankers, how far ahead, and whether beyond luck."""
    paper = [found[one.key] for one in PAPER if one.key in found]
    if len(paper) < 2:
        return
    for measure in (WARM, CUM):
        first, second, *_ = sorted(paper, key=lambda one: -one.value(measure))
        sure = "" if "†" in first.cells[measure].marks else "not "
        text = (
            f"{first.name} is first in {measure} with {_value(first, measure)}, "
            f"{_lead(first, second, measure)} ahead of {second.name}; it is {sure}significantly "
            "ahead of all others."
        )
        ours = found.get(EBRANK)
        if ours is not None and ours not in (first, second):
            text += f" {ours.name} has {_value(ours, measure)}."
        if EXPOSURE in found:
            text += f" The variant {found[EXPOSURE].name} has {_value(found[EXPOSURE], measure)}."
        yield text


def concatenation(found: Mapping[str, Standing], findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what clicks as a feature do to rankings of items that nobody has clicked."""
    keys = [(f"{name}:features=concate", f"{name}:features=none") for name in NAMES]
    pairs = [(found[one], found[two]) for one, two in keys if one in found and two in found]
    if not pairs:
        return
    changes = [one.value(COLD) - other.value(COLD) for one, other in pairs]
    worst, other = pairs[changes.index(min(changes))]
    digits = worst.cells[COLD].digits
    text = (
        f"Behavior concatenated as a feature changes {COLD} by "
        f"{number(fmean(changes), digits, signed=True)} on average over {len(pairs)} "
        f"rankers, at worst from {_value(other, COLD)} to {_value(worst, COLD)} "
        f"({worst.entrant.label})."
    )
    checked = [one for one in findings if one.name.startswith("exploitation-bias-")]
    sure, unsure = (
        [one.subject for one in checked if one.holds is holds] for holds in (True, False)
    )
    if checked:
        text += f" The loss is significant for {listed(sure) if sure else 'none of them'}"
        text += f", not for {listed(unsure)}." if sure and unsure else "."
    yield text


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
    """Return the median waits for the first impression, with who has them; None if not reached."""
    if MEDIAN not in table.columns:
        return {}
    column = table.columns.index(MEDIAN)
    rows = {(row.cells[0], row.group): row for row in table.rows}
    medians: dict[float | None, list[str]] = {}
    for one in map(entrant, WAITING):
        row = rows.get((one.label, one.heading))
        if row is not None:
            cell = row.cells[column]
            wait = cell.value if isinstance(cell, Cell) else None
            medians.setdefault(wait, []).append(Standing(one, {}).name)
    return medians


def _value(one: Standing, measure: str) -> str:
    return number(one.value(measure), one.cells[measure].digits)


def _lead(one: Standing, other: Standing, measure: str) -> str:
    return number(one.value(measure) - other.value(measure), one.cells[measure].digits)
