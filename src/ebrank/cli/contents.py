"""What a store holds: `ebrank items`, `features`, `delete`, `retract`; or through its server."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import click

from ebrank.cli import console
from ebrank.cli.options import AS_JSON, TOKEN
from ebrank.cli.verbs import arg, opt, verb, verbs
from ebrank.errors import DataError, ParameterError

if TYPE_CHECKING:
    import msgspec

    from ebrank.client import Client
    from ebrank.service import api
    from ebrank.service.core.catalog import Catalog
    from ebrank.service.store import Store

T = TypeVar("T")
Request = TypeVar("Request", bound="msgspec.Struct")

Action: TypeAlias = Literal["show", "add", "require", "remove", "rename", "name"]
STORE: Any = arg("STORE|URL")


def checked(request: Request) -> Request:
    """Return a request that its own type allows: constructors check nothing.

    Raises:
        ParameterError: if a server would refuse it, for the same reason.
    """
    import msgspec

    from ebrank.service.http.problems import unreadable

    try:
        return msgspec.convert(msgspec.to_builtins(request), type(request))
    except msgspec.ValidationError as problem:
        refusal = unreadable(problem)
        raise ParameterError(f"{refusal.field}: {refusal}") from None


def is_served(store: str) -> bool:
    """Return whether a store is named by the URL of its server."""
    return store.startswith(("http://", "https://"))


def answer(
    store: str,
    token: str | None,
    over_http: Callable[[Client], T],
    in_store: Callable[[str], Awaitable[T]],
) -> T:
    """Return what a server answers, if `store` is its URL, or what a store that no server uses."""
    if is_served(store):
        from ebrank.client import Client

        with Client(store, token=token) as client:
            return over_http(client)

    async def opened() -> T:
        return await in_store(store)

    return asyncio.run(opened())


@asynccontextmanager
async def catalog_of(
    opening: AbstractAsyncContextManager[Store], missing: Literal["reject", "mean"] = "reject"
) -> AsyncIterator[tuple[Store, Catalog, float]]:
    """Yield an opened store, its catalog and the time of a change; then write what changed."""
    from ebrank.service.core.catalog import Catalog
    from ebrank.service.settings import FeaturesSettings

    async with opening as store:
        now = max(time.time(), await store.log.last_time())
        yield store, await Catalog.open(store, FeaturesSettings(missing=missing)), now
        await store.flush()


# --- ebrank items --------------------------------------------------------------------------------


@verb(name="list")
def list_items(
    store: str = STORE,
    after: str = opt("", "Begin after this item.", "ID", show_default=False),
    limit: int = opt(100, "Maximum number of items."),
    token: str | None = TOKEN,
    as_json: bool = AS_JSON,
) -> None:
    """List the items in the catalog.

    They are ordered by id. If a server is running, you may also give its URL instead of STORE.

    Examples:
        ebrank items list ebrank-store
        ebrank items list http://127.0.0.1:8000 --after sencha --limit 20
        ebrank items list http://127.0.0.1:8000 --json --token TOKEN
    """
    from ebrank.service import api
    from ebrank.service.store import open

    request = checked(api.CatalogRequest(after, limit))

    async def in_store(url: str) -> api.CatalogResponse:
        async with catalog_of(open(url, "read")) as (_, catalog, _):
            return await catalog.page(request)

    page = answer(
        store,
        token,
        lambda client: client.catalog_items(cursor=request.cursor, limit=request.limit),
        in_store,
    )
    if as_json:
        console.print_json(page)
        return
    names = list(dict.fromkeys(name for item in page.items for name in item.features))
    gone = [""] * any(item.withdrawn for item in page.items)
    rows = [
        (
            item.id,
            *("" if item.features[name] is None else f"{item.features[name]:g}" for name in names),
            *("withdrawn" if item.withdrawn else "" for _ in gone),
        )
        for item in page.items
    ]
    console.print_rows(("item", *names, *gone), rows)
    if page.next is not None:
        console.note(f"There are more: --after {shlex.quote(page.next)}")


@verb()
def put(
    store: str = STORE,
    file: Path = arg("", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
    token: str | None = TOKEN,
    as_json: bool = AS_JSON,
) -> None:
    """Add or update items in the catalog from a file.

    FILE is NDJSON (.ndjson, .jsonl) with lines like {"id": ..., "features": {...}}, or CSV or
    Parquet with a column `id` and one column per feature. Empty values are missing. Each item is
    validated separately; exit code 1 means that some were rejected.

    If a server is running, give its URL instead of STORE, which is created if it does not exist.
    Without a server, no settings apply, and items may lack features.

    Examples:
        ebrank items put http://127.0.0.1:8000 catalog.ndjson
        ebrank items put http://127.0.0.1:8000 catalog.csv --token TOKEN
        ebrank items put ebrank-store catalog.parquet --json
    """
    lines = lines_of(file)
    response = answer(
        store,
        token,
        lambda client: client.load_catalog_lines(lines),
        lambda url: put_into_store(url, lines),
    )
    if not as_json:
        for error in response.errors:
            click.echo(f"line {error.line}: {error.reason}", err=True)
    console.answer(
        as_json,
        response,
        f"{response.changed:,} items changed, {response.unchanged:,} unchanged, "
        f"{response.rejected:,} rejected",
    )
    if response.rejected:
        raise click.exceptions.Exit(1)


async def put_into_store(url: str, lines: Iterator[bytes]) -> api.BulkResponse:
    """Put items into a store that no server uses."""
    from ebrank.service.core.catalog import load
    from ebrank.service.store import open

    async def pieces() -> AsyncIterator[bytes]:
        for line in lines:
            yield line.rstrip(b"\r\n") + b"\n"

    async with catalog_of(open(url), missing="mean") as (_, catalog, began):
        return await load(catalog, pieces(), lambda: max(time.time(), began))


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the items of a file as lines of JSON, each at the number of its line in the file."""
    from ebrank.addons.tables import as_name, as_number, format_of, rows, unpacked

    if format_of(path) == "ndjson":
        with unpacked(path) as file:
            yield from file
        return
    done = 0
    for line, row in rows(path):
        if "id" not in row:
            remedy = "Rename the column of ids to `id`."
            raise DataError("column `id` not found", path=path, remedy=remedy)
        yield from [b""] * (line - done - 1)
        done = line
        name = as_name(row.pop("id"))
        numbers = {feature: as_number(value) for feature, value in row.items()}
        yield json.dumps({"id": name, "features": numbers}, default=str).encode()


@verb()
def withdraw(
    store: str = STORE, items: tuple[str, ...] = arg("ID..."), token: str | None = TOKEN
) -> None:
    """Withdraw items from the lists of all queries.

    They must be in the catalog. Their features and their history stay; `ebrank items put` brings
    them back. If a server is running, give its URL instead of STORE.

    Examples:
        ebrank items withdraw http://127.0.0.1:8000 sencha assam
        ebrank items withdraw ebrank-store sencha
    """
    from ebrank.service.store import open_existing

    def say(item: str, withdrawn: bool) -> None:
        """Say what became of an item, before the next one, which may fail."""
        click.echo(f"{item}: {'withdrawn' if withdrawn else 'was withdrawn before'}")

    def over_http(client: Client) -> None:
        for item in items:
            say(item, client.withdraw_from_all(item).withdrawn)

    async def in_store(url: str) -> None:
        async with catalog_of(open_existing(url)) as (opened, catalog, now):
            for item in items:
                withdrawn = await catalog.withdraw(item, now)
                await opened.flush()
                say(item, withdrawn)

    answer(store, token, over_http, in_store)


@verbs(list_items, put, withdraw)
def items() -> None:
    """Add, list and withdraw the items that all queries share.

    Examples:
        ebrank items put http://127.0.0.1:8000 catalog.ndjson
        ebrank items put ebrank-store catalog.csv
        ebrank items list ebrank-store --limit 20
        ebrank items withdraw http://127.0.0.1:8000 sencha
    """


# --- ebrank features -----------------------------------------------------------------------------


@verb()
def features(
    store: str = STORE,
    action: Action = arg("", "show"),
    names: tuple[str, ...] = arg("", ()),
    shared: bool = opt(False, "All queries share the added features."),
    dry_run: bool = opt(False, "Show what would change, without changing it."),
    token: str | None = TOKEN,
    as_json: bool = AS_JSON,
) -> None:
    """Show the features of a store's items; add, remove, rename and require them.

    Stored items are not rewritten. Features that items lack count as missing, and the active model
    keeps using the features it knows until the next fit. Requests may leave out an added feature
    until you `require` it, and may still send a removed one. `rename` takes an old name and a new
    one; `name` names features that have only positions so far.

    If a server is running, give its URL instead of STORE.

    Examples:
        ebrank features ebrank-store
        ebrank features ebrank-store add stock --shared --dry-run
        ebrank features ebrank-store require stock
        ebrank features ebrank-store remove age
        ebrank features ebrank-store rename prize price
        ebrank features ebrank-store name price rating age
        ebrank features http://127.0.0.1:8000 add stock --shared
    """
    from ebrank.service import api

    if shared and action != "add":
        raise click.UsageError("--shared works only with add.")
    if action == "show" and names:
        raise click.UsageError("show takes no names.")
    if action == "rename" and len(names) != 2:
        raise click.UsageError("rename takes an old name and a new one.")
    if action != "show" and not names:
        raise click.UsageError(f"{action} takes at least one name.")
    value: Any = {names[0]: names[1]} if action == "rename" else list(names)
    request: api.ChangeFeaturesRequest | None = None
    if action != "show":
        added = [api.NewFeature(name, shared) for name in names]
        changed: dict[str, Any] = {action: added if action == "add" else value}
        request = checked(api.ChangeFeaturesRequest(**changed, dry_run=dry_run))

    def over_http(client: Client) -> api.FeaturesResponse:
        if request is None:
            return client.features()
        change = {"add_shared" if shared else action: value}
        return client.change_features(**change, dry_run=dry_run)

    response = answer(store, token, over_http, lambda url: features_in_store(url, request))
    if as_json:
        console.print_json(response)
        return
    for change in response.changes:
        click.echo(f"would {change}" if dry_run else f"done: {change}")
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
    console.print_rows(header, rows)


async def features_in_store(
    url: str, request: api.ChangeFeaturesRequest | None
) -> api.FeaturesResponse:
    """Show or change the features of a store that no server uses."""
    from ebrank.service.core.feature_changes import change_features, features_view
    from ebrank.service.store import open, open_existing

    only_read = request is None or request.dry_run
    opening = open(url, "read") if only_read else open_existing(url)
    async with catalog_of(opening) as (store, catalog, now):
        if request is None:
            return await features_view(store, catalog.schema)
        return await change_features(store, catalog, request, now)


# --- ebrank delete -------------------------------------------------------------------------------


@verb()
def delete(
    store: str = STORE,
    item: str | None = opt(None, "An item, in all queries and in the catalog.", "NAME"),
    query: str | None = opt(None, "A query, with its items and its history.", "NAME"),
    user: str | None = opt(None, "A user's name, in the log of lists.", "NAME"),
    vacuum: bool = opt(False, "Only rewrite the files, after deletions through a server."),
    listing: bool = opt(False, "List the proofs of deletions.", "--list"),
    token: str | None = TOKEN,
    as_json: bool = AS_JSON,
) -> None:
    """Permanently delete an item, a query or a user's name.

    A deleted item leaves an anonymous entry in lists and counters, so that the log still adds up.
    Lists of a deleted user still count, but belong to nobody. The store keeps a proof of what kind
    of thing was deleted and when, with a digest instead of its name.

    If no server is running, the command then rewrites the store's files, so that no trace remains.
    If a server is running, give its URL instead of STORE, and run this with --vacuum once you have
    stopped it. Backups, exports and log.db.before-… files still contain the data: delete them too.

    Examples:
        ebrank delete ebrank-store --item sencha
        ebrank delete ebrank-store --query 'green tea'
        ebrank delete ebrank-store --user ada@example.org
        ebrank delete http://127.0.0.1:8000 --user ada@example.org
        ebrank delete ebrank-store --vacuum
        ebrank delete ebrank-store --list --json
    """
    from ebrank.service import api

    names: dict[Any, str | None] = {"item": item, "query": query, "user": user}
    given = [(kind, name) for kind, name in names.items() if name is not None]
    if len(given) + vacuum + listing != 1:
        raise click.UsageError("Give one of --item, --query, --user, --vacuum and --list.")
    if vacuum and is_served(store):
        raise click.UsageError(
            "--vacuum needs the store itself, not a server. Stop the server first."
        )
    request = checked(api.DeletionRequest(*given[0])) if given else None

    def over_http(client: Client) -> list[api.DeletionOut]:
        if request is None:
            return client.deletions().deletions
        return [client.delete(request.kind, request.name)]

    proofs = answer(
        store, token, over_http, lambda url: deleted_in_store(url, request, listing=listing)
    )
    lines = [
        f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(proof.time))} UTC: {proof.kind} "
        f"{proof.digest} deleted; {proof.queries:,} queries, {proof.rankings:,} lists and "
        f"{proof.events:,} events changed"
        for proof in proofs
    ]
    if vacuum:
        lines.append("The files contain no trace of what was deleted.")
    console.answer(as_json, {"deletions": proofs}, *(lines or ["Nothing has been deleted so far."]))


async def deleted_in_store(
    url: str, request: api.DeletionRequest | None, *, listing: bool
) -> list[api.DeletionOut]:
    """Delete from a store that no server uses, and rewrite its files; or list its proofs."""
    from ebrank.service.core.deletions import delete, proof_out
    from ebrank.service.store import open, open_existing

    async with open(url, "read") if listing else open_existing(url) as store:
        if listing:
            return list(map(proof_out, await store.deletions.all()))
        proofs = []
        if request is not None:
            proof, _ = await delete(store, request, *await _names_of(store))
            proofs = [proof]
        await store.deletions.purge()
        await store.flush()
        return proofs


# --- ebrank retract ------------------------------------------------------------------------------


@verb()
def retract(
    store: str = STORE,
    since: str | None = opt(
        None, "Lists and events from this time on, such as 2026-11-17T18:00Z.", "TIME"
    ),
    until: str | None = opt(None, "Those before this time.", "TIME"),
    user: str | None = opt(None, "Lists of a user.", "NAME"),
    query: str | None = opt(None, "Lists of a query.", "NAME"),
    ranking: str | None = opt(None, "One list, by its ranking_id.", "ID"),
    asked_by: str | None = opt(None, "Lists that a token asked for, by its name.", "NAME"),
    apply: bool = opt(False, "Take them back; without this, nothing changes."),
    token: str | None = TOKEN,
    as_json: bool = AS_JSON,
) -> None:
    """Take back what lists and events of a time, user, query or token added.

    Lists that fit all options count no longer, nor do their events, nor later lists of the same
    user that continue them. With a time, events received then count no longer either. They stay in
    the log, marked as retracted, so nothing is counted again if it is resent, and `ebrank replay`
    still proves the counters. Without --apply, the command only says what would change.

    Lists that are rolled up (store.retention_seconds) cannot be taken back. The store keeps a
    proof, which `ebrank delete --list` shows. If a server is running, give its URL instead of
    STORE. If the command is interrupted, run it again.

    Examples:
        ebrank retract store --since 2026-11-17T18:00Z --until 2026-11-17T19:30Z
        ebrank retract ebrank-store --user crawler-7 --apply
        ebrank retract ebrank-store --asked-by leaked --since 2026-11-17 --apply
        ebrank retract ebrank-store --query 'green tea' --since 2026-11-17
        ebrank retract http://127.0.0.1:8000 --user crawler-7 --apply --json
    """
    from ebrank.service import api

    given: dict[str, Any] = {
        "since": _time("--since", since),
        "until": _time("--until", until),
        "user": user,
        "query": query,
        "ranking_id": ranking,
        "token": asked_by,
    }
    if not any(value is not None for value in given.values()):
        raise click.UsageError(
            "Give one of --since, --until, --user, --query, --ranking and --asked-by."
        )
    request = checked(api.RetractionRequest(**given, apply=apply))

    def over_http(client: Client) -> api.RetractionResponse:
        return client.retract(**given, apply=apply)

    done = answer(store, token, over_http, lambda url: retracted_in_store(url, request))
    changed = (
        f"{done.rankings:,} lists and {done.events:,} events of {done.queries:,} queries: "
        f"{done.impressions:,} impressions and {done.outcomes:,} outcomes"
    )
    lines = [f"Taken back: {changed}." if apply else f"Would take back {changed}."]
    if done.rolled_up:
        begins = "now" if done.log_begins is None else f"{_day(done.log_begins)} UTC"
        lines.append(
            f"The log begins {begins}. {done.rolled_up:,} impressions before that are rolled up "
            "and cannot be taken back."
        )
    if done.proof is not None:
        lines.append(f"Proof: {done.proof.digest}. The prior forgets them with the next training.")
    elif done.rankings + done.events and not apply:
        lines.append("Nothing has changed. Add --apply to take them back.")
    console.answer(as_json, done, *lines)


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(moment))


def _time(name: str, text: str | None) -> float | None:
    """Return the time that an option gives, in seconds since 1970; without a zone, it is UTC."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(
            f"{name}: {text!r} is not a time. Write it as in 2026-11-17T18:00Z, or 2026-11-17."
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


async def retracted_in_store(url: str, request: api.RetractionRequest) -> api.RetractionResponse:
    """Retract from a store that no server uses, or say what that would change."""
    from ebrank.service.core.deletions import retract
    from ebrank.service.store import open, open_existing

    async with open_existing(url) if request.apply else open(url, "read") as store:
        response, _ = await retract(store, request, *await _names_of(store))
        await store.flush()
        return response


async def _names_of(store: Store) -> tuple[str, Callable[[str], str], float]:
    """Return a store's salt, how it spells queries, and a time after all of its log."""
    from ebrank.service.core.agreed_settings import QUERY_NAMES
    from ebrank.service.core.queries import naming
    from ebrank.service.store.base import SALT

    meta = await store.meta.all()
    named = naming(normalize=meta.get(QUERY_NAMES) == "normalized")
    return meta.get(SALT, ""), named, max(time.time(), await store.log.last_time())
