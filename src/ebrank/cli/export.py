"""`ebrank export`: a store as Parquet files."""

from __future__ import annotations

import asyncio

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option
from ebrank.environment.paths import expanded


@click.command(
    "export",
    epilog=examples(
        "ebrank export ebrank-store exports/2026-11",
        "ebrank export backups/monday.db exports/monday --json",
    ),
)
@click.argument("store")
@click.argument("folder")
@json_option
def command(store: str, folder: str, as_json: bool) -> None:
    """Write a store's items, log and models as Parquet files.

    STORE may be in use: the export is a snapshot from the moment it began. FOLDER must be new or
    empty. docs/store.md describes the columns; `ebrank import` reads them back.
    """
    counts = asyncio.run(exported(store, folder))
    if as_json:
        console.print_json({"folder": folder, "rows": counts})
    else:
        told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        click.echo(f"{folder}: {told}")


async def exported(store: str, folder: str) -> dict[str, int]:
    """Export a store as it is now; return the rows of each table."""
    from ebrank.service.ops.transfer.exporting import export
    from ebrank.service.store import open

    with console.progress("exporting") as progress:
        async with open(store, "read") as opened:
            return await export(opened, expanded(folder), progress)
