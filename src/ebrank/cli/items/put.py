"""`ebrank items put`: a file of items into the catalog of a store or a server."""

from __future__ import annotations

import asyncio
import csv
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option, token_option
from ebrank.errors import DataError
from ebrank.extras import import_extra

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

    If a server is running, give its URL instead of STORE. Without a server, no settings apply, and
    items may lack features.
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
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        _check_columns(path, rows.fieldnames or ())
        for row in rows:
            yield _line({name: _number(value) for name, value in row.items() if name is not None})


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


def _check_columns(path: Path, names: Any) -> None:  # noqa: ANN401 (names of columns)
    if "id" not in names:
        raise DataError(
            "column `id` not found", path=path, remedy="Rename the column of ids to `id`."
        )


def _line(row: dict[str, Any]) -> bytes:
    features = {name: value for name, value in row.items() if name != "id"}
    return json.dumps({"id": row["id"], "features": features}, default=str).encode()


def _number(text: str | None) -> float | str | None:
    """Return a cell as a number, None if it is empty; the server rejects other cells."""
    if not text:
        return None
    try:
        return float(text)
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
