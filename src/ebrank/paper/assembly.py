"""From results to the document of a reproduction.

Each dataset becomes a part of it, after which its results can be dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from ebrank.kernels.provenance import versions
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.result import LABELS, Result, about_config
from ebrank.paper.document import DatasetRecord, Document, RunRecord
from ebrank.paper.framework import tuning
from ebrank.paper.framework.entrants import CONTENDERS, ENTRANTS, TUNING, Entrant, entrant_of
from ebrank.paper.framework.experiment import Results, Run, Setup
from ebrank.paper.framework.figures import Figure
from ebrank.paper.framework.folds import AnyRanker
from ebrank.paper.framework.measures import MEASURES
from ebrank.paper.framework.outcome import Outcome, Row, Table
from ebrank.paper.framework.runner import FinishedDataset, ReproductionPlan
from ebrank.paper.ledger import ledger
from ebrank.paper.references import reference_for, stands_in_for

T = TypeVar("T", Table, Figure)

SHARED = ("table1", "table2")
"""Tables that all datasets share."""


DatasetPart: TypeAlias = tuple[DatasetRecord, dict[str, Table]]
"""What belongs to a dataset alone, and its part of the tables that all datasets share, by name."""


def dataset_part(command: str, finished: FinishedDataset, *, several: bool) -> DatasetPart:
    """Return one dataset's part; with several datasets, each has its own files.

    `command` is what was typed but for `--only`.
    """
    setup, whole = finished.setup, _merged(finished)
    data, parts = setup.dataset, setup.parts
    published = reference_for(data.origin)
    own = [table for table in whole.tables if table.name not in SHARED]
    record = DatasetRecord(
        name=setup.name,
        fingerprint=finished.fingerprint,
        stands_in_for=stands_in_for(data.origin),
        queries=max(part.queries for part in parts),
        rows=max(part.rows for part in parts),
        features=max(part.features for part in parts),
        sessions=setup.sessions,
        tuning=setup.tuning,
        runs=tuple(run_records(setup, finished.results)),
        tables=tuple(_named(table, setup.name, several) for table in own),
        figures=tuple(_named(figure, setup.name, several) for figure in whole.figures),
        findings=whole.findings,
        ledger=ledger(command, setup, finished.results, whole.findings),
        reference="" if published is None else published.whose,
        test_queries=setup.test_queries,
        folds=tuple(fold.number for fold in setup.folds if fold.number is not None),
    )
    shared = {table.name: table for table in whole.tables if table.name in SHARED}
    return record, shared


def document(command: str, plan: ReproductionPlan, parts: Sequence[DatasetPart]) -> Document:
    """Return the document that the datasets' parts make up."""
    behaviors = [f"{each.name}={each.weight:g}" for each in plan.config.behaviors.all]
    return Document(
        command=command,
        seed=plan.seed,
        trials=plan.trials,
        only=tuple(experiment.name for experiment in plan.experiments),
        versions=versions(),
        config=json.loads(json.dumps(about_config(plan.config) | {"behaviors": behaviors})),
        tables=tuple(_shared(parts)),
        datasets=tuple(record for record, _ in parts),
    )


def run_records(setup: Setup, results: Results) -> Iterator[RunRecord]:
    """Yield every run, as plain figures."""
    untuned: dict[AnyRanker, Entrant] = {
        registry.parse(entrant.key): entrant
        for entrant in (*ENTRANTS, *CONTENDERS)
        if not entrant.tuned
    }
    for run, result in results.items():
        entrant = _tuned_entrant(setup, run) or untuned.get(run.ranker)
        key, label = ("", "") if entrant is None else (entrant.key, entrant.label)
        yield _run_record(key, label, run, result)


def _tuned_entrant(setup: Setup, run: Run) -> Entrant | None:
    """Return the tuned entrant of a run; worlds without tuning share the usual one's."""
    for key in TUNING:
        usual = setup.chosen.get((key, setup.config))
        if run.ranker == setup.chosen.get((key, run.config), usual):
            return entrant_of(key)
    return None


def side_by_side(tables: Sequence[Table]) -> Table:
    """Return one table with the columns of all; their rows and row names are the same."""
    first = tables[0]
    columns = first.columns + tuple(column for table in tables[1:] for column in table.columns[1:])
    rows: list[Row] = []
    for beside in zip(*(table.rows for table in tables), strict=True):
        names = dict.fromkeys((row.cells[0], row.group) for row in beside)
        if len(names) > 1:
            raise ValueError(f"rows differ: {', '.join(str(name) for name, _ in names)}")
        cells = beside[0].cells + tuple(cell for row in beside[1:] for cell in row.cells[1:])
        rows.append(replace(beside[0], cells=cells))
    return replace(first, columns=columns, rows=tuple(rows))


def below(tables: Sequence[Table]) -> Table:
    """Return one table with the rows of all; their columns are the same."""
    return replace(tables[0], rows=tuple(row for table in tables for row in table.rows))


def _shared(parts: Sequence[DatasetPart]) -> Iterator[Table]:
    for name in SHARED:
        tables = [shared[name] for _, shared in parts if name in shared]
        if tables:
            yield side_by_side(tables) if tables[0].columns[-1].group else below(tables)


def _merged(finished: FinishedDataset) -> Outcome:
    """Return all outcomes as one, with the table of tuning."""
    outcomes = list(finished.outcomes.values())
    tried = tuning.table(finished.setup.tuning)
    if tried is not None:
        outcomes.append(Outcome(tables=(tried,)))
    return Outcome(
        tuple(table for outcome in outcomes for table in outcome.tables),
        tuple(figure for outcome in outcomes for figure in outcome.figures),
        tuple(finding for outcome in outcomes for finding in outcome.findings),
    )


def _run_record(key: str, label: str, run: Run, result: Result) -> RunRecord:
    believed = run.config.believed
    return RunRecord(
        key=key,
        label=label,
        ranker=result.ranker,
        entering_probability=run.config.entering_probability,
        believed=None if believed is None else repr(believed),
        users=str(run.config.users),
        click_rate=run.config.click_rate,
        sessions=int(result.trials[0].sessions[-1]),
        **{measure.name: tuple(measure.values(result).tolist()) for measure in MEASURES},
        labels=run.config.labels,
        by_labels={metric: tuple(getattr(result, metric).tolist()) for metric in LABELS},
        by_fold={metric: tuple(means.tolist()) for metric, means in result.by_fold.items()},
    )


def _named(value: T, dataset: str, several: bool) -> T:
    """Return a table or figure that names its dataset, if there are several."""
    if not several:
        return value
    suffix = re.sub(r"[^\w.-]+", "-", dataset)
    return replace(value, name=f"{value.name}-{suffix}", title=f"{value.title}, {dataset}")
