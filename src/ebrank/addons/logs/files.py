"""The files of a log: which there are, their formats, and where our columns are in them.

Files with the same columns are read together. Nothing is guessed from values: CSV and JSON are
text, and a Parquet file declares its columns.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ebrank.addons.logs.fields import REMEDIES
from ebrank.addons.tables import UNIQUE, Format, arrow, format_of, header, parquet_file, rows
from ebrank.environment.paths import expanded
from ebrank.errors import DataError

Kind: TypeAlias = Literal[
    "text", "whole", "float", "boolean", "time", "nanoseconds", "texts", "absent"
]
"""What a column holds: texts, numbers, truths, moments, lists of texts, or nothing at all."""

LOOK = 1000
"""Lines of an NDJSON file by which we know that a column is not there, if they are all."""
_ALLOWED: Mapping[str, tuple[Kind, ...]] = {
    "rank": ("text", "whole", "float"),
    "value": ("text", "whole", "float"),
    "time": ("text", "whole", "float", "time", "nanoseconds"),
    "items": ("texts",),
    "clicked": ("text", "whole", "float", "boolean"),
}
_NEVER_WRONG = ("absent", "time", "nanoseconds")


@dataclass(frozen=True)
class LogColumn:
    """Where a field is: the path of a column, through nested ones, and what it holds."""

    path: tuple[str, ...] = ()
    kind: Kind = "absent"

    @property
    def name(self) -> str:
        """Its name in messages."""
        return ".".join(self.path)


@dataclass(frozen=True)
class LogSource:
    """Files of one format with the same columns.

    Attributes:
        columns: by field, for those we read.
        header: the names of all columns of a CSV file, in their order; () for others.
    """

    format: Format
    files: tuple[Path, ...]
    columns: Mapping[str, LogColumn]
    header: tuple[str, ...] = ()

    def rows(self, file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the fields of each row of a file, with its line, or its number if in Parquet.

        Raises:
            DataError: at a row that is not of the file's format.
        """
        checked = {name: c for name, c in self.columns.items() if c.kind not in _NEVER_WRONG}
        tops = sorted({column.path[0] for column in checked.values()})
        absent = dict.fromkeys(self.columns)
        for line, row in rows(file, tops):
            yield line, absent | {name: _inside(row, c.path) for name, c in checked.items()}


def find(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Resolve paths to files; a folder's files are sorted by name."""
    files: list[Path] = []
    for path in map(expanded, paths):
        if path.is_dir():
            inside = sorted(
                file
                for file in path.rglob("*")
                if file.is_file()
                # What Spark writes beside data, such as `_SUCCESS`, is hidden.
                and not any(part[0] in "._" for part in file.relative_to(path).parts)
            )
            if not inside:
                raise DataError("empty folder", path=path, remedy="Name the files of the log.")
            files += inside
        elif path.is_file():
            files.append(path)
        else:
            raise DataError("file not found", path=path, remedy="Name the files of the log.")
    for path in files:
        if set(str(path)) & set("*?[]{}"):
            raise DataError(
                "DuckDB takes such a name for a pattern", path=path, remedy="Rename it: no *?[]{}."
            )
    return files


def sources(
    files: Sequence[Path], wanted: Mapping[str, str], required: Iterable[str]
) -> list[LogSource]:
    """Return the files in groups with the same columns, with the columns of the wanted fields.

    A required column must be in at least one of the files; in others it is empty.

    Raises:
        DataError: naming the file, and the column that is not there or holds something else.
    """
    groups: dict[tuple[Any, ...], list[Path]] = {}
    absent, names = set(required), list[str]()
    for file in files:
        format = format_of(file)
        names_of = _header(file) if format in ("csv", "tsv") else ()
        shape, open_ended = _shape(file, format, names_of)
        columns = {
            name: _column(file, format, shape, open_ended, name, column)
            for name, column in wanted.items()
        }
        absent -= {name for name, column in columns.items() if column.kind != "absent"}
        groups.setdefault((format, tuple(sorted(columns.items())), names_of), []).append(file)
        names = names or list(shape)
    if absent and files and not names:
        raise empty_log(files[0])
    if absent and files:
        there = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        raise DataError(
            f"no column {wanted[min(absent)]!r}; there are {there or 'none'}",
            path=files[0],
            remedy=f"Name it with --map {min(absent)}=COLUMN.",
        )
    return [
        LogSource(format, tuple(paths), dict(columns), header)
        for (format, columns, header), paths in groups.items()
    ]


def empty_log(file: Path) -> DataError:
    """Return the error for a log without events."""
    return DataError(
        "the log is empty: it has no event",
        path=file,
        remedy="Name other files, or check how they were written.",
    )


Shape: TypeAlias = dict[str, Any]
"""The columns of a file: those inside, what it holds in text, or its Arrow type."""


def _shape(file: Path, format: Format, header: Sequence[str]) -> tuple[Shape, bool]:
    """Return the known columns of a file, and whether there may be more."""
    if format == "parquet":
        with parquet_file(file) as opened:
            return _arrow_shape(opened.schema_arrow), False
    if format != "ndjson":
        return dict.fromkeys(header, "text"), False
    shape: Shape = {}
    lines = rows(file)
    for _, row in itertools.islice(lines, LOOK):
        _add_names(shape, row)
    return shape, next(lines, None) is not None


def _arrow_shape(fields: Iterable[Any]) -> Shape:
    """Return the columns of a schema or a struct; a name that is there twice means none of them."""
    kinds = [(field.name, field.type) for field in fields]
    names = [name for name, _ in kinds]
    is_struct = arrow().types.is_struct
    return {
        name: _arrow_shape(kind) if is_struct(kind) else kind
        for name, kind in kinds
        if names.count(name) == 1
    }


def _add_names(shape: Shape, row: Mapping[str, Any]) -> None:
    for name, value in row.items():
        if not isinstance(value, dict):
            shape.setdefault(name, "text")
            continue
        if not isinstance(shape.get(name), dict):
            shape[name] = {}
        _add_names(shape[name], value)


def _column(
    file: Path, format: Format, shape: Shape, open_ended: bool, name: str, column: str
) -> LogColumn:
    """Return where a field is: in a column of this whole name, or along the parts between dots."""
    path = (column,) if column in shape else tuple(column.split("."))
    held: Any = shape
    for part in path:
        inside = held if isinstance(held, dict) else {}
        if format == "parquet" and part in inside:
            _check_case(file, [other for other in inside if other.lower() == part.lower()])
        held = inside.get(part)
    if held is None and not open_ended:
        return LogColumn()
    if format == "ndjson":
        return LogColumn(path, "texts" if name == "items" else "text")
    if isinstance(held, dict):
        held = "struct"
    kind = held if isinstance(held, str) else kind_of(held)
    if kind not in _ALLOWED.get(name, ("text", "whole")):
        names = "Write names as texts, or as whole numbers"
        raise DataError(
            f"column {column!r} has the type {held}, which does not fit {name}",
            path=file,
            remedy=f"{REMEDIES[name] if name in _ALLOWED else names}.",
        )
    return LogColumn(path, kind)


def _header(file: Path) -> tuple[str, ...]:
    names, _ = header(file)
    _check_case(file, names, line=1)
    return tuple(names)


def _check_case(file: Path, names: Sequence[str], line: int | None = None) -> None:
    """Raise if two columns differ only in case: DuckDB cannot tell `Item` from `item`."""
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(name.lower(), name)
        if other != name:
            problem = f"columns {other!r} and {name!r} differ only in case"
            raise DataError(problem, path=file, line=line, remedy=UNIQUE)


def _inside(value: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 (of JSON)
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def kind_of(kind: Any) -> Kind | None:  # noqa: ANN401
    """Return the kind of an Arrow type, None if it is not supported."""
    types = arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_list(kind) or types.is_large_list(kind):
        empty = types.is_null(kind.value_type)  # all lists are
        return "texts" if empty or kind_of(kind.value_type) in ("text", "whole") else None
    if types.is_string(kind) or types.is_large_string(kind):
        return "text"
    if types.is_integer(kind):
        return "whole"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_floating(kind):
        return "float"
    if types.is_timestamp(kind):
        return "nanoseconds" if kind.unit == "ns" else "time"
    return "time" if types.is_date(kind) else None
