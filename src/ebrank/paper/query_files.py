"""The measures of each test query for other tools: CSV, and TREC's run and qrels files.

A table has a row for each ranker, trial and test query. Cold- and Warm-NDCG are the query's own;
its shares of Cum- and Run-NDCG add up to those of the trial.

TREC's files name an item by its query and its place in the file, from 1: `10032.7`. A run holds the
list that the last model makes for each test query, with what users did (warm) or without (cold).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from ebrank.environment.files import write_whole
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.simulation.result import Result, TrialResult
from ebrank.paper.framework.measures import COLD, CUM, RUN, WARM
from ebrank.typing import Ints

QueryRow: TypeAlias = tuple[str | int | float, ...]
COLUMNS = (
    *("dataset", "fold", "ranker", "trial", "query"),
    *(COLD.title, WARM.title, f"{CUM.title} share", f"{RUN.title} share"),
)
LISTS = {"cold": "cold_lists", "warm": "warm_lists"}


def query_rows(
    dataset: Dataset, results: Sequence[Result], fold: int | None = None
) -> Iterator[QueryRow]:
    """Yield a row for each ranker, trial and test query of one dataset or fold."""
    ids = dataset.query_ids[dataset.queries_in("test")].tolist()
    for result in results:
        for number, trial in enumerate(result.trials):
            columns = (
                *(trial.cold_by_query, trial.warm_by_query),
                *(trial.cum_by_query, trial.run_by_query),
            )
            about = (dataset.name, fold or "", result.ranker, number)
            for query, *values in zip(ids, *(column.tolist() for column in columns), strict=True):
                yield (*about, query, *values)


def write_table(path: Path, rows: Iterable[QueryRow]) -> None:
    """Write rows as CSV, below their heading."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    write_whole(path, text.getvalue().encode())


def write_trec(folder: Path, dataset: Dataset, results: Sequence[Result]) -> None:
    """Write `qrels.txt`, and a run for each ranker, trial and kind of list."""
    folder.mkdir(parents=True, exist_ok=True)
    names = _item_names(dataset)
    write_whole(folder / "qrels.txt", _qrels(dataset, names).encode())
    for result in results:
        tag = re.sub(r"[^\w.=-]+", "_", result.ranker)
        for number, trial in enumerate(result.trials):
            for kind in LISTS:
                text = _run(dataset, names, trial, kind, tag)
                write_whole(folder / f"{tag}_trial{number}.{kind}.run", text.encode())


def _item_names(dataset: Dataset) -> list[str]:
    """Return the name of each row: its query and its place there."""
    pointers = dataset.query_pointers.tolist()
    return [
        f"{query}.{place}"
        for query, start, stop in zip(
            dataset.query_ids.tolist(), pointers[:-1], pointers[1:], strict=True
        )
        for place in range(1, stop - start + 1)
    ]


def _qrels(dataset: Dataset, names: Sequence[str]) -> str:
    """Return the labels of the test queries' items."""
    labels, pointers = dataset.labels.tolist(), dataset.query_pointers.tolist()
    return "".join(
        f"{dataset.query_ids[query]} 0 {names[row]} {labels[row]}\n"
        for query in dataset.queries_in("test").tolist()
        for row in range(pointers[query], pointers[query + 1])
    )


def _run(dataset: Dataset, names: Sequence[str], trial: TrialResult, kind: str, tag: str) -> str:
    """Return the lists of one kind; scores fall with the rank, for tools that sort by them."""
    lists: Ints = getattr(trial, LISTS[kind])
    return "".join(
        f"{dataset.query_ids[query]} Q0 {names[row]} {rank} {1 / rank:.6f} {tag}\n"
        for query, rows in zip(dataset.queries_in("test").tolist(), lists.tolist(), strict=True)
        for rank, row in enumerate((row for row in rows if row >= 0), start=1)
    )
