"""`ebrank backup`: a copy of a store, while it is served."""

from __future__ import annotations

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option
from ebrank.paths import expanded


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
    """Copy a store to a file or a folder while it is served.

    The copy is the store at one moment, checked and on disk when this ends. An existing FOLDER with
    a backup in it is a store again: `ebrank serve --store FOLDER`.
    """
    from ebrank.service.store.sqlite.backup import backup

    with console.progress("copying") as progress:
        path = backup(expanded(store), expanded(target), progress)
    size = path.stat().st_size
    if as_json:
        console.print_json({"path": str(path), "bytes": size})
    else:
        click.echo(f"{path}: {size / 1e6:,.1f} MB")
