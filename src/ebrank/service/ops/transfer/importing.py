"""`ebrank import`: a store made of an export, whole or not at all."""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from ebrank.behavior import FIELDS
from ebrank.errors import DataError
from ebrank.service.ops.transfer.exported import Exported
from ebrank.service.store.base import Store, StoreError
from ebrank.service.store.sqlite import SqliteStore
from ebrank.service.store.sqlite.folders import flush_folder

ENTRIES_AT_ONCE = 1000


def import_store(
    exported: Exported,
    folder: str | os.PathLike[str],
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Make a new store of an export, and check that its counters are those exported.

    It is built beside its place and moved there when it is complete.

    Raises:
        StoreError: if there is something at its place.
        DataError: if the export contradicts itself.
    """
    place = Path(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise StoreError(f"{place}: there is something already. Name a new folder.")
    building = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        store = SqliteStore(building)
        try:
            fill(store, exported, progress)
            check(store, exported)
        finally:
            store.close()
        building.replace(place)
        flush_folder(place.parent)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def fill(
    store: Store, exported: Exported, progress: Callable[[int, int], None] | None = None
) -> None:
    """Put all that an export holds into an empty store."""
    last_time = exported.manifest["last_time"]
    for query in exported.queries():
        state = exported.snapshot(query)
        assert state is not None, "it is listed"
        store.restore(state, last_time)
    log, done = exported.log(), 0
    while entries := list(itertools.islice(log, ENTRIES_AT_ONCE)):
        if any(one.status != "accepted" for one in store.write(entries, flush=False)):
            raise DataError("an event stands in the log twice", path=exported.folder)
        done += len(entries)
        if progress is not None:
            progress(done, exported.log_length())
    store.add_minutes(list(exported.minutes()))
    for record, document in exported.models():
        store.add_model(record, document)
    store.activate(exported.manifest["active_model"])
    for key, value in exported.manifest["settings"].items():
        store.set_meta(key, value)
    store.flush()


def check(store: Store, exported: Exported) -> None:
    """Raise unless the counters of a store are those that were exported."""
    for query in exported.queries():
        there, here = exported.load(query), store.load(query)
        assert there is not None, "it is listed"
        assert here is not None, "it was restored"
        for name in FIELDS:
            if getattr(there.stats, name).tobytes() != getattr(here.stats, name).tobytes():
                raise DataError(
                    f"{name} of query {query!r} is not what snapshot and log add up to",
                    path=exported.folder,
                    remedy="`ebrank replay` tells more; export again.",
                )
