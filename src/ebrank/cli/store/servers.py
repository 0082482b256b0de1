"""`ebrank store servers`: which servers use a store, and what each reports."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option

if TYPE_CHECKING:
    from ebrank.service.api import ServerOut

HEAD = ("server", "version", "up", "model", "jobs", "lists", "events", "memory", "stale")


@click.command(
    "servers",
    epilog=examples(
        "ebrank store servers postgresql://server@db.example/shop",
        "ebrank store servers postgresql://server@db.example/shop --json",
    ),
)
@click.argument("url")
@json_option
def command(url: str, as_json: bool) -> None:
    """List the servers that share a store.

    URL is a database: a store in a folder has only one server. Figures count from the start of each
    server. `memory` is the share of queries it found in memory; `stale` is the share of its writes
    to queries that another server had changed in the meantime. Both are good if the load balancer
    always sends a query to the same server.
    """
    from msgspec import to_builtins

    found = asyncio.run(heard(url))
    if as_json:
        console.print_json([to_builtins(server) for server in found])
    elif found:
        console.print_table(HEAD, list(map(row, found)))
    else:
        click.echo("no server has reported within the last minute")


async def heard(url: str) -> list[ServerOut]:
    """Return the servers of a store."""
    from ebrank.service.core.fleet import servers
    from ebrank.service.store import open

    async with open(url, "browse") as store:
        return await servers(store)


def row(server: ServerOut) -> Sequence[object]:
    """Return a server as cells of a table."""
    silent = f" (silent for {server.seen_seconds:.0f} s)" if server.seen_seconds > 10.0 else ""
    looked_up = server.from_memory + server.from_store
    return (
        server.name + silent,
        server.version,
        duration(max(time.time() - server.started, 0.0)),
        server.model,
        ", ".join(server.jobs) or "-",
        server.lists,
        server.events,
        share(server.from_memory, looked_up),
        share(server.stale, server.lists),
    )


def duration(seconds: float) -> str:
    """Return a time in words.

    >>> duration(59.0), duration(3700.0), duration(90000.0)
    ('59 s', '1 h 1 min', '1 d 1 h')
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def share(part: int, whole: int) -> str:
    """Return a part of a whole in percent."""
    return f"{part / whole:.0%}" if whole else "-"
