"""Tables in files, row by row: CSV, TSV, NDJSON and Parquet, text gzipped or not.

Nothing is guessed from values: CSV is text, and NDJSON and Parquet say what they hold. Every
mistake names the file, the line, the column, the value, and the remedy.

>>> import tempfile
>>> file = Path(tempfile.mkdtemp()) / "items.csv"
>>> _ = file.write_text("item,price\\nsencha,0.4\\n")
>>> list(rows(file))
[(2, {'item': 'sencha', 'price': '0.4'})]
"""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ebrank.environment.extras import import_extra
from ebrank.errors import DataError

Format: TypeAlias = Literal["parquet", "csv", "tsv", "ndjson"]

FORMATS: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}
LONGEST = 2**24
"""Bytes of a line that nobody reads; what is packed may unfold to any length."""
SPELLED = {**dict.fromkeys(("", "na", "n/a", "null", "nan")), "true": 1.0, "false": 0.0}
"""Numbers as programs write them: those that are missing, and truths."""
UNIQUE = "Give each column a unique name."
_MARK = "\ufeff"
"""The byte order mark, with which some programs begin a text."""


def format_of(path: Path) -> Format:
    """Return the format of a file by its name, which may end with `.gz`."""
    name = path.name.lower()
    for suffix, format in FORMATS.items():
        if name.endswith(suffix) or (name.endswith(f"{suffix}.gz") and format != "parquet"):
            return format
    raise DataError(
        "unknown file format",
        path=path,
        remedy=f"Name it {', '.join('*' + suffix for suffix in FORMATS)}; text may be gzipped.",
    )


def rows(file: Path, columns: Sequence[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a file, with their lines; in Parquet, with their numbers.

    Args:
        file: its name tells its format.
        columns: those of a Parquet file to read; all by default.

    Raises:
        DataError: at the first row that is not of the file's format.
    """
    format = format_of(file)
    if format == "ndjson":
        yield from _objects(file)
    elif format == "parquet":
        yield from _records(file, columns)
    else:
        names, lines = header(file)
        for line, values in lines:
            if values and len(values) != len(names):
                problem = f"{len(values)} values, but {len(names)} columns"
                remedy = 'Put values that hold a comma or a line break into quotes: "a, b".'
                raise mistake(file, line, problem, remedy)
            if values:
                yield line, dict(zip(names, values, strict=True))


def mistake(file: Path, line: int, problem: str, remedy: str) -> DataError:
    """Return the error for a row, by its line, or in Parquet by its number."""
    if format_of(file) == "parquet":
        return DataError(f"row {line}: {problem}", path=file, remedy=remedy)
    return DataError(problem, path=file, line=line, remedy=remedy)


def wrong_value(file: Path, line: int, column: str, value: object, remedy: str) -> DataError:
    """Return the error for a value of a column."""
    is_what = "empty" if value in (None, "") else repr(value)
    return mistake(file, line, f"{column} is {is_what}", remedy)


def as_name(value: object) -> object:
    """Return a name as text, which may be written as a whole number; anything else as it is."""
    return str(value) if type(value) is int else value


def as_number(value: object) -> float | str | None:
    """Return a finite number, or None if it is missing; anything else as a text.

    >>> as_number("2.5"), as_number("NaN"), as_number(True), as_number("many")
    (2.5, None, 1.0, 'many')
    """
    if value is None:
        return None
    if isinstance(value, str) and value.lower() in SPELLED:
        return SPELLED[value.lower()]
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return str(value)
    if math.isnan(number):
        return None
    return number if math.isfinite(number) else str(value)


# --- CSV -----------------------------------------------------------------------------------------


def header(file: Path) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the names of the columns of a CSV file, and its other rows with their lines.

    Raises:
        DataError: at a line that is not CSV, or if the columns have no names of their own.
    """
    lines = _csv(file)
    _, names = next(lines, (1, []))
    if not names:
        raise DataError("no header", path=file, remedy="Begin with the names of the columns.")
    if "" in names:
        raise DataError("a column has no name", path=file, line=1, remedy=UNIQUE)
    _check_unique(file, names, line=1)
    return names, lines


def _csv(file: Path) -> Iterator[tuple[int, list[str]]]:
    texts = _lines(file)
    texts = itertools.chain([next(texts, "").removeprefix(_MARK)], texts)
    delimiter = "\t" if format_of(file) == "tsv" else ","
    reader = csv.reader(texts, delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error as problem:
        remedy = "Is there a quote too many, or one too few?"
        raise mistake(file, line, f"not CSV: {problem}", remedy) from None


def _check_unique(file: Path, names: Sequence[str], line: int | None = None) -> None:
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"column {name!r} is there twice", path=file, line=line, remedy=UNIQUE)


def unpacked(file: Path) -> Any:  # noqa: ANN401 (a binary file)
    """Open a text file, gzipped or not."""
    return gzip.open(file) if file.name.lower().endswith(".gz") else file.open("rb")


def _lines(file: Path) -> Iterator[str]:
    """Yield the lines of a text file, gzipped or not.

    Raises:
        DataError: at a line that is not UTF-8 or too long, or at bytes that are not gzipped.
    """
    number = 0
    try:
        with unpacked(file) as opened:
            for chunk in iter(partial(opened.readline, LONGEST), b""):
                if len(chunk) == LONGEST and not chunk.endswith(b"\n"):
                    problem = f"a line of {LONGEST >> 20} MB or more"
                    raise mistake(file, number + 1, problem, "Is this a log? Remove the line.")
                for line in chunk.splitlines(keepends=True):
                    number += 1
                    yield line.decode()
    except UnicodeDecodeError as error:
        problem = f"not UTF-8: {error.reason}"
        raise mistake(file, number, problem, "Convert the file to UTF-8.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"not a whole gzip file: {error}",
            path=file,
            remedy="Copy it again, or leave out .gz if it is not packed.",
        ) from None


# --- NDJSON and Parquet --------------------------------------------------------------------------


def _objects(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(_lines(file), start=1):
        if not line.strip():
            continue
        if line.startswith(_MARK):
            problem = "begins with a byte order mark, which JSON does not allow"
            raise mistake(file, number, problem, "Save it as UTF-8 without one.")
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise mistake(file, number, f"not JSON: {problem}", "Fix or remove it.") from None
        if not isinstance(row, dict):
            raise mistake(file, number, "not an object", 'Write {"item": "a", ...}.')
        yield number, row


def _records(file: Path, columns: Sequence[str] | None) -> Iterator[tuple[int, dict[str, Any]]]:
    with parquet_file(file) as opened:
        if columns is None:
            _check_unique(file, opened.schema_arrow.names)
        batches = opened.iter_batches(batch_size=10_000, columns=columns)
        found = (row for batch in batches for row in batch.to_pylist())
        try:
            yield from enumerate(found, start=1)
        except (OSError, arrow().ArrowInvalid) as problem:
            first = str(problem).splitlines()[0]
            raise DataError(f"damaged Parquet file: {first}", path=file) from None


def parquet_file(file: Path) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Open a Parquet file."""
    pa = arrow()
    try:
        return pa.parquet.ParquetFile(file)
    except (OSError, pa.ArrowInvalid) as problem:
        first = str(problem).splitlines()[0]
        raise DataError(f"not a whole Parquet file: {first}", path=file) from None


def arrow() -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Return pyarrow, or say how to install it."""
    purpose = "to read and write Parquet files"
    import_extra("pyarrow.parquet", extra="logs", purpose=purpose)
    return import_extra("pyarrow", extra="logs", purpose=purpose)
