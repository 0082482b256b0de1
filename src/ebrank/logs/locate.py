"""Where the first bad row is: engines count such rows, but people want the file and the line.

Files are read again, row by row, only once it is known that one of them has a bad row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from ebrank.errors import DataError
from ebrank.logs.engines import ROWS_AT_ONCE, SqlEngine
from ebrank.logs.files import LogColumn, LogSource, arrow
from ebrank.logs.sql import LINE, Counting, events, lists

REMEDIES = {
    "ranking": "A row needs the id of the list",
    "query": "A row needs its query",
    "item": "A row needs its item",
    "rank": "Ranks are whole numbers from 1 (--first-rank 0 if the log counts from 0), and an "
    "impression needs one",
    "value": "Behaviors with a threshold need a number",
    "time": "Times are seconds since 1970, or as in 2026-11-15T20:00:00Z",
}


def path_of(file: str) -> Path:
    """Return the path of a file as an engine names it.

    >>> path_of("file:///logs/a%20b.csv").as_posix()
    '/logs/a b.csv'
    """
    return Path(unquote(urlparse(file).path)) if file.startswith("file:/") else Path(file)


def bad_row(
    engine: SqlEngine,
    sources: Sequence[LogSource],
    path: Path,
    counting: Counting,
    folder: Path,
    view: str,
) -> DataError | None:
    """Return what is wrong with the first bad row of a file; None if there is none.

    The engine judges a copy of the file with numbered lines, by the same SQL as the whole log.
    """
    owners = (source for source in sources if path.resolve() in map(Path.resolve, source.files))
    source = next(owners, None)
    if source is None:
        return None
    copy = _numbered(path, source, folder)
    engine.offer("numbered_0", copy)
    judged = lists([copy], "numbered") if view == "lists" else events([copy], counting, "numbered")
    engine.view("numbered", judged)
    bad = f"SELECT {LINE}, problem FROM numbered WHERE problem IS NOT NULL ORDER BY {LINE} LIMIT 1"
    for line, name in engine.rows(bad, lambda share: None):
        value = next(row[name] for number, row in source.rows(path) if number == line)
        return _error(path, source, line, name, value)
    return None


def unreadable(sources: Sequence[LogSource]) -> DataError | None:
    """Return where the first file that is not of its format stops being readable."""
    for source in sources:
        for path in source.files:
            try:
                for _ in source.rows(path):
                    pass
            except DataError as problem:
                return problem
    return None


def _error(path: Path, source: LogSource, line: int, name: str, value: object) -> DataError:
    column = source.columns[name]
    place = f"column {column.name!r}" if column.path else f"field {name!r}"
    problem = f"{place} is empty" if value in (None, "") else f"{place} is {value!r}"
    remedy = f"{REMEDIES[name]}. Fix it, or leave out such rows with --skip-bad."
    if source.format == "parquet":
        return DataError(f"row {line}: {problem}", path=path, remedy=remedy)
    return DataError(problem, path=path, line=line, remedy=remedy)


def _numbered(path: Path, source: LogSource, folder: Path) -> LogSource:
    """Copy a file with the line of each row, or its number, in a column of its own."""
    pa = arrow()
    types = {
        "text": pa.string(),
        "whole": pa.int64(),
        "float": pa.float64(),
        "texts": pa.list_(pa.string()),
    }
    columns = {
        name: LogColumn((name,), column.kind) if column.kind in types else LogColumn()
        for name, column in source.columns.items()
    }
    columns[LINE] = LogColumn((LINE,), "whole")
    present = {name: column.kind for name, column in columns.items() if column.path}
    schema = pa.schema([(name, types[kind]) for name, kind in present.items()])
    copy = folder / "numbered.parquet"
    rows = ({**row, LINE: line} for line, row in source.rows(path))
    with pa.parquet.ParquetWriter(copy, schema) as file:
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            values = {
                name: [_plain(row[name], kind) for row in batch] for name, kind in present.items()
            }
            file.write_table(pa.table(values, schema=schema))
    return LogSource("parquet", (copy,), columns)


def _plain(value: Any, kind: str) -> Any:  # noqa: ANN401 (of JSON)
    """Return a value as engines read it: what JSON does not quote is text, too."""
    if kind == "texts":
        return [_plain(item, "text") for item in value] if isinstance(value, list) else None
    return json.dumps(value) if kind == "text" and not isinstance(value, str | None) else value
