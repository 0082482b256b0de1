"""`ebrank check`: everything wrong with a store, however damaged it is; and with a clock.

An unreadable part is a fault, and the check goes on with the next part. No check can find a value
that changed to another plausible value, such as a feature: restore a backup if you know of such
damage.

>>> import asyncio
>>> from ebrank.service.store.memory import MemoryStore
>>> asyncio.run(check(MemoryStore(), now=0.0))
[]
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from datetime import UTC, datetime
from itertools import compress
from typing import TypeVar

from ebrank.errors import EBRankError
from ebrank.evidence.behaviors import SHOWN
from ebrank.model.policy import model_file
from ebrank.service.core.agreed_settings import BEHAVIORS
from ebrank.service.core.background import GRACE_SECONDS
from ebrank.service.core.catalog import SCHEMA
from ebrank.service.core.feature_schema import FeatureSchema
from ebrank.service.ops.replay import listed, replay
from ebrank.service.store.base import Progress, Store, StoreError
from ebrank.service.store.counting import time_of
from ebrank.service.store.records import Fault, FaultKind

T = TypeVar("T")

MOST = 10
"""Faults of one kind that are reported."""
DAY = 86400.0
MOST_BEHIND_SECONDS = DAY
"""A clock less far behind the log is fine: times stand still until it catches up."""


async def check(
    store: Store, now: float, *, own_parts: tuple[str, ...] = (), progress: Progress | None = None
) -> list[Fault]:
    """Return the first faults of each kind.

    Args:
        store: to check.
        now: what the clock says; a log that is ahead of it is a fault.
        own_parts: the user's own parts of policies that models may have.
        progress: called with how much of the log was read.
    """
    faults = _Faults()
    for fault in await faults.tried("file", store.faults()) or ():
        faults.add(fault.kind, fault.what)
    for query in await faults.tried("query", store.items.queries()) or []:
        await faults.tried("query", _read_query(store, query), f"query {query!r}: ")
    if not any(fault.kind == "query" for fault in faults):
        report = await faults.tried("log", replay(store, progress))
        for difference in report.differences if report else ():
            faults.add("counter", str(difference))
    await faults.tried("query", _read_catalog(store))
    await faults.tried("log", _read_times(store, now, faults))
    await _read_models(store, own_parts, faults)
    await faults.tried("setting", _read_settings(store))
    return list(faults)


class _Faults(list[Fault]):
    """The first faults of each kind, none twice."""

    def add(self, kind: FaultKind, what: str) -> None:
        fault = Fault(kind, what)
        if fault not in self and sum(earlier.kind == kind for earlier in self) < MOST:
            self.append(fault)

    async def tried(self, kind: FaultKind, work: Awaitable[T], where: str = "") -> T | None:
        """Return the result of work, None if it fails, which is a fault."""
        try:
            return await work
        except EBRankError as problem:
            self.add(kind, f"{where}{problem}")
            return None


async def _read_query(store: Store, query: str) -> None:
    state = listed(query, await store.items.snapshot(query))  # which reads the query first
    counts = listed(query, await store.items.load(query)).counts
    impossible = (counts[:, SHOWN + 1 :].sum(axis=1) > counts[:, SHOWN]).any(axis=1)
    for item in compress(state.ids, impossible):
        raise StoreError(f"item {item!r} has more clicks than impressions in a slot")


async def _read_catalog(store: Store) -> None:
    async for _ in store.catalog.entries():
        pass


async def _read_times(store: Store, now: float, faults: _Faults) -> None:
    last = await store.log.last_time()
    if last - now > MOST_BEHIND_SECONDS:
        faults.add("time", f"the log ends on {day(last)}, and the clock says {day(now)}")
    before = 0.0
    async for entry in store.log.entries():
        if time_of(entry) < before - GRACE_SECONDS:  # servers' clocks differ, and writes wait
            faults.add("time", f"the log goes back from {before} to {time_of(entry)}")
        before = max(before, time_of(entry))


async def _read_models(store: Store, own_parts: tuple[str, ...], faults: _Faults) -> None:
    versions = [record.version for record in await faults.tried("model", store.models.all()) or []]
    for version in versions:
        document = await faults.tried("model", store.models.document(version)) or b""
        try:
            model_file.from_bytes(document, f"model {version}", allow=own_parts)
        except EBRankError as problem:
            faults.add("model", str(problem))
    active = await faults.tried("model", store.models.active())
    if active and active not in versions:
        faults.add("model", f"the active model {active} is not there")


async def _read_settings(store: Store) -> None:
    settings = await store.meta.all()
    if SCHEMA in settings:
        FeatureSchema.from_json(settings[SCHEMA])
    try:
        json.loads(settings.get(BEHAVIORS, "[]"))
    except ValueError as problem:
        raise StoreError(f"{BEHAVIORS}: {problem}") from problem
    await store.meta.minutes(0.0)


# --- the clock -----------------------------------------------------------------------------------


class ClockError(EBRankError):
    """The machine's clock and the store contradict each other: says what to do."""


def check_clock(now: float, last: float, touched: float | None, most_idle: float) -> None:
    """Raise if the machine's clock cannot be right, before anything is dated by it.

    Times in the log never go back. One start with a clock years ahead would date the log in the
    future: it would stand still for years, and nothing would be rolled up meanwhile. So a server
    does not start if its clock is far behind the log, or so far ahead of the log and of the store's
    files that the store must have been idle for longer than `store.max_idle_seconds`.

    >>> check_clock(now=1_800_000_000.0, last=1_700_000_000.0, touched=None, most_idle=0.0)
    >>> check_clock(now=1_800_000_000.0, last=1_700_000_000.0, touched=None, most_idle=86400.0)
    Traceback (most recent call last):
    ebrank.service.ops.check.ClockError: the machine's clock says 2027-01-15, 1,157 days after ...

    Args:
        now: what the clock says.
        last: the time of the latest write of the log, 0 if there is none.
        touched: when the store's files were last changed, by the clock of their disk.
        most_idle: how many seconds a store may have been idle; 0 is any time.
    """
    if last - now > MOST_BEHIND_SECONDS:
        raise ClockError(
            f"the machine's clock says {day(now)}, {_days(last - now)} before the log's last "
            f"entry, of {day(last)}. If the clock is wrong, set it. If it is right, an earlier "
            "one was not: restore a backup from before"
        )
    latest = max(last, touched or 0.0)
    if last and most_idle and now - latest > most_idle:
        raise ClockError(
            f"the machine's clock says {day(now)}, {_days(now - latest)} after the log's last "
            f"entry and the last change of the store's files, of {day(latest)}. If the clock is "
            "wrong, set it. If it is right, and the store was idle for so long, start once with "
            "EBRANK_SERVE_STORE_MAX_IDLE_SECONDS=0"
        )


def day(time: float) -> str:
    """Return the date of a time in seconds since 1970.

    >>> day(0.0), day(1e18)
    ('1970-01-01', 'a day that no calendar has')
    """
    try:
        return datetime.fromtimestamp(time, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return "a day that no calendar has"


def _days(seconds: float) -> str:
    return f"{seconds / DAY:,.0f} days"
