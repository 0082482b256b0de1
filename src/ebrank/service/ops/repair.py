"""`ebrank repair`: a new store made from another one, with its faults corrected.

- Future times become the current time, in the log and everywhere else: a clock was wrong once.
- Where times in the log go back further than servers' clocks may differ, they stand still instead.
- Counters are added up again from the snapshot and the log.
- Unreadable queries are left out, with their entries in the log, and so are unreadable models.
- If the log is unreadable, counters stay as they are, and a new log begins.

The new store is built beside the old one and replaces it in one step; the old one is kept.
"""

from __future__ import annotations

import time as clock
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import numpy as np

from ebrank.service.core.background import GRACE_SECONDS
from ebrank.service.core.fixed_settings import half_life
from ebrank.service.ops.check import unreadable
from ebrank.service.ops.clock import day
from ebrank.service.ops.replay import replay
from ebrank.service.ops.transfer.importing import fill
from ebrank.service.store import open
from ebrank.service.store.base import Progress, Store, StoreError
from ebrank.service.store.counting import items_of, time_of
from ebrank.service.store.driver import StoreGroup
from ebrank.service.store.items import StoredCatalog, StoredItems
from ebrank.service.store.log import StoredLog
from ebrank.service.store.meta import StoredMeta, StoredModels
from ebrank.service.store.records import (
    Minute,
    ModelRecord,
    Operation,
    QueryState,
    RankingEntry,
)
from ebrank.service.store.urls import RESTORE, can_rebuild, rebuilding, without_password
from ebrank.typing import Features

DATES = {"first_item"}
"""Settings that are times."""


@dataclass
class Repair:
    """What is wrong and can be corrected.

    Attributes:
        now: what the clock says.
        entries: of the log.
        late_entries: entries dated in the future.
        last: the latest of their times.
        early_entries: entries dated long before an earlier one.
        late_times: other future times: of items, models and minutes.
        wrong_counters: counters that are not what snapshot and log add up to.
        lost_queries: unreadable queries.
        lost_entries: entries of such queries, or of missing items.
        lost_models: unreadable models.
        lost_catalog: why the catalog could not be read to its end; empty if it could.
        faults: of the files and tables themselves, which are made again.
        unread: why the log could not be read; empty if it could.
        kept: where the old store is; None before it was replaced.
    """

    now: float
    entries: int = 0
    late_entries: int = 0
    last: float = 0.0
    early_entries: int = 0
    late_times: int = 0
    wrong_counters: int = 0
    lost_queries: list[str] = field(default_factory=list)
    lost_entries: int = 0
    lost_models: list[int] = field(default_factory=list)
    lost_catalog: str = ""
    faults: list[str] = field(default_factory=list)
    unread: str = ""
    kept: str | None = None

    @property
    def needed(self) -> bool:
        """Whether anything must be corrected."""
        return bool(self.lines())

    def lines(self) -> list[str]:
        """Return it in words, one thing a line."""
        days = {"today": day(self.now), "latest": day(self.last)}
        values = ((template, getattr(self, name)) for name, template in _LINES.items())
        return [
            template.format(each, **vars(self), **days)
            for template, value in values
            for each in (value if isinstance(value, list) else filter(None, [value]))
        ]


_LINES = {
    "late_entries": "{:,} of {entries:,} entries of the log are dated after {today}, the last "
    "{latest}: they get the time of the repair",
    "early_entries": "{:,} of {entries:,} entries of the log are dated long before an earlier one: "
    "they get its time",
    "late_times": "{:,} other times are after {today}: items and models get the time of the "
    "repair, minutes of the dashboard are left out",
    "wrong_counters": "{:,} counters are not what the log adds up to: they are counted again",
    "lost_queries": "query {!r} cannot be read: it is left out, put its items again",
    "lost_entries": "{:,} entries of the log are of queries or items that cannot be read: they are "
    "left out",
    "faults": "{}: the files are rewritten",
    "lost_models": "model {} cannot be read: left out",
    "lost_catalog": "the catalog of features cannot be read to its end: the rest is left out, put "
    "it again ({})",
    "unread": "the log cannot be read: counters stay as they are, a new log begins, and feedback "
    "on earlier lists will be refused ({})",
}
"""Each kind of damage and its remedy, by attribute."""


async def survey(path: str, progress: Progress | None = None) -> Repair:
    """Return what a repair would do; nothing is changed."""
    if not can_rebuild(path):
        raise StoreError(f"{without_password(path)}: {RESTORE}.")
    async with open(path, "read") as store:
        return await Mended(store, clock.time()).survey(progress)


async def repair(path: str, progress: Progress | None = None) -> Repair:
    """Repair a store, and return what was done; nothing changes if nothing is wrong.

    Raises:
        StoreError: if it is in use, is not a folder, or cannot be read at all.
    """
    async with rebuilding(path) as place:
        async with open(path, "read") as store:
            view = Mended(store, clock.time())
            report = await view.survey(None)
            if report.needed:
                async with open(place.url, "new") as new:
                    await fill(new, view, progress)
                    proof = await replay(new)
                    if not proof.equal:
                        raise StoreError(f"{path}: cannot be repaired ({proof}). Restore a backup.")
        if report.needed:
            report.kept = await place.swapped()
    return report


class Mended(Store):
    """A corrected view of a faulty store.

    Attributes:
        epoch: the current one, after which nothing can be forgotten yet; known after the survey.
    """

    def __init__(self, store: Store, now: float) -> None:
        super().__init__(store.driver)
        self.report = Repair(now)
        self._store = store
        self._now = now
        self._ids: dict[str, frozenset[str]] = {}
        self.epoch = 0
        self.items = MendedItems(self)
        self.catalog = MendedCatalog(self)
        self.log: MendedLog = MendedLog(self)
        self.models = MendedModels(self)
        self.meta = MendedMeta(self)

    def time(self, time: float) -> float:
        """Return a time that is not after now."""
        return min(time, self._now)

    def late(self, time: float) -> bool:
        """Return whether a time is after now."""
        return time > self._now

    def readable(self, entry: Operation) -> bool:
        """Return whether an entry's query and items can be read."""
        items = self._ids.get(entry.query)
        return items is not None and items.issuperset(items_of(entry))

    async def survey(self, progress: Progress | None) -> Repair:
        """Read everything, and return what is wrong."""
        report = self.report
        report.faults = [fault.what for fault in await self._store.faults()]
        for query in await self._store.items.queries():
            if await unreadable(self._store, query):
                report.lost_queries.append(query)
                continue
            state = await self._store.items.load(query)
            assert state is not None, "it can be read"
            self._ids[query] = frozenset(state.ids)
            times = np.concatenate([state.entered, state.first_shown])
            report.late_times += int((times > self._now).sum())
        total, before = await self._store.log.length(), 0.0
        async for entry in self.log.all():
            report.entries += 1
            if progress is not None and report.entries % 1000 == 0:
                progress(report.entries, total)
            if not self.readable(entry):
                report.lost_entries += 1
            elif self.late(time_of(entry)):
                report.late_entries += 1
                report.last = max(report.last, time_of(entry))
            else:
                report.early_entries += time_of(entry) < before - GRACE_SECONDS
                before = max(before, time_of(entry))
        await self._survey_rest(report)
        forgets = half_life(await self._store.meta.all())
        self.epoch = 0 if forgets is None else forgets.epoch(self._now)
        return report

    async def _survey_rest(self, report: Repair) -> None:
        async for _ in self.catalog.entries():
            pass
        last = await self._store.log.last_time()
        report.late_times += int(self.late(last) and not report.late_entries)
        for record in await self._store.models.all():
            report.late_times += self.late(record.created)
            try:
                await self._store.models.document(record.version)
            except StoreError:
                report.lost_models.append(record.version)
        minutes = await self._store.meta.minutes(0.0)
        report.late_times += sum(self.late(minute.start) for minute in minutes)
        if not (report.lost_queries or report.unread):
            report.wrong_counters = (await replay(self._store)).different


class _MendedPart(StoreGroup):
    """A group of a store's methods, some of which a subclass overrides."""

    def __init__(self, mended: Mended) -> None:
        super().__init__(mended.driver)
        self._mended = mended


class MendedItems(_MendedPart, StoredItems):
    """Queries that can be read."""

    async def queries(self) -> list[str]:
        """Return the names of queries that can be read."""
        lost = set(self._mended.report.lost_queries)
        return [query for query in await super().queries() if query not in lost]

    async def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state by what was rolled up: by all, if the log cannot be read."""
        read = super().load if self._mended.report.unread else super().snapshot
        state = await read(query)
        if state is not None:
            state.entered = np.minimum(state.entered, self._mended.report.now)
            state.first_shown = np.minimum(state.first_shown, self._mended.report.now)
            state.epoch = min(state.epoch, self._mended.epoch)
        return state


class MendedCatalog(_MendedPart, StoredCatalog):
    """The readable part of the catalog."""

    async def entries(self) -> AsyncIterator[tuple[str, Features]]:
        """Yield items with their rows, up to the first that cannot be read."""
        try:
            async for entry in super().entries():
                yield entry
        except StoreError as problem:
            self._mended.report.lost_catalog = str(problem)


class MendedLog(_MendedPart, StoredLog):
    """Entries of such queries, none in the future."""

    async def all(self) -> AsyncIterator[Operation]:
        """Yield the log up to the first entry that cannot be read."""
        try:
            async for entry in super().entries():
                yield entry
        except StoreError as problem:
            self._mended.report.unread = str(problem)

    async def entries(self) -> AsyncIterator[Operation]:
        """Yield the entries of the log that can be kept, in order."""
        if self._mended.report.unread:
            return
        time, before, epoch = self._mended.time, 0.0, 0
        async for entry in self.all():
            if not self._mended.readable(entry):
                continue
            right = time(time_of(entry))
            if right < before - GRACE_SECONDS:
                right = before
            before = max(right, before)
            epoch = max(min(entry.epoch, self._mended.epoch), epoch)
            if (right, epoch) == (time_of(entry), entry.epoch):
                yield entry
            elif isinstance(entry, RankingEntry):
                yield replace(entry, time=right, epoch=epoch)
            else:
                yield replace(entry, time=time(entry.time), received=right, epoch=epoch)

    async def last_time(self) -> float:
        """Return the time of the latest write."""
        return self._mended.time(await super().last_time())


class MendedModels(_MendedPart, StoredModels):
    """The versions of the prior that can be read."""

    async def all(self) -> list[ModelRecord]:
        """Return all versions that can be read, oldest first."""
        lost = self._mended.report.lost_models
        return [
            replace(record, created=self._mended.time(record.created))
            for record in await super().all()
            if record.version not in lost
        ]

    async def active(self) -> int:
        """Return the active version, 0 if it cannot be read."""
        active, readable = await super().active(), await self.all()
        return active if any(record.version == active for record in readable) else 0


class MendedMeta(_MendedPart, StoredMeta):
    """Settings, and minutes up to now."""

    async def all(self) -> dict[str, str]:
        """Return all settings, in the order of their names."""
        settings = await super().all()
        for name in settings.keys() & DATES:
            settings[name] = repr(self._mended.time(float(settings[name])))
        return settings

    async def minutes(self, since: float) -> list[Minute]:
        """Return the sums of the minutes since a time, in order."""
        minutes = await super().minutes(since)
        return [minute for minute in minutes if not self._mended.late(minute.start)]
