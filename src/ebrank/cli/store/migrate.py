"""`ebrank store migrate`: bring a store to the version of this release."""

from __future__ import annotations

import asyncio

import click

from ebrank.cli.lazy import examples


@click.command(
    "migrate",
    epilog=examples("ebrank store migrate postgresql://owner@db.example/shop"),
)
@click.argument("url")
def command(url: str) -> None:
    """Migrate a store to the current version.

    URL is a store in PostgreSQL, and its user must own the tables. The migration is a single
    transaction. Stop the servers first, and start servers of this version afterwards.
    """
    asyncio.run(migrated(url))


async def migrated(url: str) -> None:
    """Migrate a store and say what it was and is."""
    from ebrank.service.store.postgresql.database import Address
    from ebrank.service.store.postgresql.schema import VERSION, migrate

    address = Address(url)
    with address.explained():
        connection = await address.connected()
        try:
            before = await migrate(connection, address.schema, address.name)
        finally:
            await connection.close()
    was = "already at" if before == VERSION else f"migrated from version {before} to"
    click.echo(f"{address.name}: {was} version {VERSION}")
