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
    """Make an empty store, if there is none.

    The user of URL becomes the owner of its tables. Servers may then be another user, who may use
    them, but neither make nor drop any: see docs/scale.md.
    """
    asyncio.run(made(url))


async def made(url: str) -> None:
    """Make a store and say so."""
    from ebrank.service.store import open
    from ebrank.service.store.urls import without_password

    async with open(url) as store:
        queries = len(await store.items.queries())
    holds = f"holds {queries:,} queries" if queries else "is empty"
    click.echo(f"{without_password(url)}: the store is there and {holds}")
