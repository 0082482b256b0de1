"""Imports: logs of each form, all the way into a store, in less than a minute."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.logs import MEMORY, generate, measured

EVENTS = 2_400_000
FORMS = (("parquet", 2_000_000, 200), ("ndjson", 500_000, 50), ("ubi", 500_000, 50))
"""Each form of a log, how many events of it are imported, and how many thousand a second at least.
"""
UBI_EVENT = """'shop' AS application, type AS action_name, ranking AS query_id,
    query AS user_query, CAST(time * 1000 AS BIGINT) AS timestamp,
    {'object': {'object_id': item, 'object_id_field': 'sku'}, 'position': {'ordinal': rank}}
        AS event_attributes"""


def figures() -> Iterator[Figure]:
    """Measure logs of each form, which hold the same events."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="ebrank-imports-") as name:
        folder = Path(name)
        generate(folder / "log", EVENTS)
        for form, most, least in FORMS:
            file = folder / f"{form}.{'parquet' if form == 'parquet' else 'ndjson'}"
            columns = UBI_EVENT if form == "ubi" else "*"
            how = "" if form == "parquet" else "(FORMAT json)"
            with duckdb.connect() as connection:
                connection.execute(
                    f"COPY (SELECT {columns} FROM '{folder}/log/*.parquet' LIMIT {most}) "
                    f"TO '{file}' {how}"
                )
            took = measured(f"import-{form}", file)
            wall, rate = most / took["seconds"] / 1e3, most / took["processor"] / 1e3
            yield Figure(
                f"{most:,} events, {form.replace('ubi', 'UBI as ndjson')}, to evidence and a store",
                f"{wall:.0f} k events/s; {rate:.0f} k per second of processor time",
                f"≥ {least} k/s",
                wall >= least,
            )


def imported(form: str, log: Path) -> float:
    """Aggregate a log and make a store of it, without training; return the seconds."""
    from ebrank.addons.logs import UBI, aggregate, read_evidence
    from ebrank.addons.logs.importing import import_evidence

    began, out = time.perf_counter(), log.with_suffix(".evidence.parquet")
    aggregate([log], out, memory=MEMORY, fields=UBI if form == "ubi" else None)
    asyncio.run(import_evidence(read_evidence(out), str(log.with_suffix(".store"))))
    return time.perf_counter() - began
