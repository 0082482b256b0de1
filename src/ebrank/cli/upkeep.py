"""Looking after a store: `ebrank backup`, `check`, `export`, `replay` and `store`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, TypeVar

import click

from ebrank.cli import console
from ebrank.cli.options import AS_JSON
from ebrank.cli.verbs import arg, opt, verb, verbs
from ebrank.environment.paths import expanded

if TYPE_CHECKING:
    from ebrank.service.store import Store
    from ebrank.service.store.base import Mode, Progress
    from ebrank.service.store.records import Fault

T = TypeVar("T")


def looked_after(
    url: str, mode: Mode, label: str, work: Callable[[Store, Progress], Awaitable[T]]
) -> T:
    """Open a store, return what the work on it returns, and show its progress."""
    from ebrank.service.store import open

    async def opened(progress: Progress) -> T:
        async with open(url, mode) as store:
            return await work(store, progress)

    with console.progress(label) as progress:
        return asyncio.run(opened(progress))


@verb()
def backup(store: str, target: str = arg("FILE|FOLDER"), as_json: bool = AS_JSON) -> None:
    """Back up a store to a file or a folder, even while it is in use.

    The backup is a snapshot of the store, verified and on disk when the command ends. If FOLDER
    exists, the backup in it can be served directly: `ebrank serve --store FOLDER`.

    Examples:
        ebrank backup ebrank-store backups/monday.db
        ebrank backup /var/lib/ebrank spare-store --json
    """
    path = looked_after(
        store,
        "browse",
        "copying",
        lambda opened, progress: opened.backup(expanded(target), progress),
    )
    size = path.stat().st_size
    console.answer(as_json, {"path": str(path), "bytes": size}, f"{path}: {size / 1e6:,.1f} MB")


@verb()
def check(
    store: str,
    config: str | None = opt(
        None, "Settings of the service, in TOML; needed if models use your own parts.", "FILE"
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Check a store for damage.

    Checks the files, references between tables, every query, the log, the models and the settings,
    and replays the log. STORE may be in use, and may be a backup. Exit code 0 means no damage, 1
    damage, 2 no readable store. To save what can be read, see `ebrank store copy`.

    Examples:
        ebrank check ebrank-store
        ebrank check backups/monday.db --json
        ebrank check ebrank-store --config ebrank.toml
    """
    about, faults = faults_of(store, config)
    remedy = f"Restore a backup, or save what can be read: `ebrank store copy {store} NEW`"
    lines = [f"{fault.kind}: {fault.what}" for fault in faults]
    lines += [f"{len(faults)} faults (at most ten of each kind). {remedy}"]
    document = {"store": store, "database": about, "good": not faults}
    document["faults"] = [asdict(fault) for fault in faults]
    console.answer(as_json, document, *(lines if faults else ["nothing is wrong"]), about)
    if faults:
        raise click.exceptions.Exit(1)


def faults_of(url: str, config: str | None) -> tuple[str, list[Fault]]:
    """Return which database a store is in, and the faults of the store as it is now."""
    from ebrank.model.policy import policies
    from ebrank.service.core.models import own_parts
    from ebrank.service.ops import configuration
    from ebrank.service.ops.check import check
    from ebrank.service.store.base import Damaged
    from ebrank.service.store.records import Fault

    settings = configuration.read(config, environment=os.environ)
    own = tuple(own_parts(policies.parse(settings.ranking.policy)))

    async def checked(store: Store, progress: Progress) -> tuple[str, list[Fault]]:
        return store.about, await check(store, time.time(), own_parts=own, progress=progress)

    try:
        return looked_after(url, "read", "checking", checked)
    except Damaged as problem:  # too much to open it
        return "unreadable", [Fault("file", str(problem))]


@verb()
def export(
    store: str,
    folder: str,
    format: Literal["parquet", "ubi"] = opt(
        "parquet", "Parquet files of everything, or the log as User Behavior Insights."
    ),
    application: str = opt("ebrank", "The application that wrote the log, for UBI.", "NAME"),
    as_json: bool = AS_JSON,
) -> None:
    """Write a store's items, log and models as Parquet files.

    STORE may be in use: the export is a snapshot from the moment it began. FOLDER must be new or
    empty. docs/store.md describes the columns. To move a store, use `ebrank store copy`.

    With --format ubi, it gets the file ubi.ndjson: the lists and events that the log still holds,
    as bulk lines for OpenSearch's ubi_queries and ubi_events. `ebrank aggregate --ubi` reads it.

    Examples:
        ebrank export ebrank-store exports/2026-11
        ebrank export backups/monday.db exports/monday --json
        ebrank export ebrank-store exports/ubi --format ubi
    """
    from ebrank.addons.exporting import export
    from ebrank.addons.logs.ubi_export import export_ubi

    def write(opened: Store, progress: Progress) -> Awaitable[dict[str, int]]:
        if format == "ubi":
            return export_ubi(opened, expanded(folder), application, progress)
        return export(opened, expanded(folder), progress)

    rows = looked_after(store, "read", "exporting", write)
    console.answer(as_json, {"folder": folder, "rows": rows}, console.counted(folder, rows))


@verb()
def replay(path: str = arg("STORE"), as_json: bool = AS_JSON) -> None:
    """Verify that a store's counters match its log.

    Rebuilds the counters from the snapshot and the log, and compares them bit by bit. The store may
    be in use; a backup works too. Exit code 0 means equal, 1 different, 2 unreadable.

    Examples:
        ebrank replay ebrank-store
        ebrank replay backups/monday.db
        ebrank replay ebrank-store --json
    """
    from ebrank.service.ops.replay import replay

    report = looked_after(path, "read", "replaying", replay)
    lines = [str(report), *(f"  {difference}" for difference in report.differences)]
    lines += ["  …"] if report.different > len(report.differences) else []
    console.answer(as_json, {"path": path, "equal": report.equal, **asdict(report)}, *lines)
    if not report.equal:
        raise click.exceptions.Exit(1)


# --- ebrank store --------------------------------------------------------------------------------


@verb()
def copy(source: str = arg("FROM"), target: str = arg("TO"), as_json: bool = AS_JSON) -> None:
    """Copy a store to a new folder or database.

    The copy is equal to FROM to the bit: items, counts, log, models and the salt. It appears only
    once it is complete and verified. Changes made meanwhile are not copied, so stop the servers of
    FROM first.

    If FROM is a damaged folder, the copy gets what can be read, with counts that agree with it, and
    the command says what it left out. Exit code 0 means equal, 1 that something was left out.

    Examples:
        ebrank store copy ebrank-store postgresql://owner@db.example/shop
        ebrank store copy postgresql://server@db.example/shop ebrank-store --json
    """
    from ebrank.service.ops.copying import copy_store

    with console.progress("copying") as progress:
        copied = asyncio.run(copy_store(source, target, progress))
    lines = [f"left out: {what}" for what in copied.left_out]
    counts = f"{copied.items:,} items of {copied.queries:,} queries and {copied.entries:,} entries"
    lines.append(f"{'copied' if lines else 'equal'}: {counts} of the log")
    console.answer(as_json, copied._asdict(), *lines)
    if copied.left_out:
        raise click.exceptions.Exit(1)


@verb()
def init(url: str) -> None:
    """Create an empty store, unless it exists.

    The user in URL owns the tables. Servers can then connect as another user, who may read and
    write the tables, but not create or drop any: see docs/scale.md.

    Examples:
        ebrank store init postgresql://owner@db.example/shop
        ebrank store init 'postgresql://owner@db.example/shop?schema=ranking'
    """
    from ebrank.service.store.urls import without_password

    queries = looked_after(url, "serve", "creating", lambda store, _: store.items.queries())
    holds = f"holds {len(queries):,} queries" if queries else "is empty"
    click.echo(f"{without_password(url)}: the store exists and {holds}")


@verb()
def migrate(url: str) -> None:
    """Migrate a store to the current version.

    URL is a folder, or a database whose user owns the tables. Stop the servers and make a backup
    first: earlier versions of ebrank cannot read the store afterwards. The migration is a single
    transaction: if it is interrupted, nothing has changed.

    Examples:
        ebrank store migrate ebrank-store
        ebrank store migrate postgresql://owner@db.example/shop
    """
    from ebrank.service.store.urls import migrated

    name, before, now = asyncio.run(migrated(url))
    was = "already at" if before == now else f"migrated from version {before} to"
    click.echo(f"{name}: {was} version {now}")


@verbs(copy, init, migrate)
def store() -> None:
    """Create, copy or migrate a store.

    Examples:
        ebrank store init postgresql://owner@db.example/shop
        ebrank store copy ebrank-store postgresql://owner@db.example/shop
    """
