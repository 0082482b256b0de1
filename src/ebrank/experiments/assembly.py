"""From what was run to what is written: the document of a reproduction, and its run times.

Each dataset makes a `Chapter`, after which its results need not be kept; chapters make a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ebrank.data.dataset import Dataset
from ebrank.data.origin import Origin
from ebrank.experiments import bookkeeping, grids
from ebrank.experiments.document import KIND, DatasetRecord, Document, RunRecord
from ebrank.experiments.lineup import ENTRANTS
from ebrank.experiments.measures import COLD, CUM, WARM
from ebrank.experiments.outcome import Figure, Outcome, Row, Table, written
from ebrank.experiments.paper import stands_in_for
from ebrank.experiments.run import Results, Run, Setup
from ebrank.experiments.runner import Order, Report
from ebrank.provenance import fingerprint, versions
from ebrank.simulation.result import Result
from ebrank.simulation.summary import about_config

T = TypeVar("T", Table, Figure)

SHARED = ("table1", "table2")
"""Tables that all datasets share."""


@dataclass(frozen=True)
class Chapter:
    """One dataset's part of a document.

    Attributes:
        record: what is its own.
        origin: where the dataset came from.
        shared: its part of the tables that all datasets share, by name.
        times: its run times.
    """

    record: DatasetRecord
    origin: Origin | None
    shared: dict[str, Table]
    times: dict[str, Any]


def chapter(order: Order, report: Report, *, several: bool) -> Chapter:
    """Return what was found on one dataset; with several, each has files of its own."""
    setup, whole = report.setup, _merged(report)
    data = setup.dataset
    own = [table for table in whole.tables if table.name not in SHARED]
    record = DatasetRecord(
        name=data.name,
        fingerprint=fingerprint(data),
        stands_in_for=stands_in_for(data.origin),
        queries=data.n_queries,
        rows=data.n_rows,
        features=data.n_features,
        sessions=setup.config.session_count(data),
        tuning=setup.tuning,
        runs=tuple(run_records(setup, report.results)),
        tables=tuple(_named(table, data, several) for table in own),
        figures=tuple(_named(figure, data, several) for figure in whole.figures),
        findings=whole.findings,
        ledger=bookkeeping.ledger(setup, report.results, whole.findings),
        test_queries=len(data.queries_in("test")),
    )
    shared = {table.name: table for table in whole.tables if table.name in SHARED}
    return Chapter(record, data.origin, shared, _times_of(order, report))


def document(command: str, order: Order, chapters: Sequence[Chapter]) -> Document:
    """Return the document that some datasets' chapters make."""
    origins = [chapter.origin for chapter in chapters]
    return Document(
        command=command,
        seed=order.seed,
        trials=order.trials,
        only=tuple(experiment.name for experiment in order.experiments),
        versions=versions(),
        config=written(about_config(order.config)),
        tables=tuple(_shared(chapters)),
        datasets=tuple(chapter.record for chapter in chapters),
        missing=bookkeeping.missing(origins, trials=order.trials, seed=order.seed),
    )


def times(chapters: Sequence[Chapter], jobs: int) -> dict[str, Any]:
    """Return the run times: by the clock, and of the trials that each experiment rests on.

    Trials that were found finished count with the time they took when they were run.
    """
    return {"kind": KIND, "jobs": jobs, "datasets": [chapter.times for chapter in chapters]}


def run_records(setup: Setup, results: Results) -> Iterator[RunRecord]:
    """Yield every run, as plain figures."""
    entrants = {
        setup.run(one.key, config): one
        for config in dict.fromkeys(run.config for run in results)
        for one in ENTRANTS
        if not one.tuned or (one.key, config.entering_probability) in setup.chosen
    }
    for run, result in results.items():
        one = entrants.get(run)
        key, label = ("", "") if one is None else (one.key, one.label)
        yield _run_record(key, label, run, result)


def side_by_side(tables: Sequence[Table]) -> Table:
    """Return one table with the columns of all; the rows, and what names them, are the same."""
    first = tables[0]
    columns = first.columns + tuple(column for table in tables[1:] for column in table.columns[1:])
    rows: list[Row] = []
    for beside in zip(*(table.rows for table in tables), strict=True):
        cells = beside[0].cells + tuple(cell for row in beside[1:] for cell in row.cells[1:])
        rows.append(replace(beside[0], cells=cells))
    return replace(first, columns=columns, rows=tuple(rows))


def below(tables: Sequence[Table]) -> Table:
    """Return one table with the rows of all, whose columns are the same."""
    return replace(tables[0], rows=tuple(row for table in tables for row in table.rows))


def _shared(chapters: Sequence[Chapter]) -> Iterator[Table]:
    for name in SHARED:
        tables = [chapter.shared[name] for chapter in chapters if name in chapter.shared]
        if tables:
            yield side_by_side(tables) if tables[0].columns[-1].group else below(tables)


def _merged(report: Report) -> Outcome:
    """Return all outcomes as one, with the table of tuning."""
    outcomes = list(report.outcomes.values())
    tuning = grids.table(report.setup.tuning)
    if tuning is not None:
        outcomes.append(Outcome(tables=(tuning,)))
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
        sessions=int(result.trials[0].sessions[-1]),
        cold=tuple(COLD.of(result).tolist()),
        warm=tuple(WARM.of(result).tolist()),
        cum=tuple(CUM.of(result).tolist()),
    )


def _named(value: T, data: Dataset, several: bool) -> T:
    """Return a table or figure that says whose it is, if there are several datasets."""
    if not several:
        return value
    suffix = re.sub(r"[^\w.-]+", "-", data.name)
    return replace(value, name=f"{value.name}-{suffix}", title=f"{value.title}, {data.name}")


def _times_of(order: Order, report: Report) -> dict[str, Any]:
    setup, results = report.setup, report.results
    experiments = []
    for one in order.experiments:
        runs = dict.fromkeys(one.runs(setup))
        experiments.append(
            {
                "name": one.name,
                "title": one.title,
                "runs": len(runs),
                "trial_seconds": sum(results[run].seconds for run in runs),
                "outcome_seconds": report.seconds[one.name],
            }
        )
    return {
        "name": setup.dataset.name,
        "tuning_seconds": report.seconds["tuning"],
        "running_seconds": report.seconds["running"],
        "experiments": experiments,
    }
