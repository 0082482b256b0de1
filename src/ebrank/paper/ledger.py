"""The ledger: every published figure beside ours, the difference, and whether it is noise.

docs/reproduce.md says how our experiments differ from the paper's.

A figure differs beyond the spread of the trials if it is off by more than two standard deviations
of ours, and by at least what a reader would care about: .005 of an NDCG or ratio, 1 of a Cum-NDCG
or a count.

>>> [str(cell) for cell in compared(0.849, np.array([0.851, 0.853]))]
['.849', '.852 ± .001', '+.003']
>>> [str(cell) for cell in compared(0.849, np.array([0.799, 0.801]))]
['.849', '.800 ± .001', '−.049*']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ebrank.lab.rankers import registry
from ebrank.lab.simulation.result import Result, spread
from ebrank.paper.framework.display import Cell, Column, Finding, Row, Table
from ebrank.paper.framework.entrants import CONCATENATING, PAPER
from ebrank.paper.framework.exhibit import Results, Run, Setup
from ebrank.paper.framework.folds import in_words
from ebrank.paper.framework.measures import PUBLISHED, behavior_ratios
from ebrank.paper.framework.significance import caution
from ebrank.paper.references import (
    Performance,
    Reference,
    Variant,
    reference_for,
    stands_in_for,
    variants,
)
from ebrank.typing import Floats

DEVIATIONS = 2.0
WORTH_A_MARK = {3: 0.005, 1: 1.0, 0: 1.0}
"""The least difference to mark, by a figure's digits after the point."""
MARK = "*"
RULE = (
    f"{MARK} : the difference is at least .005 (Cum-NDCG: 1.0) and more than two standard "
    "deviations of our trials; with one trial, whose spread is unknown, the size alone decides."
)
COMPARED = ("reference", "ours", "difference")
RATIOS = ("x^b", "largest other")


@dataclass(frozen=True)
class LedgerSection:
    """Figures that belong together, or why there are none.

    Attributes:
        note: what to know before comparing, or why there is nothing to compare; Markdown's
            backticks mark commands.
    """

    title: str
    note: str = ""
    table: Table | None = None
    findings: tuple[Finding, ...] = ()


def compared(
    reference: float | None, ours: Floats | None, digits: int = 3, reference_sd: float | None = None
) -> tuple[Cell, Cell, Cell]:
    """Return their figure, ours over trials, and the difference, marked if it is no noise.

    Either is None if there is none.
    """
    mean = None if ours is None else float(ours.mean())
    sd = None if ours is None else spread(ours)
    off = None if reference is None or mean is None else mean - reference
    noise = off is None or abs(off) < WORTH_A_MARK[digits]
    noise = noise or (sd is not None and abs(off or 0.0) <= DEVIATIONS * sd)
    return (
        Cell(reference, sd=reference_sd, digits=digits),
        Cell(mean, sd=sd, digits=digits),
        Cell(off, digits=digits, marks="" if noise else MARK, signed=True),
    )


def ledger(
    command: str, setup: Setup, results: Results, findings: Sequence[Finding]
) -> tuple[LedgerSection, ...]:
    """Return the sections for one dataset; `command` with `--only` fills what was not run."""
    sections = list(_findings(setup, findings))
    theirs = reference_for(setup.dataset.origin)
    sections.append(LedgerSection("Reference", _about(setup, theirs)))
    if theirs is None:
        return tuple(sections)
    if theirs.statistics is not None:
        sections.append(_statistics(setup, theirs))
    lookup = _Lookup(command, setup, results, theirs)
    return (*sections, lookup.performance(), lookup.ratios(), lookup.variants())


def _about(setup: Setup, theirs: Reference | None) -> str:
    """Return where the published figures come from, or why there are none."""
    origin = setup.dataset.origin
    if origin is not None and origin.differences:
        return (
            f"The files are not those of {origin.name} as published, so that no published figure "
            f"is held against ours: {'; '.join(origin.differences)}."
        )
    if theirs is None:
        return f"Nobody published figures for {setup.name} to hold ours against."
    stands = stands_in_for(origin)
    instead = "" if stands is None else f" {setup.name} is synthetic and stands in for {stands}."
    numbers = [fold.number for fold in setup.folds if fold.number is not None]
    pooled = f" Ours are of {in_words(numbers)}, pooled." if numbers else ""
    return f"Figures on {theirs.dataset} by {theirs.source}.{instead}{pooled}"


def _findings(setup: Setup, findings: Sequence[Finding]) -> Iterator[LedgerSection]:
    """Yield the paper's claims, then ours."""
    for title, ours in (("What the paper finds", False), ("What EBRank auto must show", True)):
        own = tuple(finding for finding in findings if finding.ours is ours)
        careful = caution(setup.test_queries, setup.trials)
        if own:
            yield LedgerSection(title, careful, findings=own)


def _statistics(setup: Setup, theirs: Reference) -> LedgerSection:
    """Return Table 1's figures; a dataset has no spread, so every difference is marked."""
    published, parts = theirs.statistics, setup.parts
    assert published is not None
    queries, rows, features = (
        sum(getattr(part, name) for part in parts) / len(parts)
        for name in ("queries", "rows", "features")
    )
    figures = (
        ("queries", published.queries, queries, 0),
        ("candidates of a query", published.candidates, rows / queries, 1),
        ("features", published.features, features, 0),
        ("largest label", published.max_label, setup.dataset.max_label, 0),
    )
    shown = tuple(
        Row((title, *compared(float(reference), np.array([float(ours)]), digits)))
        for title, reference, ours, digits in figures
    )
    folds = " Ours are means over the folds." if setup.folds else ""
    note = (
        "The reference's averages are rounded. Features that are constant over the training set "
        f"are dropped here.{folds}"
    )
    title, columns = "Table 1: the dataset after filtering", ("figure", *COMPARED)
    return LedgerSection(
        title, note, Table("ledger", title, "", tuple(map(Column, columns)), shown)
    )


@dataclass(frozen=True)
class _Lookup:
    """Finds published figures and ours, section by section."""

    command: str
    setup: Setup
    results: Results
    theirs: Reference

    def performance(self) -> LedgerSection:
        """Return Table 2's figures."""
        shown = [
            (Variant(entrant.label, entrant.key, (entrant.key,)), entrant.setting)
            for entrant in PAPER
        ]
        return self._performance("Table 2: ranking performance", shown)

    def variants(self) -> LedgerSection:
        """Return the figures of rankers with one decision made differently."""
        shown = [(variant, "") for variant in variants(self.setup.dataset.origin)]
        return self._performance("Variants of Table 2's rankers", shown)

    def ratios(self) -> LedgerSection:
        """Return Table 3's figures."""
        title = "Table 3: exploitation ratios"
        if not self.theirs.ratios:
            return LedgerSection(title, f"The paper has no such figures for {self.theirs.dataset}.")
        rows = []
        for entrant in CONCATENATING:
            theirs = self.theirs.ratios[entrant.key]
            result = self._result(Variant(entrant.label, entrant.key, ()))
            behavior, other = (None, None) if result is None else behavior_ratios(result).T
            cells = (
                *compared(theirs.behavior, behavior, 3, theirs.behavior_sd),
                *compared(theirs.other, other, 3, theirs.other_sd),
            )
            rows.append(Row((entrant.label, *cells)))
        return self._section(title, "table3", RATIOS, rows)

    def _performance(self, title: str, shown: Sequence[tuple[Variant, str]]) -> LedgerSection:
        """Return the measures of some rankers, each with the heading above it."""
        rows = []
        for variant, group in shown:
            theirs, result = self._published(variant.against), self._result(variant)
            cells = (
                cell
                for measure in PUBLISHED
                for cell in compared(
                    None if theirs is None else getattr(theirs, measure.name),
                    None if result is None else measure.values(result),
                    measure.digits,
                )
            )
            rows.append(Row((variant.name, *cells), group))
        return self._section(title, "table2", [measure.title for measure in PUBLISHED], rows)

    def _published(self, against: Sequence[str]) -> Performance | None:
        """Return the first of these that the reference has, even if only with ε = 0."""
        texts = (text for ranker in against for text in (ranker, f"{ranker}:epsilon=0.0"))
        known = self.theirs.performance
        return next((known[text] for text in texts if text in known), None)

    def _result(self, variant: Variant) -> Result | None:
        """Return the result of a run with the ε chosen for it, if any; None if it was not run."""
        config = self.setup.config
        ranker = self.setup.chosen.get((variant.key, config)) or registry.parse(variant.key)
        return self.results.get(Run(ranker.with_parameters(**variant.changes), config))

    def _section(
        self, title: str, exhibit: str, figures: Sequence[str], rows: Sequence[Row]
    ) -> LedgerSection:
        """Return a section, or how to fill it; our figures are in every third column."""
        command = f"`{self.command} --only {exhibit}`"
        columns = (Column(name, figure) for figure in figures for name in COMPARED)
        table = Table("ledger", title, "", (Column("ranker"), *columns), tuple(rows))
        ours = (cell for row in rows for cell in row.cells[2::3])
        absent = [isinstance(cell, Cell) and cell.value is None for cell in ours]
        if all(absent):
            return LedgerSection(title, f"Not run; {command} fills this.")
        return LedgerSection(title, f"What was not run: {command}." if any(absent) else "", table)
