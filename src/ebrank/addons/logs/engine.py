"""DuckDB runs the SQL, in this process: one machine, logs larger than its memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ebrank.addons.logs.fields import ROW
from ebrank.addons.logs.files import LogColumn, LogSource
from ebrank.environment.extras import import_extra
from ebrank.errors import EBRankError

ROWS_AT_ONCE = 65_536
_PREPARE = (
    "SET TimeZone = 'UTC'",
    "SET preserve_insertion_order = false",
    "SET enable_progress_bar = false",
)


class EngineError(EBRankError):
    """A statement failed; the text is the first line of DuckDB's."""


class Engine:
    """Runs SQL over files, in bounded memory, with a folder for what does not fit."""

    def __init__(self, *, memory: int, threads: int | None, spill: Path) -> None:
        self._duckdb = import_extra("duckdb", extra="logs", purpose="to aggregate logs")
        self._connection = self._duckdb.connect()
        self.run(f"SET memory_limit = '{memory}B'")
        self.run(f"SET temp_directory = {_text(str(spill))}")
        if threads is not None:
            self.run(f"SET threads = {threads}")
        for statement in _PREPARE:
            self.run(statement)

    def offer(self, view: str, source: LogSource) -> None:
        """Make a view of files, with a column for each field, and `file`, their path.

        A missing field is NULL. Each of `items` is a row, with `item` and its `rank`; if there are
        none, there is a row without an item. The field `ROW` numbers the rows.
        """
        columns = [
            _items(column) if name == "items" else f"{_value(column)} AS {name}"
            for name, column in source.columns.items()
            if name != ROW
        ]
        rows = _scan(source)
        if ROW in source.columns:
            self.run("SET preserve_insertion_order = true")
            rows = f"(SELECT *, filename, row_number() OVER () AS {ROW} FROM {rows})"
            columns.append(ROW)
        self.view(view, f"SELECT {', '.join(columns)}, filename AS file FROM {rows}")

    def view(self, name: str, text: str) -> None:
        """Give a query a name."""
        self.run(f"CREATE TEMP VIEW {name} AS {text}")

    def table(self, name: str, text: str) -> None:
        """Compute a query once, and keep its rows under a name."""
        self.run(f"CREATE TEMP TABLE {name} AS {text}")

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query with few rows."""
        with self._translated():
            rows: list[tuple[Any, ...]] = self._connection.execute(text).fetchall()
            return rows

    def batches(self, text: str) -> Iterator[Any]:
        """Yield the rows of a query as Arrow tables, in order."""
        arrow = import_extra("pyarrow", extra="logs", purpose="to write Parquet files")
        with self._translated():
            for batch in self._connection.sql(text).to_arrow_reader(ROWS_AT_ONCE):
                yield arrow.Table.from_batches([batch])

    def close(self) -> None:
        """Release everything."""
        self._connection.close()

    def run(self, statement: str) -> None:
        """Run a statement without rows."""
        with self._translated():
            self._connection.execute(statement)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._duckdb.OutOfMemoryException as problem:
            more = "Allow more --memory, or fewer --threads"
            raise EngineError(f"{_in_words(problem)} {more}") from problem
        except self._duckdb.Error as problem:
            raise EngineError(_in_words(problem)) from problem


def _in_words(problem: Exception) -> str:
    """Return the first line of an error that is not empty."""
    lines = (line.strip() for line in str(problem).splitlines())
    return next((line for line in lines if line), type(problem).__name__)


def _scan(source: LogSource) -> str:
    files = f"[{', '.join(_text(str(file)) for file in source.files)}]"
    if source.format == "parquet":
        return f"read_parquet({files}, hive_partitioning = false)"
    if source.format == "ndjson":
        return (
            f"read_json({files}, format = 'newline_delimited', columns = {_structure(source)}, "
            "hive_partitioning = false)"
        )
    delimiter = "\t" if source.format == "tsv" else ","
    names = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in source.header)
    return (
        f"read_csv({files}, header = true, auto_detect = false, columns = {{{names}}}, "
        f"delim = '{delimiter}', quote = '\"', escape = '\"', strict_mode = true, "
        "hive_partitioning = false)"
    )


def _structure(source: LogSource) -> str:
    """Return the types of the columns we read of JSON objects, nested ones within others."""
    tree: dict[str, Any] = {}
    for column in source.columns.values():
        if column.path:
            *outer, last = column.path
            branch = tree
            for part in outer:
                branch = branch.setdefault(part, {})
            branch[last] = "VARCHAR[]" if column.kind == "texts" else "VARCHAR"
    columns = ", ".join(f"{_text(name)}: {_text(_type(kind))}" for name, kind in tree.items())
    return f"{{{columns}}}"


def _type(kind: Any) -> str:  # noqa: ANN401 (a text, or a branch)
    if isinstance(kind, str):
        return kind
    return f"STRUCT({', '.join(f'{_name(name)} {_type(inner)}' for name, inner in kind.items())})"


def _value(column: LogColumn) -> str:
    if column.kind == "absent":
        return "CAST(NULL AS VARCHAR)"
    first, *inner = column.path
    value = _name(first) + "".join(f"[{_text(part)}]" for part in inner)
    return f"epoch_ns({value})" if column.kind == "nanoseconds" else value


def _items(column: LogColumn) -> str:
    if column.kind == "absent":
        return "CAST(NULL AS VARCHAR) AS item, NULL AS rank"
    value = _value(column)
    items = f"CASE WHEN len({value}) > 0 THEN {value} ELSE [NULL] END"  # else the list is lost
    return f"unnest({items}) AS item, generate_subscripts({items}, 1) AS rank"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
