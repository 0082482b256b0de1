"""`ebrank items withdraw`: takes items of the catalog out of the lists of all queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ebrank.cli._requests import answer, catalog_of
from ebrank.cli.lazy import examples
from ebrank.cli.options import token_option

if TYPE_CHECKING:
    from ebrank.client import Client


@click.command(
    "withdraw",
    epilog=examples(
        "ebrank items withdraw http://127.0.0.1:8000 sencha assam",
        "ebrank items withdraw ebrank-store sencha",
    ),
)
@click.argument("store", metavar="STORE|URL")
@click.argument("items", metavar="ID...", nargs=-1, required=True)
@token_option
def command(store: str, items: tuple[str, ...], token: str | None) -> None:
    """Withdraw items from the lists of all queries.

    They must be in the catalog. Their features and their history stay; `ebrank items put` brings
    them back. If a server is running, give its URL instead of STORE.
    """
    answer(
        store,
        token,
        lambda client: over_http(client, items),
        lambda url: in_store(url, items),
    )


def say(item: str, *, withdrawn: bool) -> None:
    """Say what became of an item, before the next one, which may fail."""
    click.echo(f"{item}: {'withdrawn' if withdrawn else 'was withdrawn before'}")


async def in_store(url: str, items: Sequence[str]) -> None:
    """Withdraw items in a store that no server uses."""
    from ebrank.service.store import open_existing

    async with catalog_of(open_existing(url)) as (store, catalog, now):
        for item in items:
            withdrawn = await catalog.withdraw(item, now)
            await store.flush()
            say(item, withdrawn=withdrawn)


def over_http(client: Client, items: Sequence[str]) -> None:
    """Withdraw items through a server."""
    for item in items:
        say(item, withdrawn=client.withdraw_from_all(item).withdrawn)
