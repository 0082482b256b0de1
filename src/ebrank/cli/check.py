"""`ebrank check`: everything wrong with a store."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option

if TYPE_CHECKING:
    from ebrank.service.store.records import Fault


@click.command(
    "check",
    epilog=examples(
        "ebrank check ebrank-store",
        "ebrank check backups/monday.db --json",
        "ebrank check ebrank-store --config ebrank.toml",
    ),
)
@click.argument("store")
@click.option(
    "--config",
    metavar="FILE",
    help="Settings of the service, in TOML; needed if models use your own parts.",
)
@json_option
def command(store: str, config: str | None, as_json: bool) -> None:
    """Check a store for damage.

    Checks the files, references between tables, every query, the log, the models and the settings,
    and replays the log. STORE may be in use, and may be a backup. Exit code 0 means no damage, 1
    damage, 2 no readable store. To fix a store, see `ebrank repair`.
    """
    from ebrank.service.store.urls import RESTORE, can_rebuild

    faults = asyncio.run(found(store, config))
    if as_json:
        console.print_json(
            {"store": store, "good": not faults, "faults": [asdict(fault) for fault in faults]}
        )
    elif faults:
        for fault in faults:
            click.echo(f"{fault.kind}: {fault.what}")
        remedy = f"See `ebrank repair {store}`" if can_rebuild(store) else RESTORE
        click.echo(f"{len(faults)} faults (at most ten of each kind). {remedy}")
    else:
        click.echo("nothing is wrong")
    if faults:
        raise click.exceptions.Exit(1)


async def found(store: str, config: str | None) -> list[Fault]:
    """Return the faults of a store as it is now."""
    from ebrank.policy import policies
    from ebrank.service.core.models import own_parts
    from ebrank.service.ops import configuration
    from ebrank.service.ops.check import check
    from ebrank.service.store import open
    from ebrank.service.store.base import Damaged
    from ebrank.service.store.records import Fault

    settings = configuration.read(config, environment=os.environ)
    own = tuple(own_parts(policies.parse(settings.ranking.policy)))
    with console.progress("checking") as progress:
        try:
            async with open(store, "read") as opened:
                return await check(opened, time.time(), own_parts=own, progress=progress)
        except Damaged as problem:  # too much to open it
            return [Fault("file", str(problem))]
