"""Fills the ledger: puts ours beside every published figure, and how the experiments differ.

`ledger` makes the sections of one dataset, `missing` those of datasets that were not available.

How our experiment is known to differ from the one behind a reference figure are facts, from
PROTOCOL, from the dataset and from what the user changed. Readers and the variants must tell
whether one of them causes a difference. `general_differences` concern every figure and are listed
once; `ranker_differences` are listed beside a ranker's figures.

>>> list(_config(SimulationConfig(updates=4, entering_probability=0.5)))
['entering_probability = 0.5 here, 1.0 by default', 'updates = 4 here, 20 by default']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ebrank.data import published
from ebrank.data.dataset import Origin
from ebrank.experiments.framework.entrants import CONCATENATING, PAPER, Entrant
from ebrank.experiments.framework.experiment import Results, Run, Setup
from ebrank.experiments.framework.folds import AnyRanker, in_words
from ebrank.experiments.framework.measures import PUBLISHED, behavior_ratios
from ebrank.experiments.framework.outcome import Finding
from ebrank.experiments.framework.significance import caution
from ebrank.experiments.ledger.entries import LedgerEntry, LedgerSection
from ebrank.experiments.ledger.references import (
    REFERENCES,
    RELEASED_SESSIONS,
    Reference,
    reference_for,
    stands_in_for,
    variants,
)
from ebrank.parameters import typed
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.result import Result, spread
from ebrank.typing import Floats

REFERENCE = "Reference"
AND_ALL = f"what concerns every figure: see {REFERENCE}"
TRIALS, SEED = 5, 0
"""The defaults of `ebrank reproduce`."""


def ledger(
    command: str, setup: Setup, results: Results, findings: Sequence[Finding]
) -> tuple[LedgerSection, ...]:
    """Return the sections for one dataset; `command` with `--only` fills what was not run."""
    sections = list(_findings(setup, findings))
    theirs = reference_for(setup.dataset.origin)
    sections.append(LedgerSection(REFERENCE, _about(setup, theirs)))
    if theirs is None:
        return tuple(sections)
    if theirs.statistics is not None:
        sections.append(_statistics(setup, theirs))
    lookup = _Lookup(command, setup, results, theirs)
    return (*sections, lookup.performance(), lookup.ratios(), lookup.variants())


def missing(
    origins: Sequence[Origin | None], *, trials: int, seed: int
) -> tuple[LedgerSection, ...]:
    """Return a section for each dataset that has reference figures but is not among these.

    >>> here = [Origin("MQ2007", fold=1), Origin("mslr10k-like", preset=True)]
    >>> [section.title for section in missing(here, trials=5, seed=1)]
    ['MSLR-10K: not at hand', 'MSLR-30K: not at hand', 'MQ2008: not at hand']
    """
    here = [origin for origin in origins if origin is not None]
    present = [published.find(origin.name) for origin in here if origin.published]
    absent = [name for name in REFERENCES if published.find(name) not in present]
    return tuple(_not_at_hand(name, here, trials, seed) for name in absent)


def command_for(name: str, *, trials: int = TRIALS, seed: int = SEED) -> str:
    """Return the command that reproduces a published dataset; defaults are left out.

    >>> command_for("MQ2008", trials=2)
    'ebrank reproduce --dataset MQ2008 --data-dir FOLDER --trials 2'
    """
    words = [f"--dataset {name} --data-dir FOLDER"]
    if trials != TRIALS:
        words.append(f"--trials {trials}")
    if seed != SEED:
        words.append(f"--seed {seed}")
    return " ".join(["ebrank reproduce", *words])


def _not_at_hand(name: str, origins: Sequence[Origin], trials: int, seed: int) -> LedgerSection:
    entry = published.find(name)
    assert entry is not None
    stand_ins = (origin.name for origin in origins if stands_in_for(origin) == name)
    stand_in = next(stand_ins, None)
    instead = "" if stand_in is None else f", for which {stand_in} stands in"
    command = command_for(entry.name, trials=trials, seed=seed)
    return LedgerSection(
        f"{name}: not at hand",
        f"No figure here is of {name} itself{instead}. Download it from {entry.page}; then "
        f"`{command}` fills this in.",
    )


def _about(setup: Setup, theirs: Reference | None) -> str:
    """Return where the published figures come from and how they differ, or why there are none."""
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
    general = "; ".join(general_differences(setup, theirs))
    differ = f" Known differences that concern every figure: {general}." if general else ""
    return f"Figures on {theirs.dataset} by {theirs.source}.{instead}{differ}"


def _findings(setup: Setup, findings: Sequence[Finding]) -> Iterator[LedgerSection]:
    """Yield the paper's claims, then ours."""
    for title, ours in (("What the paper finds", False), ("What EBRank auto must show", True)):
        own = tuple(finding for finding in findings if finding.ours is ours)
        careful = caution(setup.test_queries, setup.trials)
        if own:
            yield LedgerSection(title, careful, findings=own)


def _statistics(setup: Setup, theirs: Reference) -> LedgerSection:
    """Return Table 1's figures; a dataset has no spread, so any difference gets a remark."""
    published, parts, origin = theirs.statistics, setup.parts, setup.dataset.origin
    assert published is not None
    queries, rows, features = (
        sum(getattr(part, name) for part in parts) / len(parts)
        for name in ("queries", "rows", "features")
    )
    remarks = {"features": "features constant over the training set are dropped here"}
    if origin is not None and origin.scale != 1:
        remarks |= dict.fromkeys(("queries", "candidates of a query"), "a scaled set")
    entries = []
    for title, reference, ours, digits in (
        ("queries", published.queries, queries, 0),
        ("candidates of a query", published.candidates, rows / queries, 1),
        ("features", published.features, features, 0),
        ("largest label", published.max_label, setup.dataset.max_label, 0),
    ):
        remark = remarks.get(title, "not explained") if round(ours - reference) else ""
        figures = float(reference), float(ours), None, digits
        entries.append(LedgerEntry(setup.name, title, *figures, remark=remark))
    folds = " Ours are means over the folds." if setup.folds else ""
    note = f"The reference's averages are rounded.{folds}"
    return LedgerSection("Table 1: the dataset after filtering", note, tuple(entries))


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
            for entry in self._performance(entrant.label, self.ranker(entrant.key), (entrant.key,))
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
        entries = [
            entry
            for variant in variants(self.setup.dataset.origin)
            for entry in self._performance(
                variant.name, self.ranker(variant.key, variant.changes), variant.against
            )
        ]
        return self._section("Variants of Table 2's rankers", "table2", entries)

    def ranker(self, key: str, changes: Mapping[str, Any] | None = None) -> AnyRanker:
        """Return a ranker by its key or text, with the ε chosen for it, if any."""
        chosen = self.setup.chosen.get((key, self.setup.config))
        ranker: AnyRanker = chosen or registry.parse(key)
        return ranker.with_parameters(**(changes or {}))

    def _performance(
        self, name: str, ranker: AnyRanker, against: Sequence[str]
    ) -> Iterator[LedgerEntry]:
        published = self._published(against)
        theirs = self.theirs.performance[published] if published else None
        causes = self._causes(ranker, published) if published else []
        result = self._result(ranker)
        for measure in PUBLISHED:
            reference = None if theirs is None else getattr(theirs, measure.name)
            values = None if result is None else measure.values(result)
            entry = _entry(name, measure.title, reference, values, measure.digits)
            yield entry.remarked(causes)

    def _ratios(self, entrant: Entrant) -> Iterator[LedgerEntry]:
        ranker, theirs = self.ranker(entrant.key), self.theirs.ratios[entrant.key]
        causes, result = self._causes(ranker, entrant.key), self._result(ranker)
        behavior, other = (None, None) if result is None else behavior_ratios(result).T
        for title, reference, sd, values in (
            ("x^b", theirs.behavior, theirs.behavior_sd, behavior),
            ("largest other", theirs.other, theirs.other_sd, other),
        ):
            entry = _entry(entrant.label, title, reference, values, 3).remarked(causes)
            yield replace(entry, reference_sd=sd)

    def _causes(self, ranker: AnyRanker, published: str) -> list[str]:
        """Return the known differences of a ranker's figures; those of all figures come last."""
        shared = [AND_ALL] if general_differences(self.setup, self.theirs) else []
        return ranker_differences(self.theirs, ranker, published) + shared

    def _published(self, against: Sequence[str]) -> str | None:
        """Return the first of these rankers that the reference has, even if only with ε = 0."""
        texts = (text for ranker in against for text in (ranker, f"{ranker}:epsilon=0.0"))
        return next((text for text in texts if text in self.theirs.performance), None)

    def _result(self, ranker: AnyRanker) -> Result | None:
        """Return the result of a run, None if it was not run."""
        return self.results.get(Run(ranker, self.setup.config))

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


# --- known differences ----------------------------------------------------------------------------

AS_RELEASED = (
    "there BM25 serves 20·Q queries drawn at random first, here each query 20 times",
    "there queries begin with 5 to 9 items and the last item of a query never enters, here with 5 "
    "to 10 and all enter",
    "there the last query of each file is lost",
    "there models are random until the first update and evaluated before the last one, here fitted "
    "to the log before serving and evaluated after it",
)
"""Differences from the released code, for every ranker."""
ALL_PARTITIONS = "the released code learns from sessions of all partitions, ours from training ones"
LOST_CANDIDATES = "the released code loses the candidate count and uses one, ours has 9"
LEAK = "the released code's gradient sees x^b that the clicks it learns from have updated"
ONCE_CLICKED = "the released code believes x^b once an item is clicked, ours once it is shown"
OFTEN_SHOWN = "the released code trains the prior on items shown more than 20 times, ours on all"
PLAIN_ALPHA = "there α is a linear score, which may be negative, here its exponential"
OTHER_ESTIMATOR = "the paper's figures look like those of the exposure estimator: see the variants"
OTHER_FEATURE = "x^b is C/n there, c/E here: see the variants"
RELEASED_FEATURE = "x^b is c/E there, C/n here"
WITH_SESSIONS = "grows with their number until it levels off"
DEFAULTS = SimulationConfig()


def general_differences(setup: Setup, theirs: Reference) -> list[str]:
    """Return how our experiment differs from the reference's for every ranker."""
    return [
        *_data(setup, theirs),
        *_sessions(setup, theirs.released),
        *_config(setup.config),
        *(AS_RELEASED if theirs.released else ()),
    ]


def ranker_differences(theirs: Reference, ranker: AnyRanker, published: str) -> list[str]:
    """Return how a ranker is known to differ from the reference's, whose text is `published`."""
    return [
        *_parameters(ranker, published, theirs.released),
        *_ranker(ranker, theirs.released),
    ]


def _data(setup: Setup, theirs: Reference) -> Iterator[str]:
    origin = setup.dataset.origin
    if origin is None:
        return
    if stands_in_for(origin) is not None:
        share = f" with {origin.scale:g} of its queries" if origin.scale != 1 else ""
        yield f"synthetic data{share} in place of {theirs.dataset}"
    elif setup.folds:
        numbers = [fold.number for fold in setup.folds if fold.number is not None]
        yield f"{in_words(numbers)} here, pooled, fold 1 in the protocol"
    elif origin.fold != 1:
        fold = "an unknown fold" if origin.fold is None else f"fold {origin.fold}"
        yield f"{fold} here, fold 1 in the protocol"
    for name, value in origin.options:
        yield f"{name} = {value} here"


def _sessions(setup: Setup, released: bool) -> Iterator[str]:
    counts = sorted({part.sessions for part in setup.parts})
    ours = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
    if released:
        if counts != [RELEASED_SESSIONS]:
            yield f"{RELEASED_SESSIONS:,} sessions there, {ours} here"
    elif setup.config.sessions is not None:
        yield f"{ours} sessions here, by a formula there, and Cum-NDCG {WITH_SESSIONS}"
    elif setup.dataset.origin is not None and setup.dataset.origin.scale != 1:
        yield f"only {ours} sessions, as the set is scaled, and Cum-NDCG {WITH_SESSIONS}"


def _config(config: SimulationConfig) -> Iterator[str]:
    """Yield what the user changed, except the number of sessions."""
    for field in fields(config):
        ours, usual = getattr(config, field.name), getattr(DEFAULTS, field.name)
        if ours != usual and field.name != "sessions":
            yield f"{field.name} = {ours} here, {usual} by default"


def _parameters(ranker: AnyRanker, published: str, released: bool) -> Iterator[str]:
    """Yield how x^b and ε differ, for a ranker that uses them."""
    behavior = ranker.value("behavior") if ranker.setting != "none" else None
    if behavior == "exposure" and not released:
        yield OTHER_FEATURE
    if behavior == "ips" and released:
        yield RELEASED_FEATURE
    ours, theirs = ranker.value("epsilon"), registry.parse(published).value("epsilon")
    if ours is not None and not released:
        yield f"ε = {typed(ours)} here, not stated there"
    elif ours is not None and ours != theirs:
        yield f"ε = {typed(theirs)} there, {typed(ours)} here"


def _ranker(ranker: AnyRanker, released: bool) -> Iterator[str]:
    match ranker.name:
        case "dbgd":
            yield ALL_PARTITIONS
        case "mgd":
            yield LOST_CANDIDATES
            yield ALL_PARTITIONS
        case "pdgd":
            if ranker.setting == "concate":
                yield LEAK
            yield ALL_PARTITIONS
        case "ucbrank" if ranker.value("shown") == "shown":
            yield ONCE_CLICKED
        case "ebrank":
            yield from _ebrank(ranker, released)


def _ebrank(ranker: AnyRanker, released: bool) -> Iterator[str]:
    part = ranker.value("part")
    if part == "both" and ranker.value("estimator") == "ips" and not released:
        yield OTHER_ESTIMATOR
    if part != "behavior":
        if not ranker.value("min_impressions"):
            yield OFTEN_SHOWN
        if released:
            yield PLAIN_ALPHA
