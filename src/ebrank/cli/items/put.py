"""`ebrank items put`: a file of items into the catalog of a store or a server."""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli._requests import answer, catalog_of
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option, token_option
from ebrank.errors import DataError

if TYPE_CHECKING:
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
    response = answer(
        store,
        token,
        lambda client: client.load_catalog_lines(lines),
        lambda url: into_store(url, lines),
    )
    if as_json:
        console.print_json(response)
    else:
        for error in response.errors:
            click.echo(f"line {error.line}: {error.reason}", err=True)
        click.echo(
            f"{response.changed:,} items changed, {response.unchanged:,} unchanged, "
            f"{response.rejected:,} rejected"
        )
    if response.rejected:
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
    """Yield an item for each row; empty lines before it make its number that of its line."""
    from ebrank.logs.files import csv_rows, wrong_width

    rows = csv_rows(path, "csv")
    _, names = next(rows, (1, []))
    _check_columns(path, names)
    numbered = 0
    for line, row in rows:
        if len(row) > len(names):
            raise wrong_width(path, line, len(row), len(names))
        yield from [b""] * (line - numbered - 1)
        numbered = line
        cells = dict(zip_longest(names, row, fillvalue=""))
        yield _line({name: _cell(name, text) for name, text in cells.items()}) if row else b""


def _parquet(path: Path) -> Iterator[bytes]:
    from ebrank.logs.files import parquet_file

    with parquet_file(path) as file:
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
    from ebrank.service.core.catalog import load
    from ebrank.service.store import open

    async def pieces() -> AsyncIterator[bytes]:
        for line in lines:
            yield line.rstrip(b"\r\n") + b"\n"

    async with catalog_of(open(url), missing="mean") as (_, catalog, began):
        return await load(catalog, pieces(), lambda: max(time.time(), began))
