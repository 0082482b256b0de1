"""`ebrank backup`: a copy of a store, while it is served."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option
from ebrank.environment.paths import expanded


@click.command(
    "backup",
    epilog=examples(
        "ebrank backup ebrank-store backups/monday.db",
        "ebrank backup /var/lib/ebrank spare-store --json",
    ),
)
@click.argument("store")
@click.argument("target", metavar="FILE|FOLDER")
@json_option
def command(store: str, target: str, as_json: bool) -> None:
    """Back up a store to a file or a folder, even while it is in use.

    The backup is a snapshot of the store, verified and on disk when the command ends. If FOLDER
    exists, the backup in it can be served directly: `ebrank serve --store FOLDER`.
    """
    path = asyncio.run(copied(store, expanded(target)))
    size = path.stat().st_size
    if as_json:
        console.print_json({"path": str(path), "bytes": size})
    else:
        click.echo(f"{path}: {size / 1e6:,.1f} MB")


async def copied(store: str, target: Path) -> Path:
    """Copy a store as it is now; return the file."""
    from ebrank.service.store import open

    with console.progress("copying") as progress:
        async with open(store, "browse") as opened:
            return await opened.backup(target, progress)
