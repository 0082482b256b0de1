"""`ebrank items list`: a page of the catalog of a store or a server."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from ebrank.cli import console
from ebrank.cli._requests import answer, catalog_of, checked
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option, token_option

if TYPE_CHECKING:
    from ebrank.service import api


@click.command(
    "list",
    epilog=examples(
        "ebrank items list ebrank-store",
        "ebrank items list http://127.0.0.1:8000 --after sencha --limit 20",
        "ebrank items list http://127.0.0.1:8000 --json --token TOKEN",
    ),
)
@click.argument("store", metavar="STORE|URL")
@click.option("--after", metavar="ID", default="", help="Begin after this item.")
@click.option("--limit", type=int, default=100, show_default=True, help="Maximum number of items.")
@token_option
@json_option
def command(store: str, after: str, limit: int, token: str | None, as_json: bool) -> None:
    """List the items in the catalog.

    They are ordered by id. If a server is running, you may also give its URL instead of STORE.
    """
    from ebrank.service import api

    request = checked(api.CatalogRequest(after, limit))
    page = answer(
        store,
        token,
        lambda client: client.catalog_items(cursor=request.cursor, limit=request.limit),
        lambda url: in_store(url, request),
    )
    if as_json:
        console.print_json(page)
        return
    names = list(dict.fromkeys(name for item in page.items for name in item.features))
    rows = [
        (
            item.id,
            *("" if item.features[name] is None else f"{item.features[name]:g}" for name in names),
            "withdrawn" if item.withdrawn else "",
        )
        for item in page.items
    ]
    console.print_table(("item", *names, ""), rows)
    if page.next is not None:
        console.note(f"There are more: --after {shlex.quote(page.next)}")


async def in_store(url: str, request: api.CatalogRequest) -> api.CatalogResponse:
    """Return a page of the catalog of a store."""
    from ebrank.service.store import open

    async with catalog_of(open(url, "read")) as (_, catalog, _):
        return await catalog.page(request)
