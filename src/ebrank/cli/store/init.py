"""`ebrank store init`: an empty store."""

from __future__ import annotations

import asyncio

import click

from ebrank.cli.lazy import examples


@click.command(
    "init",
    epilog=examples(
        "ebrank store init postgresql://owner@db.example/shop",
        "ebrank store init 'postgresql://owner@db.example/shop?schema=ranking'",
    ),
)
@click.argument("url")
def command(url: str) -> None:
    """Create an empty store, unless it exists.

    The user in URL owns the tables. Servers can then connect as another user, who may read and
    write the tables, but not create or drop any: see docs/scale.md.
    """
    asyncio.run(made(url))


async def made(url: str) -> None:
    """Create a store and say so."""
    from ebrank.service.store import open
    from ebrank.service.store.urls import without_password

    async with open(url) as store:
        queries = len(await store.items.queries())
    holds = f"holds {queries:,} queries" if queries else "is empty"
    click.echo(f"{without_password(url)}: the store exists and {holds}")
