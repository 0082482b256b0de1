"""`ebrank store copy`: a store of another kind, or in another place."""

from __future__ import annotations

import asyncio

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option


@click.command(
    "copy",
    epilog=examples(
        "ebrank store copy ebrank-store postgresql://owner@db.example/shop",
        "ebrank store copy postgresql://server@db.example/shop ebrank-store --json",
    ),
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
def command(source: str, target: str, as_json: bool) -> None:
    """Copy a store to a new folder or database.

    The copy is equal to FROM to the bit: items, counts, log, models and the salt. It appears only
    once it is complete and verified. If it is interrupted, the same command continues where it
    stopped. Until then nobody can serve it: a database refuses, and a folder is called
    .NAME.copying. Changes made meanwhile are not copied, so stop the servers of FROM first.
    """
    from ebrank.service.ops.transfer.copying import copy_store

    with console.progress("copying") as progress:
        copied = asyncio.run(copy_store(source, target, progress))
    if as_json:
        console.print_json(copied._asdict())
    else:
        click.echo(
            f"equal: {copied.items:,} items of {copied.queries:,} queries and {copied.entries:,} "
            "entries of the log copied"
        )
