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

from ebrank.service.core.agreed_settings import half_life
from ebrank.service.core.background import GRACE_SECONDS
from ebrank.service.ops.check import day, unreadable
from ebrank.service.ops.replay import listed, replay
from ebrank.service.ops.transfer.copying import fill
from ebrank.service.store import open
from ebrank.service.store.base import Progress, Store, StoreError
from ebrank.service.store.counting import items_of, time_of
from ebrank.service.store.driver import StoreGroup
from ebrank.service.store.items import StoredCatalog, StoredItems
from ebrank.service.store.log import StoredLog
from ebrank.service.store.meta import StoredMeta, StoredModels
from ebrank.service.store.records import Minute, ModelRecord, Operation, QueryState, RankingEntry
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
        report: what is wrong; the survey finds it.
        epoch: the current one, after which nothing can be forgotten yet; known after the survey.
    """

    def __init__(self, store: Store, now: float) -> None:
        super().__init__(store.driver)
        self.report = Repair(now)
        self.epoch = 0
        self._store = store
        self._ids: dict[str, frozenset[str]] = {}
        self.items = MendedItems(self)
        self.catalog = MendedCatalog(self)
        self.log: MendedLog = MendedLog(self)
        self.models = MendedModels(self)
        self.meta = MendedMeta(self)

    def readable(self, entry: Operation) -> bool:
        """Return whether an entry's query and items can be read."""
        items = self._ids.get(entry.query)
        return items is not None and items.issuperset(items_of(entry))

    async def survey(self, progress: Progress | None) -> Repair:
        """Read everything, and return what is wrong."""
        report, store = self.report, self._store
        report.faults = [fault.what for fault in await store.faults()]
        times = [record.created for record in await store.models.all()]
        times += [minute.start for minute in await store.meta.minutes(0.0)]
        for query in await store.items.queries():
            if await unreadable(store, query):
                report.lost_queries.append(query)
                continue
            state = listed(query, await store.items.load(query))
            self._ids[query] = frozenset(state.ids)
            times += [*state.entered.tolist(), *state.first_shown.tolist()]
        await self._survey_log(progress)
        if not report.late_entries:
            times.append(await store.log.last_time())
        report.late_times = sum(time > report.now for time in times)
        async for _ in self.catalog.entries():
            pass
        for record in await store.models.all():
            try:
                await store.models.document(record.version)
            except StoreError:
                report.lost_models.append(record.version)
        if not (report.lost_queries or report.unread):
            report.wrong_counters = (await replay(store)).different
        forgets = half_life(await store.meta.all())
        self.epoch = 0 if forgets is None else forgets.epoch(report.now)
        return report

    async def _survey_log(self, progress: Progress | None) -> None:
        report, before, total = self.report, 0.0, await self._store.log.length()
        async for entry in self.log.all():
            report.entries += 1
            if progress is not None and report.entries % 1000 == 0:
                progress(report.entries, total)
            time = time_of(entry)
            if not self.readable(entry):
                report.lost_entries += 1
            elif time > report.now:
                report.late_entries += 1
                report.last = max(report.last, time)
            else:
                report.early_entries += time < before - GRACE_SECONDS
                before = max(before, time)


class _MendedPart(StoreGroup):
    """A group of a store's methods, some of which a subclass overrides."""

    def __init__(self, mended: Mended) -> None:
        super().__init__(mended.driver)
        self._mended = mended
        self._report = mended.report


class MendedItems(_MendedPart, StoredItems):
    """Queries that can be read."""

    async def queries(self) -> list[str]:
        """Return the names of queries that can be read."""
        lost = set(self._report.lost_queries)
        return [query for query in await super().queries() if query not in lost]

    async def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state by what was rolled up: by all, if the log cannot be read."""
        state = await (super().load(query) if self._report.unread else super().snapshot(query))
        if state is not None:
            state.entered = np.minimum(state.entered, self._report.now)
            state.first_shown = np.minimum(state.first_shown, self._report.now)
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
            self._report.lost_catalog = str(problem)


class MendedLog(_MendedPart, StoredLog):
    """Entries of such queries, none in the future."""

    async def all(self) -> AsyncIterator[Operation]:
        """Yield the log up to the first entry that cannot be read."""
        try:
            async for entry in super().entries():
                yield entry
        except StoreError as problem:
            self._report.unread = str(problem)

    async def entries(self) -> AsyncIterator[Operation]:
        """Yield the entries of the log that can be kept, in order."""
        if self._report.unread:
            return
        now, before, epoch = self._report.now, 0.0, 0
        async for entry in self.all():
            if not self._mended.readable(entry):
                continue
            right = min(time_of(entry), now)
            if right < before - GRACE_SECONDS:
                right = before
            before = max(right, before)
            epoch = max(min(entry.epoch, self._mended.epoch), epoch)
            if (right, epoch) == (time_of(entry), entry.epoch):
                yield entry
            elif isinstance(entry, RankingEntry):
                yield replace(entry, time=right, epoch=epoch)
            else:
                yield replace(entry, time=min(entry.time, now), received=right, epoch=epoch)

    async def last_time(self) -> float:
        """Return the time of the latest write."""
        return min(await super().last_time(), self._report.now)


class MendedModels(_MendedPart, StoredModels):
    """The versions of the prior that can be read."""

    async def all(self) -> list[ModelRecord]:
        """Return all versions that can be read, oldest first."""
        return [
            replace(record, created=min(record.created, self._report.now))
            for record in await super().all()
            if record.version not in self._report.lost_models
        ]

    async def active(self) -> int:
        """Return the active version, 0 if it cannot be read."""
        active = await super().active()
        return active if active in {record.version for record in await self.all()} else 0


class MendedMeta(_MendedPart, StoredMeta):
    """Settings, and minutes up to now."""

    async def all(self) -> dict[str, str]:
        """Return all settings, in the order of their names."""
        settings = await super().all()
        for name in settings.keys() & DATES:
            settings[name] = repr(min(float(settings[name]), self._report.now))
        return settings

    async def minutes(self, since: float) -> list[Minute]:
        """Return the sums of the minutes since a time, in order."""
        return [each for each in await super().minutes(since) if each.start <= self._report.now]
