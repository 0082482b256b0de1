"""`ebrank store migrate`: bring a store to the version of this release."""

from __future__ import annotations

import asyncio

import click

from ebrank.cli.lazy import examples


@click.command(
    "migrate",
    epilog=examples(
        "ebrank store migrate ebrank-store",
        "ebrank store migrate postgresql://owner@db.example/shop",
    ),
)
@click.argument("url")
def command(url: str) -> None:
    """Migrate a store to the current version.

    URL is a folder, or a database whose user owns the tables. Stop the servers and make a backup
    first: earlier versions of ebrank cannot read the store afterwards. The migration is a single
    transaction: if it is interrupted, nothing has changed.
    """
    from ebrank.service.store.urls import migrated

    name, before, now = asyncio.run(migrated(url))
    was = "already at" if before == now else f"migrated from version {before} to"
    click.echo(f"{name}: {was} version {now}")
