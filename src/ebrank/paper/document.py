"""`results.json`: everything a reproduction found, and what it depends on; no run times.

It is all that `ebrank.paper.report` needs. The same command gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from ebrank.environment.files import write_whole
from ebrank.errors import DataError
from ebrank.lab.simulation.result import about_config, measured
from ebrank.lab.simulation.stamps import versions
from ebrank.lab.simulation.storage import read_own
from ebrank.lab.simulation.tuning import TuningRecord
from ebrank.paper.exhibits.table2 import CLICKS_AS_FEATURE, better_than
from ebrank.paper.exhibits.waiting import SOON, curve
from ebrank.paper.framework import tuning
from ebrank.paper.framework.display import Display, Finding
from ebrank.paper.framework.entrants import AUTO, UCBRANK
from ebrank.paper.framework.exhibit import Results, Setup
from ebrank.paper.framework.measures import RUN
from ebrank.paper.framework.runner import FinishedDataset, ReproductionPlan
from ebrank.paper.ledger import LedgerSection, ledger
from ebrank.paper.references import stands_in_for

KIND = "ebrank reproduce"
FORMAT = 5
RESULTS = "results.json"
TUNING = "tuning"
"""The name of what shows how parameters were chosen, beside those of exhibits."""


@dataclass(frozen=True)
class Document:
    """A reproduction.

    Attributes:
        command: repeats it.
        seed: of all trials.
        trials: of each run.
        versions: of the software that made it.
        config: the simulation.
        name: the dataset's, as in tables.
        fingerprint: a hash of its content; those of all folds, if folds are pooled.
        stands_in_for: the published dataset that a synthetic one replaces, if any.
        queries, rows, features: its size after preparation; of pooled folds, the largest one's.
        sessions: of a trial, in all folds together, unless a run says otherwise.
        test_queries: how many queries measures and tests cover.
        folds: the numbers of the folds that are pooled; () for a single dataset.
        headline: what became of new items, and at what price; "" if that was not measured.
        tuning: how each ε was chosen.
        runs: the measures of everything that was run, trial by trial, with its ranker and config.
        displays: what exhibits made of the runs, by their names, in the order of the report.
        ledger: published figures beside ours.
    """

    command: str
    seed: int
    trials: int
    versions: dict[str, str]
    config: dict[str, Any]
    name: str
    fingerprint: str
    stands_in_for: str | None
    queries: int
    rows: int
    features: int
    sessions: int
    test_queries: int
    folds: tuple[int, ...]
    headline: str
    tuning: tuple[TuningRecord, ...]
    runs: tuple[dict[str, Any], ...]
    displays: dict[str, Display]
    ledger: tuple[LedgerSection, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of all exhibits."""
        return tuple(finding for shown in self.displays.values() for finding in shown.findings)


def document(
    command: str, repeated: str, plan: ReproductionPlan, finished: FinishedDataset
) -> Document:
    """Return everything that a plan found; `repeated` is the command without `--only`."""
    setup, results, displays = finished.setup, finished.results, dict(finished.displays)
    tried = tuning.table(setup.tuning)
    if tried is not None:
        displays[TUNING] = Display(tables=(tried,))
    made = Document(
        command=command,
        seed=plan.seed,
        trials=plan.trials,
        versions=versions(),
        config=_plain(about_config(plan.config)),
        name=setup.name,
        fingerprint=finished.fingerprint,
        stands_in_for=stands_in_for(setup.dataset.origin),
        queries=max(part.queries for part in setup.parts),
        rows=max(part.rows for part in setup.parts),
        features=max(part.features for part in setup.parts),
        sessions=setup.sessions,
        test_queries=setup.test_queries,
        folds=tuple(fold.number for fold in setup.folds if fold.number is not None),
        headline=headline(setup, results, displays),
        tuning=setup.tuning,
        runs=tuple(
            {"ranker": str(run.ranker), "config": _plain(about_config(run.config))}
            | measured(result)
            for run, result in results.items()
        ),
        displays=displays,
        ledger=(),
    )
    return replace(made, ledger=ledger(repeated, setup, results, made.findings))


def headline(setup: Setup, results: Results, displays: Mapping[str, Display]) -> str:
    """Return how many new items users saw soon, and at what price; "" if either is unknown."""
    if not {"table2", "waiting"} <= displays.keys():
        return ""
    runs = {key: results[setup.run(key)] for key in (AUTO, UCBRANK, CLICKS_AS_FEATURE)}
    waits = {key: curve(result, "wait_shown") for key, result in runs.items()}
    if min(wait.until for wait in waits.values()) < SOON:
        return ""
    shown = {key: _percent(float(wait.at(SOON))) for key, wait in waits.items()}
    lost = 1 - RUN.mean(runs[UCBRANK]) / RUN.mean(runs[AUTO])
    verdicts = {finding.name: finding.verdict for finding in displays["table2"].findings}
    price = {
        "confirmed": f"at the price of lists that are {_percent(lost)} worse",
        "contradicted": f"in lists that are {_percent(-lost)} better",
        "undecided": "and its lists do not differ significantly",
    }[verdicts[better_than(UCBRANK)]]
    return (
        f"EBRank auto shows {shown[AUTO]} of the good new items within {SOON} searches, a ranker "
        f"with clicks as a feature {shown[CLICKS_AS_FEATURE]}; UCBRank shows {shown[UCBRANK]}, "
        f"{price}"
    )


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", "\N{NO-BREAK SPACE}%")


def _plain(config: dict[str, Any]) -> dict[str, Any]:
    """Return a config as JSON reads it back."""
    return msgspec.json.decode(msgspec.json.encode(config), type=dict[str, Any])


def document_bytes(document: Document) -> bytes:
    """Return the content of `results.json`."""
    plain = {"kind": KIND, "format": FORMAT, **msgspec.to_builtins(document)}
    return (json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def write_document(document: Document, folder: Path) -> None:
    """Write `results.json`."""
    write_whole(folder / RESULTS, document_bytes(document))


def read_document(folder: Path) -> Document:
    """Return what `write_document` wrote.

    Raises:
        DataError: if there is no such file, or it is not the results of a reproduction.
    """
    path = folder / RESULTS
    remedy = "Give a folder that `ebrank reproduce` wrote."
    plain = read_own(path, KIND, "not the results of a reproduction", remedy)
    if not plain:
        raise DataError("no such file", path=path, remedy=remedy)
    if plain.get("format") != FORMAT:
        problem = f"the format is {plain.get('format')}, not {FORMAT}"
        raise DataError(problem, path=path, remedy="Run `ebrank reproduce` again.")
    try:
        return msgspec.convert(plain, Document)
    except msgspec.ValidationError as problem:
        raise DataError(f"damaged: {problem}", path=path, remedy=remedy) from None
