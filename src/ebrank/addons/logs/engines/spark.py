"""Spark: on this machine, or on a cluster that you run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ebrank.addons.logs.engines import ROWS_AT_ONCE, EngineError, in_words
from ebrank.addons.logs.files import LogColumn, LogSource
from ebrank.addons.tables import parquet_file
from ebrank.environment.extras import import_extra
from ebrank.errors import MissingExtraError

PART_BYTES = 10_000_000
"""How much of the files is shuffled into one part; Spark joins parts that turn out too small."""
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.csv.parser.columnPruning.enabled": "false",  # else lines of odd length pass
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
}


class Spark:
    """Runs SQL in a session of its own, or in the one that is there.

    Args:
        master: where the cluster is; None runs on this machine. Its nodes must see the files and
            the spill folder under the same names.
    """

    def __init__(
        self, *, memory: int, threads: int | None, spill: Path, master: str | None = None
    ) -> None:
        sql = _imported("pyspark.sql")
        if master is None and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
            raise MissingExtraError(
                "Spark needs Java 17 or newer, which is not installed; install a runtime, such as "
                "Debian's openjdk-17-jre-headless, or set JAVA_HOME"
            )
        self._spill = spill
        self._functions = _imported("pyspark.sql.functions")
        with _translated():
            self._own = sql.SparkSession.getActiveSession() is None
        builder = sql.SparkSession.builder.appName("ebrank aggregate")
        for name, value in (_SETTINGS | (_LOCAL if master is None else {})).items():
            builder = builder.config(name, value)
        cores = "*" if threads is None else str(threads)
        builder = builder.master(master or f"local[{cores}]")
        builder = builder.config("spark.driver.memory", f"{max(memory >> 20, 512)}m")
        builder = builder.config("spark.local.dir", str(spill))
        with _translated():
            self._session = builder.getOrCreate()
        self._bytes, self._views = 0, set[str]()

    def offer(self, view: str, source: LogSource) -> None:
        """Make a view of files, with a column for each field."""
        self._bytes += sum(file.stat().st_size for file in source.files)
        with _translated():
            parts = max(self._session.sparkContext.defaultParallelism, self._bytes // PART_BYTES)
            self._session.conf.set("spark.sql.shuffle.partitions", str(parts))
            self._call(view, self._read(source))

    def _read(self, source: LogSource) -> Any:  # noqa: ANN401 (a data frame)
        column, function = self._functions.col, self._functions
        files = [str(file) for file in source.files]
        reader = self._session.read.option("mode", "FAILFAST")
        if source.format == "parquet":
            frame = reader.parquet(*files)
        elif source.format == "ndjson":
            frame = reader.schema(_structure(source)).json(files)
        else:
            reader = reader.schema(", ".join(f"{_name(name)} STRING" for name in source.header))
            frame = reader.csv(
                files,
                header=True,
                sep="\t" if source.format == "tsv" else ",",
                quote='"',
                escape='"',
                multiLine=True,
                enforceSchema=True,
                maxCharsPerColumn=-1,
            )
        chosen = [column("_metadata.file_path").alias("file")]
        for name, place in source.columns.items():
            if name == "items" and place.kind != "absent":
                items = function.posexplode_outer(_column(place, function))
                chosen.append(items.alias("place", "item"))
            else:
                chosen.append(_column(place, function).alias("item" if name == "items" else name))
        frame = frame.select(*chosen)
        if "items" in source.columns:
            listed = source.columns["items"].kind != "absent"
            frame = frame.withColumn("rank", column("place") + 1 if listed else function.lit(None))
        return frame

    def view(self, name: str, text: str) -> None:
        """Give a query a name."""
        with _translated():
            self._call(name, self._session.sql(text))

    def table(self, name: str, text: str) -> None:
        """Compute a query once, and keep its rows under a name."""
        folder = str(self._spill / name)
        with _translated():
            self._session.sql(text).write.parquet(folder)
            self._call(name, self._session.read.parquet(folder))

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query with few rows."""
        with _translated():
            return [tuple(row) for row in self._session.sql(text).collect()]

    def batches(self, text: str) -> Iterator[Any]:
        """Yield the rows of a query as Arrow tables, in order."""
        folder = self._spill / "batches"
        with _translated():
            self._session.sql(text).write.parquet(str(folder))
        arrow = _imported("pyarrow")
        for part in sorted(folder.glob("part-*.parquet")):  # each follows the one before
            with parquet_file(part) as file:
                for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
                    yield arrow.Table.from_batches([batch])

    def close(self) -> None:
        """End the session and its process, unless it is somebody else's.

        Another session in the same process would keep the memory and the folder of this one.
        """
        if not self._own:
            with suppress(EngineError), _translated():
                for name in self._views:
                    self._session.catalog.dropTempView(name)
            return
        context = type(self._session.sparkContext)
        gateway = context._gateway
        with suppress(EngineError), _translated():  # the process may have ended before
            self._session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        context._gateway = context._jvm = None

    def _call(self, name: str, frame: Any) -> None:  # noqa: ANN401 (a data frame)
        frame.createOrReplaceTempView(name)
        self._views.add(name)


def _imported(module: str) -> Any:  # noqa: ANN401 (Spark is not typed)
    return import_extra(module, extra="spark", purpose="to aggregate logs with Spark")


@contextmanager
def _translated() -> Iterator[None]:
    """Turn errors of Spark and of its process into `EngineError`."""
    errors, protocol = _imported("pyspark.errors"), _imported("py4j.protocol")
    try:
        yield
    except (protocol.Py4JNetworkError, ConnectionError) as problem:
        raise EngineError("Spark: its process ended. It may need more --memory") from problem
    except (errors.PySparkException, protocol.Py4JError) as problem:
        raise EngineError(f"Spark: {in_words(problem)}") from problem


def _structure(source: LogSource) -> str:
    """Return the types of the columns we read of JSON objects, nested ones within others."""
    tree = source.nested("STRING", "ARRAY<STRING>")
    return ", ".join(f"{_name(name)} {_type(kind)}" for name, kind in tree.items())


def _type(kind: Any) -> str:  # noqa: ANN401 (a text, or a branch)
    if isinstance(kind, str):
        return kind
    return f"STRUCT<{', '.join(f'{_name(name)}: {_type(inner)}' for name, inner in kind.items())}>"


def _column(column: LogColumn, functions: Any) -> Any:  # noqa: ANN401
    if column.kind == "absent":
        return functions.lit(None).cast("string")
    return functions.col(".".join(_name(part) for part in column.path))


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
