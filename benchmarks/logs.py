"""Logs: 50 M generated events to evidence, by DuckDB and pandas.

`python -m benchmarks logs` takes some minutes and about 3 GB of disk, which it gives back. The
events are made by SQL from their numbers, so they are the same every time. Each runs in a
process of its own, which tells its peak memory; pandas, which keeps all in memory, on a tenth of
the log.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.figure import Figure

EVENTS, PARTS = 50_000_000, 10
MEMORY = 4 * 10**9
QUERIES, ITEMS, LENGTH, CLICKS = 2_000, 50, 10, 2
"""Of a list of ten there are ten impressions and two clicks, which may be the same one twice."""


def generate(folder: Path, events: int) -> None:
    """Write a log of some Parquet files, all but the same in size."""
    import duckdb

    rows = LENGTH + CLICKS
    folder.mkdir()
    with duckdb.connect() as connection:
        for part in range(PARTS):
            first, last = (events * at // PARTS for at in (part, part + 1))
            connection.execute(
                f"""COPY (
                SELECT 'r' || list AS ranking, 'query ' || (mixed % {QUERIES}) AS query,
                    'item ' || ((mixed // {QUERIES} + 7 * rank) % {ITEMS}) AS item,
                    CASE WHEN place < {LENGTH} THEN 'impression' ELSE 'click' END AS type,
                    CASE WHEN place < {LENGTH} THEN rank + 1 END AS rank,
                    1.7e9 + list / 100 AS time
                FROM (SELECT i // {rows} AS list, i % {rows} AS place,
                        (i // {rows} * 2654435761) % 4294967296 AS mixed,
                        CASE WHEN i % {rows} < {LENGTH} THEN i % {rows}
                            ELSE (i * 40503 // 65536) % {LENGTH} END AS rank
                    FROM range({first}, {last}) AS numbers(i)) AS made
                ) TO '{folder}/{part}.parquet' (COMPRESSION zstd)"""
            )


def measured(work: str, folder: Path) -> dict[str, float]:
    """Return what a run in a process of its own tells: seconds, on how many cores, and bytes."""
    command = [sys.executable, "-m", "benchmarks.logs", work, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(work: str, folder: Path) -> None:
    """Aggregate a log with DuckDB or with pandas, and print what it took."""
    out = folder.with_name(f"{work}-{folder.name}.parquet")
    began = time.perf_counter()
    if work == "pandas":
        with_pandas(folder, out)
        seconds = time.perf_counter() - began
    elif work.startswith("import-"):
        from benchmarks.imports import imported

        seconds = imported(work.removeprefix("import-"), folder)
    else:
        from ebrank.addons.logs import aggregate

        seconds = aggregate([folder], out, memory=MEMORY).seconds
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(one.ru_utime + one.ru_stime for one in used)
    peak = 1024 * max(one.ru_maxrss for one in used)
    print(json.dumps({"seconds": seconds, "processor": processor, "bytes": peak}))


def told(run: Mapping[str, float]) -> str:
    """Return what a run took; on a busy machine the processor's time says more."""
    return (
        f"{run['seconds']:.0f} s ({run['processor']:.0f} s of processor time), "
        f"{run['bytes'] / 1e9:.1f} GB at most"
    )


def with_pandas(folder: Path, out: Path) -> None:
    """Count as people do in a notebook: the same rows, without time."""
    import numpy as np
    import pandas as pd

    from ebrank.evidence.slots import FIRST_RANKS

    log = pd.read_parquet(folder, columns=["ranking", "query", "item", "type", "rank"])
    log["outcome"] = (log["type"] == "click").astype(np.int64)
    keys = ["query", "ranking", "item"]
    lists = log.groupby(keys, sort=False).agg({"outcome": "max", "rank": "min"}).reset_index()
    lists["slot"] = np.searchsorted(FIRST_RANKS, lists["rank"], side="right") - 1
    clicked = lists[lists["outcome"] > 0]
    both = pd.concat([lists.assign(outcome=0), clicked])
    counts = both.groupby(["query", "item", "outcome", "slot"]).size().reset_index(name="count")
    counts.to_parquet(out, index=False)


def same_rows(one: Path, other: Path) -> bool:
    """Return whether two files of evidence have the same counts."""
    import pyarrow.parquet as pq

    columns = ["query", "item", "outcome", "slot", "count"]
    tables = [pq.read_table(path, columns=columns) for path in (one, other)]
    return bool(tables[0].cast(tables[1].schema).equals(tables[1]))


def figures(events: int = EVENTS) -> Iterator[Figure]:
    """Measure both."""
    folder = Path(tempfile.mkdtemp(prefix="ebrank-logs-"))
    try:
        yield from _figures(folder, events)
    finally:
        shutil.rmtree(folder)


def _figures(folder: Path, events: int) -> Iterator[Figure]:
    log = folder / "log"
    generate(log, events)
    size = sum(file.stat().st_size for file in log.iterdir()) / 1e9
    what = f"{events / 1e6:g} M events ({size:.1f} GB of Parquet) to evidence"
    duck = measured("duckdb", log)
    limit = f"≤ {MEMORY / 1e9:g} GB of buffers"
    yield Figure(f"{what}: DuckDB", told(duck), limit, duck["bytes"] < 1.25 * MEMORY)
    tenth = folder / "tenth"
    tenth.mkdir()
    (log / "0.parquet").rename(tenth / "0.parquet")
    few, pandas = measured("duckdb", tenth), measured("pandas", tenth)
    equal = same_rows(folder / "duckdb-tenth.parquet", folder / "pandas-tenth.parquet")
    rates = [events / PARTS / one["seconds"] / 1e6 for one in (few, pandas)]
    yield Figure(
        "a tenth of it: DuckDB against pandas, which keeps everything in memory",
        f"{rates[0]:.2f} M events/s, {rates[0] / rates[1]:.1f}× as many as pandas, with "
        f"{pandas['processor'] / few['processor']:.1f}× less processor time; "
        f"{few['bytes'] / 1e9:.1f} GB against {pandas['bytes'] / 1e9:.1f} GB; "
        f"{'equal' if equal else '**not equal**'}",
        "≥ 1×, equal",
        equal and rates[0] >= rates[1],
    )


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]))
