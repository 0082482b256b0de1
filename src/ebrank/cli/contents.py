"""What a store holds: `ebrank items`, `features`, `delete`, `retract`; or through its server."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click

from ebrank.cli import console
from ebrank.cli.options import AS_JSON, STORE, TOKEN
from ebrank.cli.verbs import arg, opt, verb, verbs
from ebrank.errors import DataError

if TYPE_CHECKING:
    from ebrank.cli.stores import Opening, StoreItself
    from ebrank.client import AsyncClient
    from ebrank.service import api

Action: TypeAlias = Literal["show", "add", "require", "remove", "rename", "name"]


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
    from ebrank.cli.stores import answer

    page = answer(store, token, lambda there: there.catalog_items(cursor=after, limit=limit))
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
    from ebrank.cli.stores import answer

    lines = lines_of(file)
    response = answer(store, token, lambda there: there.load_catalog_lines(lines), "serve")
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
    from ebrank.cli.stores import answer

    async def each(there: AsyncClient | StoreItself) -> None:
        for item in items:  # say what became of it before the next one, which may fail
            withdrawn = (await there.withdraw_from_all(item)).withdrawn
            click.echo(f"{item}: {'withdrawn' if withdrawn else 'was withdrawn before'}")

    answer(store, token, each, "existing")


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
    from ebrank.cli.stores import answer

    if shared and action != "add":
        raise click.UsageError("--shared works only with add.")
    if action == "show" and names:
        raise click.UsageError("show takes no names.")
    if action == "rename" and len(names) != 2:
        raise click.UsageError("rename takes an old name and a new one.")
    if action != "show" and not names:
        raise click.UsageError(f"{action} takes at least one name.")
    if action == "show":
        response = answer(store, token, lambda there: there.features())
    else:
        value: Any = {names[0]: names[1]} if action == "rename" else list(names)
        change: dict[str, Any] = {"add_shared" if shared else action: value, "dry_run": dry_run}
        opening: Opening = "read" if dry_run else "existing"
        response = answer(store, token, lambda there: there.change_features(**change), opening)
    if as_json:
        console.print_json(response)
        return
    for line in response.changes:
        click.echo(f"would {line}" if dry_run else f"done: {line}")
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
    stopped it. Backups, exports and copies still contain the data: delete them too.

    Examples:
        ebrank delete ebrank-store --item sencha
        ebrank delete ebrank-store --query 'green tea'
        ebrank delete ebrank-store --user ada@example.org
        ebrank delete http://127.0.0.1:8000 --user ada@example.org
        ebrank delete ebrank-store --vacuum
        ebrank delete ebrank-store --list --json
    """
    from ebrank.cli.stores import StoreItself, answer, is_served

    names: dict[Any, str | None] = {"item": item, "query": query, "user": user}
    given = [(kind, name) for kind, name in names.items() if name is not None]
    if len(given) + vacuum + listing != 1:
        raise click.UsageError("Give one of --item, --query, --user, --vacuum and --list.")
    if vacuum and is_served(store):
        raise click.UsageError(
            "--vacuum needs the store itself, not a server. Stop the server first."
        )

    async def done(there: AsyncClient | StoreItself) -> list[api.DeletionOut]:
        if listing:
            return (await there.deletions()).deletions
        if isinstance(there, StoreItself) and vacuum:
            await there.purge()
        return [await there.delete(kind, name) for kind, name in given]

    proofs = answer(store, token, done, "read" if listing else "existing")
    lines = [
        f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(proof.time))} UTC: {proof.kind} "
        f"{proof.digest} deleted; {proof.queries:,} queries, {proof.rankings:,} lists and "
        f"{proof.events:,} events changed"
        for proof in proofs
    ]
    if vacuum:
        lines.append("The files contain no trace of what was deleted.")
    console.answer(as_json, {"deletions": proofs}, *(lines or ["Nothing has been deleted so far."]))


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
    from ebrank.cli.stores import answer

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
    opening: Opening = "existing" if apply else "read"
    done = answer(store, token, lambda there: there.retract(**given, apply=apply), opening)
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
