"""`ebrank import`: a store made of an export."""

from __future__ import annotations

import asyncio

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option
from ebrank.paths import expanded


@click.command(
    "import",
    epilog=examples("ebrank import exports/2026-11 new-store"),
)
@click.argument("folder")
@click.argument("store")
@json_option
def command(folder: str, store: str, as_json: bool) -> None:
    """Make a new store of an export.

    STORE appears when it is complete and its counters are those that were exported, or not at all.
    """
    from ebrank.service.ops.transfer.exported import Exported
    from ebrank.service.ops.transfer.importing import import_store

    exported = Exported(expanded(folder))
    with console.progress("importing") as progress:
        asyncio.run(import_store(exported, store, progress))
    counts = exported.manifest["rows"]
    if as_json:
        console.print_json({"store": store, "rows": counts})
    else:
        told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        click.echo(f"{store}: {told}")
