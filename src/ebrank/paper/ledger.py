"""The ledger: every published figure beside ours, the difference, and whether it is noise.

docs/reproduce.md says how our experiments differ from the paper's.

A figure differs beyond the spread of the trials if it is off by more than two standard deviations
of ours, and by at least what a reader would care about: .005 of an NDCG or ratio, 1 of a Cum-NDCG
or a count.

>>> LedgerEntry("EBRank", "Warm-NDCG", 0.849, 0.852, sd=0.004).beyond_the_spread
False
>>> LedgerEntry("EBRank", "Warm-NDCG", 0.849, 0.800, sd=0.004).beyond_the_spread
True
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ebrank.lab.rankers import registry
from ebrank.lab.simulation.result import Result, spread
from ebrank.paper.framework.entrants import CONCATENATING, PAPER, Entrant
from ebrank.paper.framework.experiment import Results, Run, Setup
from ebrank.paper.framework.folds import in_words
from ebrank.paper.framework.measures import PUBLISHED, behavior_ratios
from ebrank.paper.framework.outcome import Finding
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


@dataclass(frozen=True)
class LedgerEntry:
    """One figure, theirs and ours.

    Attributes:
        name: whose it is.
        figure: what it is.
        reference: theirs; None if they have none.
        ours: the mean over trials; None if it was not run.
        sd: standard deviation over trials, None for a single one.
        digits: after the point.
        group: the heading above it, a feature setting.
        reference_sd: their standard deviation, None if they gave none.
    """

    name: str
    figure: str
    reference: float | None
    ours: float | None
    sd: float | None = None
    digits: int = 3
    group: str = ""
    reference_sd: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours minus theirs."""
        if self.reference is None or self.ours is None:
            return None
        return self.ours - self.reference

    @property
    def beyond_the_spread(self) -> bool:
        """Whether the difference is large, and larger than chance makes it."""
        off = abs(self.difference or 0.0)
        large = off >= WORTH_A_MARK[self.digits]
        return large and (self.sd is None or off > DEVIATIONS * self.sd)


@dataclass(frozen=True)
class LedgerSection:
    """Figures that belong together, or why there are none.

    Attributes:
        note: what to know before comparing, or why there is nothing to compare; Markdown's
            backticks mark commands.
    """

    title: str
    note: str = ""
    entries: tuple[LedgerEntry, ...] = ()
    findings: tuple[Finding, ...] = ()


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
    entries = tuple(
        LedgerEntry(setup.name, title, float(reference), float(ours), None, digits)
        for title, reference, ours, digits in figures
    )
    folds = " Ours are means over the folds." if setup.folds else ""
    note = (
        "The reference's averages are rounded. Features that are constant over the training set "
        f"are dropped here.{folds}"
    )
    return LedgerSection("Table 1: the dataset after filtering", note, entries)


@dataclass(frozen=True)
class _Lookup:
    """Finds published figures and ours, section by section."""

    command: str
    setup: Setup
    results: Results
    theirs: Reference

    def performance(self) -> LedgerSection:
        """Return Table 2's figures."""
        entries = [
            replace(entry, group=entrant.setting)
            for entrant in PAPER
            for entry in self._performance(Variant(entrant.label, entrant.key, (entrant.key,)))
        ]
        return self._section("Table 2: ranking performance", "table2", entries)

    def ratios(self) -> LedgerSection:
        """Return Table 3's figures."""
        title = "Table 3: exploitation ratios"
        if not self.theirs.ratios:
            return LedgerSection(title, f"The paper has no such figures for {self.theirs.dataset}.")
        entries = [entry for entrant in CONCATENATING for entry in self._ratios(entrant)]
        return self._section(title, "table3", entries)

    def variants(self) -> LedgerSection:
        """Return the figures of rankers with one decision made differently."""
        own = variants(self.setup.dataset.origin)
        entries = [entry for variant in own for entry in self._performance(variant)]
        return self._section("Variants of Table 2's rankers", "table2", entries)

    def _performance(self, variant: Variant) -> Iterator[LedgerEntry]:
        theirs, result = self._published(variant.against), self._result(variant)
        for measure in PUBLISHED:
            reference = None if theirs is None else getattr(theirs, measure.name)
            values = None if result is None else measure.values(result)
            yield _entry(variant.name, measure.title, reference, values, measure.digits)

    def _ratios(self, entrant: Entrant) -> Iterator[LedgerEntry]:
        theirs = self.theirs.ratios[entrant.key]
        result = self._result(Variant(entrant.label, entrant.key, ()))
        behavior, other = (None, None) if result is None else behavior_ratios(result).T
        for title, reference, sd, values in (
            ("x^b", theirs.behavior, theirs.behavior_sd, behavior),
            ("largest other", theirs.other, theirs.other_sd, other),
        ):
            entry = _entry(entrant.label, title, reference, values, 3)
            yield replace(entry, reference_sd=sd)

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
        self, title: str, experiment: str, entries: Sequence[LedgerEntry]
    ) -> LedgerSection:
        """Return a section, or how to fill it."""
        command = f"`{self.command} --only {experiment}`"
        if all(entry.ours is None for entry in entries):
            return LedgerSection(title, f"Not run; {command} fills this.")
        absent = any(entry.ours is None for entry in entries)
        note = f"What was not run: {command}." if absent else ""
        return LedgerSection(title, note, tuple(entries))


def _entry(
    name: str, figure: str, reference: float | None, values: Floats | None, digits: int
) -> LedgerEntry:
    if values is None:
        return LedgerEntry(name, figure, reference, None, None, digits)
    return LedgerEntry(name, figure, reference, float(values.mean()), spread(values), digits)
