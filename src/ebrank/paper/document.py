"""`results.json`: everything a reproduction found, and what it depends on; no run times.

It is all that `ebrank.paper.report` needs. The same command gives the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ebrank.environment.files import write_whole
from ebrank.errors import DataError
from ebrank.lab.simulation.storage import read_own
from ebrank.paper.framework.experiment import TuningRecord
from ebrank.paper.framework.figures import Figure
from ebrank.paper.framework.outcome import Finding, Table, from_plain, to_plain
from ebrank.paper.ledger import LedgerSection

KIND = "ebrank reproduce"
FORMAT = 4
RESULTS = "results.json"


@dataclass(frozen=True)
class RunRecord:
    """One run, trial by trial.

    Attributes:
        key, label: the entrant's; "" for a run of any other ranker.
        ranker: its text; `ebrank:epsilon=20/5` has 20 in the first fold, 5 in the second.
        entering_probability: η.
        believed: the examination curve rankers believe in; None for the users' own.
        users: the user model.
        click_rate: factor of their click probabilities.
        sessions: of each trial.
        cold, warm, cum, run: NDCG at the last checkpoint, one value per trial.
        labels: `graded` or `binary`.
        by_labels: Cold-, Warm- and Run-NDCG with standard gains, one value per trial each.
        by_fold: the mean of each measure in each fold, if folds are pooled.
    """

    key: str
    label: str
    ranker: str
    entering_probability: float
    believed: str | None
    users: str
    click_rate: float
    sessions: int
    cold: tuple[float, ...]
    warm: tuple[float, ...]
    cum: tuple[float, ...]
    run: tuple[float, ...]
    labels: str = "graded"
    by_labels: dict[str, tuple[float, ...]] = field(default_factory=dict)
    by_fold: dict[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetRecord:
    """Everything found on one dataset.

    Attributes:
        name: as in tables.
        fingerprint: a hash of its content; those of all folds, if folds are pooled.
        stands_in_for: the published dataset that a synthetic one replaces, if any.
        queries, rows, features: its size after preparation; of pooled folds, the largest one's.
        sessions: of a trial, in all folds together, unless a run says otherwise.
        tuning: how each ε was chosen.
        runs: everything that was run.
        tables, figures, findings: what experiments made of the runs.
        ledger: published figures beside ours.
        reference: whose published figures the ledger shows, in a word or two; "" for none.
        test_queries: how many queries measures and tests cover.
        folds: the numbers of the folds that are pooled; () for a single dataset.
    """

    name: str
    fingerprint: str
    stands_in_for: str | None
    queries: int
    rows: int
    features: int
    sessions: int
    tuning: tuple[TuningRecord, ...]
    runs: tuple[RunRecord, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    findings: tuple[Finding, ...]
    ledger: tuple[LedgerSection, ...]
    reference: str = ""
    test_queries: int | None = None
    folds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Document:
    """A reproduction.

    Attributes:
        command: repeats it.
        seed: of all trials.
        trials: of each run.
        only: the experiments, in the order of the report.
        versions: of the software that made it.
        config: the simulation.
        tables: those with a group of columns for each dataset.
        datasets: everything else, dataset by dataset.
    """

    command: str
    seed: int
    trials: int
    only: tuple[str, ...]
    versions: dict[str, str]
    config: dict[str, Any]
    tables: tuple[Table, ...]
    datasets: tuple[DatasetRecord, ...]


def write_document(document: Document, folder: Path) -> Path:
    """Write `results.json`; return its path."""
    path = folder / RESULTS
    write_whole(path, document_bytes(document))
    return path


def document_bytes(document: Document) -> bytes:
    """Return the content of `results.json`."""
    plain = {"kind": KIND, "format": FORMAT, **to_plain(document)}
    return (json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


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
    version = plain.get("format")
    if version != FORMAT:
        again = "Run `ebrank reproduce` again."
        raise DataError(f"the format is {version}, not {FORMAT}", path=path, remedy=again)
    try:
        document = from_plain(Document, plain)
    except DataError as problem:
        raise DataError(str(problem), path=path, remedy=remedy) from None
    if not document.datasets:
        raise DataError("datasets is empty", path=path, remedy=remedy)
    return document
