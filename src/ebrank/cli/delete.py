"""`ebrank delete`: an item, a query or a user's name, for good."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import click

from ebrank.cli import console
from ebrank.cli._requests import checked
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option, token_option

if TYPE_CHECKING:
    from ebrank.service import api


@click.command(
    "delete",
    epilog=examples(
        "ebrank delete ebrank-store --item sencha",
        "ebrank delete ebrank-store --query 'green tea'",
        "ebrank delete ebrank-store --user ada@example.org",
        "ebrank delete http://127.0.0.1:8000 --user ada@example.org",
        "ebrank delete ebrank-store --vacuum",
        "ebrank delete ebrank-store --list --json",
    ),
)
@click.argument("store", metavar="STORE|URL")
@click.option("--item", metavar="NAME", help="An item, in all queries and in the catalog.")
@click.option("--query", metavar="NAME", help="A query, with its items and its history.")
@click.option("--user", metavar="NAME", help="A user's name, in the log of lists.")
@click.option(
    "--vacuum", is_flag=True, help="Only rewrite the files, after deletions through a server."
)
@click.option("--list", "listing", is_flag=True, help="List the proofs of deletions.")
@token_option
@json_option
def command(
    store: str,
    item: str | None,
    query: str | None,
    user: str | None,
    vacuum: bool,
    listing: bool,
    token: str | None,
    as_json: bool,
) -> None:
    """Permanently delete an item, a query or a user's name.

    A deleted item leaves an anonymous entry in lists and counters, so that the log still adds up.
    Lists of a deleted user still count, but belong to nobody. The store keeps a proof of what kind
    of thing was deleted and when, with a digest instead of its name.

    If no server is running, the command then rewrites the store's files, so that no trace remains.
    If a server is running, give its URL instead of STORE, and run this with --vacuum once you have
    stopped it. Backups, exports and log.db.before-… files still contain the data: delete them too.
    """
    from ebrank.service import api

    given: dict[api.DeletedKind, str | None] = {"item": item, "query": query, "user": user}
    requests = [api.DeletionRequest(kind, name) for kind, name in given.items() if name is not None]
    if len(requests) + vacuum + listing != 1:
        raise click.UsageError("Give one of --item, --query, --user, --vacuum and --list.")
    served = store.startswith(("http://", "https://"))
    if vacuum and served:
        raise click.UsageError(
            "--vacuum needs the store itself, not a server. Stop the server first."
        )
    request = checked(requests[0]) if requests else None
    if served:
        proofs = over_http(store, request, token)
    else:
        proofs = asyncio.run(in_store(store, request, listing=listing))
    show(proofs, as_json=as_json, vacuumed=vacuum)


async def in_store(
    url: str, request: api.DeletionRequest | None, *, listing: bool
) -> list[api.DeletionOut]:
    """Delete from a store that no server uses, and rewrite its files; or list its proofs."""
    from ebrank.service.core.deletions import delete, proof_out
    from ebrank.service.core.fixed_settings import QUERY_NAMES
    from ebrank.service.core.queries import naming
    from ebrank.service.store import open, open_existing
    from ebrank.service.store.base import SALT

    async with open(url, "read") if listing else open_existing(url) as store:
        if listing:
            return [proof_out(one) for one in await store.deletions.all()]
        proofs = []
        if request is not None:
            meta = await store.meta.all()
            named = naming(normalize=meta.get(QUERY_NAMES) == "normalized")
            now = max(time.time(), await store.log.last_time())
            deleted = await delete(store, request, meta.get(SALT, ""), named, now)
            proofs = [proof_out(deleted.proof)]
        await store.deletions.purge()
        await store.flush()
        return proofs


def over_http(
    url: str, request: api.DeletionRequest | None, token: str | None
) -> list[api.DeletionOut]:
    """Delete from a store through its server, or list its proofs."""
    from ebrank.client import Client

    with Client(url, token=token) as client:
        if request is None:
            return client.deletions().deletions
        return [client.delete(request.kind, request.name)]


def show(proofs: list[api.DeletionOut], *, as_json: bool, vacuumed: bool) -> None:
    """Print proofs."""
    import msgspec

    if as_json:
        console.print_json({"deletions": msgspec.to_builtins(proofs)})
        return
    for one in proofs:
        day = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.time))
        click.echo(
            f"{day} UTC: {one.kind} {one.digest} deleted; {one.queries:,} queries, "
            f"{one.rankings:,} lists and {one.events:,} events changed"
        )
    if vacuumed:
        click.echo("The files contain no trace of what was deleted.")
    elif not proofs:
        click.echo("Nothing has been deleted so far.")
