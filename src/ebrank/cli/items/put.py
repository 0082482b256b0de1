"""`ebrank items put`: a file of items into the catalog of a store or a server."""

from __future__ import annotations

import asyncio
import csv
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option, token_option
from ebrank.errors import DataError
from ebrank.extras import import_extra

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

    from ebrank.service import api


@click.command(
    "put",
    epilog=examples(
        "ebrank items put http://127.0.0.1:8000 catalog.ndjson",
        "ebrank items put http://127.0.0.1:8000 catalog.csv --token TOKEN",
        "ebrank items put ebrank-store catalog.parquet --json",
    ),
)
@click.argument("store", metavar="STORE|URL")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@token_option
@json_option
def command(store: str, file: Path, token: str | None, as_json: bool) -> None:
    """Add or update items in the catalog from a file.

    FILE is NDJSON (.ndjson, .jsonl) with lines like {"id": ..., "features": {...}}, or CSV or
    Parquet with a column `id` and one column per feature. Empty values are missing. Each item is
    validated separately; exit code 1 means that some were rejected.

    If a server is running, give its URL instead of STORE, which is created if it does not exist.
    Without a server, no settings apply, and items may lack features.
    """
    lines = lines_of(file)
    if store.startswith(("http://", "https://")):
        answer = over_http(store, lines, token)
    else:
        answer = asyncio.run(into_store(store, lines))
    if as_json:
        import msgspec

        console.print_json(msgspec.to_builtins(answer))
    else:
        for error in answer.errors:
            click.echo(f"line {error.line}: {error.reason}", err=True)
        click.echo(
            f"{answer.changed:,} items changed, {answer.unchanged:,} unchanged, "
            f"{answer.rejected:,} rejected"
        )
    if answer.rejected:
        raise click.exceptions.Exit(1)


def lines_of(path: Path) -> Iterator[bytes]:
    """Return the items of a file as lines of JSON."""
    readers: dict[str, Callable[[Path], Iterator[bytes]]] = {
        ".ndjson": _ndjson,
        ".jsonl": _ndjson,
        ".csv": _csv,
        ".parquet": _parquet,
    }
    if path.suffix not in readers:
        raise DataError(
            f"unsupported file type: {path.suffix or 'no extension'}",
            path=path,
            remedy=f"Use a file with one of these extensions: {', '.join(readers)}.",
        )
    return readers[path.suffix](path)


def _ndjson(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _csv(path: Path) -> Iterator[bytes]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file, strict=True)
        try:
            yield from _csv_lines(path, rows)
        except UnicodeDecodeError:
            from ebrank.service.api import not_utf8

            content = path.read_bytes()
            raise DataError(
                "not UTF-8",
                path=path,
                line=content.count(b"\n", 0, not_utf8(content)) + 1,
                remedy="Convert the file to UTF-8.",
            ) from None
        except csv.Error as problem:
            raise DataError(
                f"unreadable: {problem}",
                path=path,
                line=rows.line_num,
                remedy="Is there a quote too many, or one too few?",
            ) from None


def _csv_lines(path: Path, rows: CsvReader) -> Iterator[bytes]:
    """Yield an item for each row; empty lines before it make its number that of its line."""
    names = next(rows, [])
    _check_columns(path, names)
    numbered = 0
    for row in rows:
        if len(row) > len(names):
            raise DataError(
                f"{len(row)} values, but {len(names)} columns",
                path=path,
                line=rows.line_num,
                remedy='Put values that hold a comma or a line break into quotes: "a, b".',
            )
        yield from [b""] * (rows.line_num - numbered - 1)
        numbered = rows.line_num
        cells = dict(zip_longest(names, row, fillvalue=""))
        yield _line({name: _cell(name, text) for name, text in cells.items()}) if row else b""


def _parquet(path: Path) -> Iterator[bytes]:
    parquet = import_extra("pyarrow.parquet", extra="service", purpose="to read Parquet files")
    arrow = import_extra("pyarrow", extra="service", purpose="to read Parquet files")
    try:
        file = parquet.ParquetFile(path)
    except arrow.ArrowInvalid as problem:
        raise DataError(f"not a Parquet file: {problem}", path=path) from None
    _check_columns(path, file.schema_arrow.names)
    for batch in file.iter_batches(batch_size=1000):
        for row in batch.to_pylist():
            yield _line(row)


def _check_columns(path: Path, names: Sequence[str]) -> None:
    if "id" not in names:
        raise DataError(
            "column `id` not found", path=path, remedy="Rename the column of ids to `id`."
        )
    for name in names:
        if names.count(name) > 1:
            raise DataError(
                f"{names.count(name)} columns `{name}`", path=path, remedy="Keep one of them."
            )


def _line(row: dict[str, Any]) -> bytes:
    name = row.pop("id")
    item = {
        "id": str(name) if type(name) is int else name,
        "features": {feature: _sent(value) for feature, value in row.items()},
    }
    return json.dumps(item, default=str).encode()


def _sent(value: object) -> object:
    """Return a feature as JSON: NaN is missing; infinity becomes a text, which is rejected."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _cell(column: str, text: str) -> float | str | None:
    """Return an id as it is, and a feature as a number or None; other cells are rejected later."""
    if column == "id":
        return text
    try:
        return float(text) if text else None
    except ValueError:
        return text


async def into_store(url: str, lines: Iterator[bytes]) -> api.BulkResponse:
    """Put items into a store that no server uses."""
    from ebrank.service.core import bulk
    from ebrank.service.core.catalog import Catalog
    from ebrank.service.settings import FeaturesSettings
    from ebrank.service.store import open

    async def pieces() -> AsyncIterator[bytes]:
        for line in lines:
            yield line.rstrip(b"\r\n") + b"\n"

    async with open(url) as store:
        last = await store.log.last_time()
        catalog = await Catalog.open(store, FeaturesSettings(missing="mean"))
        answer = await bulk.load(catalog, pieces(), lambda: max(time.time(), last))
        await store.flush()
        return answer


def over_http(url: str, lines: Iterator[bytes], token: str | None) -> api.BulkResponse:
    """Put items into a store through its server."""
    from ebrank.client import Client

    with Client(url, token=token) as client:
        return client.load_catalog_lines(lines)
