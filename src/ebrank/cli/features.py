"""`ebrank features`: the features that items have, and changes to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli._requests import answer, catalog_of, checked
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option, token_option

if TYPE_CHECKING:
    from ebrank.client import Client
    from ebrank.service import api

ACTIONS = ("show", "add", "require", "remove", "rename", "name")


@click.command(
    "features",
    epilog=examples(
        "ebrank features ebrank-store",
        "ebrank features ebrank-store add stock --shared --dry-run",
        "ebrank features ebrank-store require stock",
        "ebrank features ebrank-store remove age",
        "ebrank features ebrank-store rename prize price",
        "ebrank features ebrank-store name price rating age",
        "ebrank features http://127.0.0.1:8000 add stock --shared",
    ),
)
@click.argument("store", metavar="STORE|URL")
@click.argument("action", type=click.Choice(ACTIONS), default="show")
@click.argument("names", nargs=-1)
@click.option("--shared", is_flag=True, help="All queries share the added features.")
@click.option("--dry-run", is_flag=True, help="Show what would change, without changing it.")
@token_option
@json_option
def command(
    store: str,
    action: str,
    names: tuple[str, ...],
    shared: bool,
    dry_run: bool,
    token: str | None,
    as_json: bool,
) -> None:
    """Show the features of a store's items; add, remove, rename and require them.

    Stored items are not rewritten. Features that items lack count as missing, and the active model
    keeps using the features it knows until the next fit. Requests may leave out an added feature
    until you `require` it, and may still send a removed one. `rename` takes an old name and a new
    one; `name` names features that have only positions so far.

    If a server is running, give its URL instead of STORE.
    """
    request = requested(action, names, shared=shared, dry_run=dry_run)
    response = answer(
        store,
        token,
        lambda client: over_http(client, request),
        lambda url: in_store(url, request),
    )
    if as_json:
        console.print_json(response)
        return
    for change in response.changes:
        click.echo(f"would {change}" if dry_run else f"done: {change}")
    print_features(response)


def requested(
    action: str, names: tuple[str, ...], *, shared: bool, dry_run: bool
) -> api.ChangeFeaturesRequest | None:
    """Return the requested change; None to only show the features."""
    from ebrank.service import api

    if shared and action != "add":
        raise click.UsageError("--shared works only with add.")
    if action == "show":
        if names:
            raise click.UsageError("show takes no names.")
        return None
    if not names or (action == "rename" and len(names) != 2):
        wanted = "an old name and a new one" if action == "rename" else "at least one name"
        raise click.UsageError(f"{action} takes {wanted}.")
    value: Any = list(names)
    if action == "rename":
        value = {names[0]: names[1]}
    elif action == "add":
        value = [api.NewFeature(name, shared) for name in names]
    return checked(api.ChangeFeaturesRequest(**{action: value}, dry_run=dry_run))


async def in_store(url: str, request: api.ChangeFeaturesRequest | None) -> api.FeaturesResponse:
    """Show or change the features of a store that no server uses."""
    from ebrank.service.core.feature_changes import change_features, features_view
    from ebrank.service.store import open, open_existing

    only_read = request is None or request.dry_run
    opening = open(url, "read") if only_read else open_existing(url)
    async with catalog_of(opening) as (store, catalog, now):
        if request is None:
            return await features_view(store, catalog.schema)
        return await change_features(store, catalog, request, now)


def over_http(client: Client, request: api.ChangeFeaturesRequest | None) -> api.FeaturesResponse:
    """Show or change the features of a store through its server."""
    if request is None:
        return client.features()
    return client.change_features(
        add=[feature.name for feature in request.add if not feature.shared],
        add_shared=[feature.name for feature in request.add if feature.shared],
        remove=request.remove,
        rename=request.rename,
        name=request.name,
        require=request.require,
        dry_run=request.dry_run,
    )


def print_features(response: api.FeaturesResponse) -> None:
    """Print a row for each feature."""
    rows = [
        (
            "(no name)" if feature.name is None else feature.name,
            "all queries" if feature.shared else "query and item",
            "" if feature.required else "optional",
            feature.lacking,
            feature.items,
            "" if feature.weight is None else f"{feature.weight:.4g}",
            note,
        )
        for features, note in ((response.features, ""), (response.removed, "removed"))
        for feature in features
    ]
    header = ("feature", "of", "", "lacking", "items", f"model {response.model}", "")
    console.print_table(header, rows)
