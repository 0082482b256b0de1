"""Spark gives the bytes that DuckDB gives. It needs `pip install 'ebrank[spark]'` and Java 17."""

from __future__ import annotations

import gzip
import importlib.util
import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ebrank.addons.logs import UBI, aggregate
from ebrank.addons.logs.engines import EngineError, EngineName
from ebrank.errors import DataError
from tests.addons.logs.replaying import (
    BEHAVIORS,
    ITEMS,
    QUERIES,
    RANKS,
    TYPES,
    VALUES,
    Event,
    Served,
    write,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # of Spark's own
    pytest.mark.skipif(
        importlib.util.find_spec("pyspark") is None,
        reason="Spark absent: pip install 'ebrank[spark]'",
    ),
    pytest.mark.skipif(
        not (os.environ.get("JAVA_HOME") or shutil.which("java")),
        reason="Java absent: install a runtime, such as openjdk-17-jre-headless",
    ),
]

ENGINES: tuple[EngineName, ...] = ("duckdb", "spark")


def random_events(seed: int, count: int) -> list[Event]:
    """Return events of many lists, with duplicates."""
    rng = random.Random(seed)
    events = []
    for _ in range(count):
        number = rng.randrange(count // 8)
        chance = random.Random(number)  # a list has one query, and an item of it one rank
        ranks = dict(zip(ITEMS, chance.sample(RANKS, len(ITEMS)), strict=True))
        query, item = chance.choice(QUERIES), rng.choice(ITEMS)
        at = 1_700_000_000 + rng.randrange(10**6) / 8
        kind, value = rng.choice(TYPES), rng.choice(VALUES)
        events.append(Event(f"r{number}", query, item, kind, ranks[item], at, value))
    return events + rng.choices(events, k=count // 5)


def in_many_forms(folder: Path) -> list[Path]:
    """Write a log as people do: other types, other columns, other ways to write a time."""
    first, second, third, fourth, fifth = (random_events(seed, 400) for seed in range(5))
    folder.mkdir()
    whole = pa.Table.from_pylist([vars(event) for event in first])
    moments = [int(event.time * 1000) for event in first]
    stamps = pa.array(moments, pa.timestamp("ms", "UTC"))
    pq.write_table(whole.set_column(5, "time", stamps), folder / "1.parquet")
    floats = [float(event.rank) for event in second]
    table = pa.Table.from_pylist([vars(event) for event in second])
    table = table.set_column(4, "rank", pa.array(floats))
    nanos = pa.array([int(event.time * 10**9) for event in second], pa.timestamp("ns"))
    pq.write_table(table.set_column(5, "time", nanos), folder / "2.parquet")
    text = write(folder / "3.csv", third).read_text().replace("C", '"C\nwith a line break"')
    with gzip.open(folder / "3.csv.gz", "wt") as packed:
        packed.write(text)
    (folder / "3.csv").unlink()
    text = write(folder / "6.csv", third).read_text()
    (folder / "6.csv").write_text(text, encoding="utf-8-sig")
    lines = [
        f"{datetime.fromtimestamp(one.time, UTC).isoformat()}\t{one.rank}.0\t{one.type}\t"
        f"{one.item}\tq{one.ranking}\t{one.ranking}\t{one.value:g}"
        for one in fourth
    ]
    (folder / "4.tsv").write_text(
        "\n".join(["time\trank\ttype\titem\tquery\tranking\tvalue", *lines])
    )
    write(folder / "5.ndjson", fifth)
    return [folder]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session that stays: starting one takes seconds."""
    from ebrank.addons.logs.engines.spark import Spark

    running = Spark(memory=10**9, threads=2, spill=tmp_path_factory.mktemp("spark"))
    yield running
    running.close()


def both(folder: Path, log: list[Path], **options: Any) -> None:  # noqa: ANN401
    """Assert that both engines write the same bytes, and tell the same."""
    reports, files = [], [folder / "duckdb.parquet", folder / "spark.parquet"]
    for path, engine in zip(files, ENGINES, strict=True):
        path.unlink(missing_ok=True)
        report = aggregate(log, path, engine=engine, threads=2, memory=10**9, **options)
        assert report.impressions > 100
        reports.append(vars(report) | {"seconds": 0})
    assert reports[0] == reports[1]
    assert pq.read_table(files[0]).equals(pq.read_table(files[1]))
    assert files[0].read_bytes() == files[1].read_bytes()
    assert list(folder.glob(".ebrank-spill-*")) == []


@pytest.mark.usefixtures("spark")
def test_both_engines_give_the_same_bytes(tmp_path: Path) -> None:
    log = in_many_forms(tmp_path / "log")
    both(tmp_path, log, behaviors=BEHAVIORS)
    lists = [
        Served(f"r{at}", QUERIES[at % 3], ITEMS[at % 4 :], 1_700_000_000.5 + at) for at in range(40)
    ]
    files = [write(tmp_path / "lists.parquet", lists), write(tmp_path / "more.ndjson", lists)]
    both(tmp_path, log, lists=files, impressions="served", behaviors=BEHAVIORS)
    empty = [replace(one, items=one.items if at % 2 else ()) for at, one in enumerate(lists)]
    both(tmp_path, log, lists=[write(tmp_path / "empty.ndjson", empty)], behaviors=BEHAVIORS)
    both(tmp_path, [ubi(tmp_path / "ubi.ndjson")], lists=[queries(tmp_path)], fields=UBI)
    bad = write(tmp_path / "a bad.csv", random_events(7, 80))
    bad.write_text(bad.read_text() + "r,q,i,click,x,3,1\n")
    for engine in ENGINES:
        with pytest.raises(DataError, match=r"a bad\.csv:98: column 'rank' is 'x'"):
            aggregate([bad], tmp_path / "no.parquet", engine=engine, behaviors=BEHAVIORS)
    bad.write_text(bad.read_text() + "r,q,i,click\n")
    for engine in ENGINES:
        with pytest.raises(DataError, match=r"a bad\.csv:99: 4 values, but 7 columns"):
            aggregate([bad], tmp_path / "no.parquet", engine=engine, behaviors=BEHAVIORS)


def test_a_process_that_ends_is_told(spark: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """Runs last: nothing can be computed after it."""
    context = type(spark._session.sparkContext)
    context._gateway.proc.kill()
    context._gateway.proc.wait()
    log = write(tmp_path / "log.csv", random_events(1, 80))
    with pytest.raises(EngineError, match="its process ended"):
        aggregate([log], tmp_path / "no.parquet", engine="spark", behaviors=BEHAVIORS)
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def ubi(path: Path) -> Path:
    """Write events as OpenSearch keeps them, some of other kinds."""
    rows: list[dict[str, Any]] = [{"action_name": "login"}]
    for event in random_events(9, 800):
        attributes = {
            "object": {"object_id": event.item, "object_id_field": "sku"},
            "position": {"ordinal": event.rank, "xy": {"x": 3.5}},
        }
        rows.append(
            {
                "query_id": event.ranking,
                "action_name": event.type,
                "timestamp": int(event.time * 1000),
                "event_attributes": attributes if event.type != "hover" else None,
            }
        )
    return write(path, rows)


def queries(folder: Path) -> Path:
    """Write the queries of those events."""
    rows = [{"query_id": f"r{at}", "user_query": QUERIES[at % 3]} for at in range(90)]
    return write(folder / "queries.ndjson", rows)
