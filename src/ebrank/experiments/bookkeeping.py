"""Fills the ledger: looks up every figure that somebody else told, and ours beside it.

`ledger` makes the sections of one dataset, `missing` those of datasets that nobody had at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ebrank.data import catalog
from ebrank.data.dataset import Dataset, Origin
from ebrank.experiments import paper, table3
from ebrank.experiments.commands import again, as_ordered
from ebrank.experiments.departures import of_a_ranker, of_every_figure
from ebrank.experiments.ledger import Entry, Section
from ebrank.experiments.lineup import CONCATENATING, PAPER, Entrant
from ebrank.experiments.measures import MEASURES
from ebrank.experiments.outcome import Finding
from ebrank.experiments.paper import Reference
from ebrank.experiments.power import caution
from ebrank.experiments.run import Results, Run, Setup
from ebrank.experiments.variants import variants
from ebrank.rankers import registry
from ebrank.rankers.base import Ranker
from ebrank.simulation.result import Result
from ebrank.simulation.summary import spread
from ebrank.typing import Floats

REFERENCE = "Reference"
AND_ALL = f"what concerns every figure: see {REFERENCE}"


def ledger(setup: Setup, results: Results, findings: Sequence[Finding]) -> tuple[Section, ...]:
    """Return the sections for one dataset."""
    sections = [_findings(setup, findings)] if findings else []
    theirs = paper.reference(setup.dataset.origin)
    sections.append(Section(REFERENCE, _about(setup, theirs)))
    if theirs is None:
        return tuple(sections)
    if theirs.statistics is not None:
        sections.append(_statistics(setup.dataset, theirs))
    book = _Book(setup, results, theirs)
    return (*sections, book.performance(), book.ratios(), book.variants())


def missing(origins: Sequence[Origin | None], *, trials: int, seed: int) -> tuple[Section, ...]:
    """Return a section for each dataset with reference figures that is not among these.

    >>> here = [Origin("MQ2007", fold=1), Origin("mslr10k-like", preset=True)]
    >>> [section.title for section in missing(here, trials=5, seed=1)]
    ['MSLR-10K: not at hand', 'MSLR-30K: not at hand', 'MQ2008: not at hand']
    """
    known = [origin for origin in origins if origin is not None]
    present = [catalog.find(origin.name) for origin in known if origin.published]
    absent = [name for name in paper.REFERENCES if catalog.find(name) not in present]
    return tuple(_not_at_hand(name, known, trials, seed) for name in absent)


def _not_at_hand(name: str, origins: Sequence[Origin], trials: int, seed: int) -> Section:
    entry = catalog.find(name)
    assert entry is not None
    stand_ins = (one.name for one in origins if paper.stands_in_for(one) == name)
    stand_in = next(stand_ins, None)
    instead = "" if stand_in is None else f", for which {stand_in} stands in"
    command = again(Origin(entry.name, fold=1), trials=trials, seed=seed)
    return Section(
        f"{name}: not at hand",
        f"No figure here is of {name} itself{instead}. Download it from {entry.page}; then "
        f"`{command}` fills this in.",
    )


def _about(setup: Setup, theirs: Reference | None) -> str:
    """Return whose figures ours are held against and how these differ, or why there are none."""
    data, origin = setup.dataset, setup.dataset.origin
    if origin is not None and origin.differences:
        return (
            f"The files are not those of {origin.name} as published, so that no published figure "
            f"is held against ours: {'; '.join(origin.differences)}."
        )
    if theirs is None:
        return f"Nobody published figures for {data.name} to hold ours against."
    stands = paper.stands_in_for(origin)
    instead = "" if stands is None else f" {data.name} is synthetic and stands in for {stands}."
    known = "; ".join(of_every_figure(setup, theirs))
    differ = f" Known differences that concern every figure: {known}." if known else ""
    return f"Figures on {theirs.dataset} by {theirs.source}.{instead}{differ}"


def _findings(setup: Setup, findings: Sequence[Finding]) -> Section:
    held = sum(finding.holds for finding in findings)
    careful = caution(len(setup.dataset.queries_in("test")), setup.trials)
    note = f"{held} of {len(findings)} hold. {careful}".strip()
    return Section("What the paper finds", note, findings=tuple(findings))


def _statistics(data: Dataset, theirs: Reference) -> Section:
    """Return Table 1's figures; a dataset has no spread, so that any difference is remarked on."""
    told = theirs.statistics
    assert told is not None
    figures = (
        ("queries", told.queries, data.n_queries, 0),
        ("candidates of a query", told.candidates, data.n_rows / data.n_queries, 1),
        ("features", told.features, data.n_features, 0),
        ("largest label", told.max_label, data.max_label, 0),
    )
    entries = [
        Entry(data.name, title, float(reference), float(ours), None, digits)
        for title, reference, ours, digits in figures
    ]
    remarks = {"features": "features constant over the training set are dropped here"}
    if data.origin is not None and data.origin.scale != 1:
        remarks |= dict.fromkeys(("queries", "candidates of a query"), "a scaled set")
    return Section(
        "Table 1: the dataset after filtering",
        "The reference's averages are rounded.",
        tuple(
            replace(entry, remark=remarks.get(entry.figure, "not explained"))
            if round(entry.difference or 0.0)
            else entry
            for entry in entries
        ),
    )


@dataclass(frozen=True)
class _Book:
    """Where figures are looked up while the ledger is written."""

    setup: Setup
    results: Results
    theirs: Reference

    def performance(self) -> Section:
        """Return Table 2's figures."""
        entries = [
            replace(entry, group=one.setting)
            for one in PAPER
            for entry in self._performance(one.label, self.ranker(one.key), (one.key,))
        ]
        return self._section("Table 2: ranking performance", "table2", entries)

    def ratios(self) -> Section:
        """Return Table 3's figures."""
        title = "Table 3: exploitation ratios"
        if not self.theirs.ratios:
            return Section(title, f"The paper has no such figures for {self.theirs.dataset}.")
        entries = [entry for one in CONCATENATING for entry in self._ratios(one)]
        return self._section(title, "table3", entries)

    def variants(self) -> Section:
        """Return what other decisions come to."""
        entries = [
            entry
            for variant in variants(self.setup.dataset.origin)
            for entry in self._performance(
                variant.name, self.ranker(variant.key, variant.changes), variant.against
            )
        ]
        return self._section("Variants of Table 2's rankers", "table2", entries)

    def ranker(self, key: str, changes: Mapping[str, Any] | None = None) -> Ranker:
        """Return a ranker by its key or text, with the ε that was chosen for it, if it was."""
        chosen = self.setup.chosen.get((key, self.setup.config.entering_probability))
        ranker = chosen or registry.parse(key)
        return replace(ranker, **(changes or {}))  # type: ignore[type-var]

    def _performance(self, name: str, ranker: Ranker, against: Sequence[str]) -> Iterator[Entry]:
        told = self._told(against)
        known = self._known(ranker, told) if told else []
        result = self._result(ranker)
        for measure in MEASURES:
            reference = getattr(self.theirs.performance[told], measure.name) if told else None
            values = None if result is None else measure.of(result)
            yield _entry(name, measure.title, reference, values, measure.digits).remarked(known)

    def _ratios(self, one: Entrant) -> Iterator[Entry]:
        told = self.theirs.ratios[one.key]
        known = self._known(self.ranker(one.key), one.key)
        result = self._result(self.ranker(one.key))
        columns = (None, None) if result is None else table3.ratios(result).T
        theirs = ((told.behavior, told.behavior_sd), (told.other, told.other_sd))
        for title, (reference, sd), values in zip(
            ("x^b", "largest other"), theirs, columns, strict=True
        ):
            entry = _entry(one.label, title, reference, values, 3).remarked(known)
            yield replace(entry, reference_sd=sd)

    def _known(self, ranker: Ranker, told: str) -> list[str]:
        """Return in what a ranker's figures are known to differ, last what all have in common."""
        shared = [AND_ALL] if of_every_figure(self.setup, self.theirs) else []
        return of_a_ranker(self.theirs, ranker, told) + shared

    def _told(self, against: Sequence[str]) -> str | None:
        """Return the first ranker of the reference that is meant, or the same with ε = 0."""
        texts = (text for one in against for text in (one, f"{one}:epsilon=0.0"))
        return next((text for text in texts if text in self.theirs.performance), None)

    def _result(self, ranker: Ranker) -> Result | None:
        """Return what was run, None if it was not."""
        return self.results.get(Run(ranker, self.setup.config))

    def _section(self, title: str, experiment: str, entries: Sequence[Entry]) -> Section:
        """Return a section, or how to fill it."""
        command = f"`{as_ordered(self.setup)} --only {experiment}`"
        if all(entry.ours is None for entry in entries):
            return Section(title, f"Not run; {command} fills this.")
        absent = any(entry.ours is None for entry in entries)
        return Section(title, f"What was not run: {command}." if absent else "", tuple(entries))


def _entry(
    name: str, figure: str, reference: float | None, values: Floats | None, digits: int
) -> Entry:
    if values is None:
        return Entry(name, figure, reference, None, None, digits)
    return Entry(name, figure, reference, float(values.mean()), spread(values), digits)
