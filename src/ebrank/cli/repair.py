"""`ebrank repair`: a store set right."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option


@click.command(
    "repair",
    epilog=examples(
        "ebrank repair ebrank-store",
        "ebrank repair ebrank-store --apply",
        "ebrank repair ebrank-store --apply --json",
    ),
)
@click.argument("store")
@click.option("--apply", is_flag=True, help="Repair the store; without this, nothing changes.")
@json_option
def command(store: str, apply: bool, as_json: bool) -> None:
    """Repair a store, or show what a repair would change.

    Sets future times, left by a wrong clock, to the current time; recomputes counters from the log;
    leaves out unreadable data. With --apply, a new store atomically replaces the old one, which
    stays next to it as log.db.before-…: delete it when all is well. Stop the server first.

    Exit code 0 means that nothing was wrong or that the store is repaired, 1 that a repair is
    needed, 2 that the store is unreadable or in use.
    """
    from ebrank.service.ops.repair import repair, survey

    with console.progress("repairing" if apply else "looking") as progress:
        report = asyncio.run((repair if apply else survey)(store, progress))
    if as_json:
        console.print_json({"store": store, "needed": report.needed, **asdict(report)})
    else:
        for line in report.lines():
            click.echo(line)
        if not report.needed:
            click.echo("nothing to repair")
        elif report.kept is None:
            click.echo("Nothing was changed. Stop the server, and run this again with --apply")
        else:
            click.echo(f"Repaired. The old store is in {report.kept}")
    if report.needed and report.kept is None:
        raise click.exceptions.Exit(1)
