"""`ebrank replay`: proof that counters and log agree."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option

if TYPE_CHECKING:
    from ebrank.service.ops.replay import ReplayReport


@click.command(
    "replay",
    epilog=examples(
        "ebrank replay ebrank-store",
        "ebrank replay backups/monday.db",
        "ebrank replay exports/2026-11 --json",
    ),
)
@click.argument("path", metavar="STORE|EXPORT")
@json_option
def command(path: str, as_json: bool) -> None:
    """Verify that a store's counters match its log.

    Rebuilds the counters from the snapshot and the log, and compares them bit by bit. The store may
    be in use; a backup or an export works too. Exit code 0 means equal, 1 different, 2 unreadable.
    """
    report = asyncio.run(replayed(path))
    if as_json:
        console.print_json({"path": path, "equal": report.equal, **asdict(report)})
    else:
        click.echo(str(report))
        for difference in report.differences:
            click.echo(f"  {difference}")
        if report.different > len(report.differences):
            click.echo("  …")
    if not report.equal:
        raise click.exceptions.Exit(1)


async def replayed(path: str) -> ReplayReport:
    """Return the report of a replay of a store, a backup or an export."""
    from ebrank.service.ops.replay import replay
    from ebrank.service.ops.transfer.exported import Exported
    from ebrank.service.ops.transfer.tables import is_export
    from ebrank.service.store import open

    with console.progress("replaying") as progress:
        if is_export(path):
            return await replay(Exported(path), progress)
        async with open(path, "read") as store:
            return await replay(store, progress)
