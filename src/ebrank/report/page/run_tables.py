"""How results were made, as tables: every run, and run times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from ebrank.experiments.document import DatasetRecord, RunRecord
from ebrank.experiments.framework.numbers import duration
from ebrank.experiments.framework.outcome import Cell, Column, Row, Table
from ebrank.report.page.standings import MEASURES


def runs_table(data: DatasetRecord) -> Table:
    """Return every run on a dataset."""
    titles = ("ranker", "users", "η", "believed", "sessions", *MEASURES)
    rows = tuple(Row(_run(run)) for run in data.runs)
    return Table("runs", f"All runs on {data.name}", "", tuple(map(Column, titles)), rows)


def times_table(times: Mapping[str, Any]) -> Table | None:
    """Return how long everything took, dataset by dataset; None if the file is not as expected.

    >>> times_table({"datasets": "soon"}) is None
    True
    """
    titles = ("what", "runs", "time of its trials", "time for its tables and figures")
    try:
        rows = tuple(row for data in times["datasets"] for row in _times(data))
    except (KeyError, TypeError, ValueError):
        return None  # a file of another version; the report works without it
    jobs = times.get("jobs", 1)
    caption = (
        f"Trials on {jobs} {'core' if jobs == 1 else 'cores'} at a time; a trial that several "
        "need is counted for each. Tuning and running are by the clock, without what was found "
        "finished."
    )
    return Table("times", "Run times", caption, tuple(map(Column, titles)), rows)


def _run(run: RunRecord) -> tuple[Cell | str, ...]:
    return (
        run.ranker,
        run.users + ("" if run.click_rate == 1 else f", click rate × {run.click_rate:g}"),
        f"{run.entering_probability:g}",
        run.believed or "as users are",
        Cell(run.sessions, digits=0),
        _mean(run.cold, 3),
        _mean(run.warm, 3),
        _mean(run.cum, 1),
        _mean(run.run, 3),
    )


def _mean(values: Sequence[float], digits: int) -> Cell:
    if not values:
        return Cell(None)
    return Cell(fmean(values), stdev(values) if len(values) > 1 else None, digits)


def _times(data: Mapping[str, Any]) -> list[Row]:
    name = str(data["name"])
    rows = [
        ("choosing ε", "", duration(data["tuning_seconds"]), ""),
        ("running what was not yet run", "", duration(data["running_seconds"]), ""),
    ]
    for experiment in data["experiments"]:
        seconds = duration(experiment["trial_seconds"]), duration(experiment["outcome_seconds"])
        rows.append((str(experiment["title"]), str(experiment["runs"]), *seconds))
    return [Row(cells, name) for cells in rows]
