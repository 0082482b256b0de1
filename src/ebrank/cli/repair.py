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
@click.option("--apply", is_flag=True, help="Do it; without, nothing is changed.")
@json_option
def command(store: str, apply: bool, as_json: bool) -> None:
    """Set a store right, or say what that would change.

    Times after now become now, for a clock was wrong once; counters are added up again from the
    log; what cannot be read is left out. With --apply a new store takes the place of the old one in
    one step. The old one is kept beside it, as log.db.before-…: delete it when all is well. Stop
    the server first. Exit code 0 means that nothing was wrong or that it was set right, 1 that
    there is something to set right, 2 that the store cannot be read or is in use.
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
            click.echo(f"Repaired. The store as it was: {report.kept}")
    if report.needed and report.kept is None:
        raise click.exceptions.Exit(1)
