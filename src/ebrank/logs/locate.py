"""Where the first bad row is: engines count such rows, but people want the file and the line.

Files are read again, row by row, only once it is known that one of them has a bad row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from ebrank.errors import DataError
from ebrank.logs.files import Column, Source, csv_rows, json_rows, parquet_file
from ebrank.logs.sql import Counting

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
    sources: Sequence[Source], file: Path | None, counting: Counting, *, lists: bool = False
) -> DataError | None:
    """Return what is wrong with the first bad row of a file; None if there is none."""
    for source in sources:
        for path in source.files:
            if file is not None and path.resolve() != file.resolve():
                continue
            for place, row in _rows(path, source):
                name = _list_problem(row) if lists else _event_problem(row, counting)
                if name is not None:
                    return _told(path, source, place, name, row[name])
    return None


def unreadable(sources: Sequence[Source]) -> DataError | None:
    """Return where the first file that is not of its format stops being readable."""
    for source in sources:
        for path in source.files:
            try:
                for _ in _rows(path, source):
                    pass
            except DataError as problem:
                return problem
    return None


def _told(path: Path, source: Source, place: int, name: str, value: object) -> DataError:
    column = source.columns["items" if name == "item" and "items" in source.columns else name]
    said = f"column {column.name!r}" if column.path else f"field {name!r}"
    problem = f"{said} is empty" if value in (None, "") else f"{said} is {value!r}"
    if source.format == "parquet":
        problem = f"row {place}: {problem}"
    line = None if source.format == "parquet" else place
    remedy = f"{REMEDIES[name]}. Fix it, or leave out such rows with --skip-bad."
    return DataError(problem, path=path, line=line, remedy=remedy)


def _event_problem(row: dict[str, Any], counting: Counting) -> str | None:
    """Return the field that is wrong, by the rules of `sql.events`."""
    kind, value = _text(row["type"]), _number(row["value"])
    if kind in counting.valued and value is None:
        return "value"
    outcome = counting.outcome(kind, value)
    if outcome is None:
        return None
    for name in ("ranking", "item", "query"):
        if name == "query" and counting.lists:
            continue
        if not _text(row[name]):
            return name
    given = _text(row["rank"])
    if not counting.served:
        rank = _whole(given)
        if (given and (rank is None or rank + 1 - counting.first_rank < 1)) or (
            not given and outcome == 0
        ):
            return "rank"
    if not _is_time(row["time"]):
        return "time"
    return "value" if _text(row["value"]) and value is None else None


def _list_problem(row: dict[str, Any]) -> str | None:
    for name in ("ranking", "query"):
        if not _text(row[name]):
            return name
    return None


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _whole(text: str) -> int | None:
    digits = text.strip().removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else None


def _number(value: object) -> float | None:
    try:
        number = float(_text(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _is_time(value: object) -> bool:
    text = _text(value).strip()
    if not isinstance(value, str) or not text:
        return not (isinstance(value, float) and not math.isfinite(value))
    try:
        if not text.strip("0123456789."):
            float(text)
        else:
            datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _rows(path: Path, source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a file with their lines, or with their numbers from 1."""
    if source.format == "parquet":
        yield from _parquet_rows(path, source)
    elif source.format == "ndjson":
        yield from _json_rows(path, source)
    else:
        yield from _csv_rows(path, source)


def _csv_rows(path: Path, source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    places = {
        name: source.header.index(column.path[0]) if column.path else None
        for name, column in source.columns.items()
    }
    lines = csv_rows(path, source.format)
    next(lines)
    for line, values in lines:
        if not values:
            continue
        if len(values) != len(source.header):
            raise DataError(
                f"{len(values)} values, but {len(source.header)} columns",
                path=path,
                line=line,
                remedy='Put values that hold a comma or a line break into quotes: "a, b".',
            )
        yield (
            line,
            {name: None if place is None else values[place] for name, place in places.items()},
        )


def _json_rows(path: Path, source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, row in json_rows(path):
        yield line, {name: _inside(row, column) for name, column in source.columns.items()}


def _parquet_rows(path: Path, source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    moments = ("time", "nanoseconds")  # cannot be wrong
    wanted = {name: one for name, one in source.columns.items() if one.kind not in moments}
    tops = sorted({column.path[0] for column in wanted.values() if column.path})
    absent = dict.fromkeys(source.columns)
    with parquet_file(path) as file:
        number = 0
        for batch in file.iter_batches(batch_size=10_000, columns=tops):
            for row in batch.to_pylist():
                number += 1
                yield number, absent | {name: _inside(row, one) for name, one in wanted.items()}


def _inside(row: Any, column: Column) -> Any:  # noqa: ANN401 (of JSON)
    if not column.path:
        return None
    for part in column.path:
        row = row.get(part) if isinstance(row, dict) else None
    return row
