"""Which events count: each is checked against the logged list, whatever it claims.

A rejected event has a reason that begins with a short code: `malformed`, `too_long`,
`unknown_type`, `uncounted`, `unknown_ranking`, `unknown_item`, `expired`, `future`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from ebrank.evidence import Behaviors
from ebrank.evidence.forgetting import HalfLife
from ebrank.service import api
from ebrank.service.core import ranking_ids
from ebrank.service.core.bots import Bots
from ebrank.service.core.packed import ROOM, PackedCache, decode, encode
from ebrank.service.core.queries.cache import Queries
from ebrank.service.core.queries.live import LiveQuery
from ebrank.service.insight.activity import Activity
from ebrank.service.settings import Settings
from ebrank.service.store import counting
from ebrank.service.store.base import Store, StoreError
from ebrank.service.store.counting import IMPRESSION
from ebrank.service.store.records import EventEntry, Hint, RankingEntry, Written
from ebrank.typing import SmallInts

_HEAD = struct.Struct("<dI???HHHH")

_NAMED = ("event_id", "ranking_id", "item", "type")


class Served(NamedTuple):
    """A list that was served.

    Attributes:
        query: its query.
        time: when; that of the first list of its window, since its events count for that one.
        counted: whether serving it counted as impressions.
        rows: of its items.
        life: of its query; in another life, these rows have other items.
        offset: how many ranks are above it.
        continues: the list for which its events count, if it is another.
        seen: at which ranks impressions counted before, 0 for others; None if none did.
        bot: whether a bot asked for it.
        visitor: whose events are added up to recognize bots.
    """

    query: str
    time: float
    counted: bool
    rows: SmallInts
    life: int
    offset: int = 0
    continues: str | None = None
    seen: SmallInts | None = None
    bot: bool = False
    visitor: str | None = None

    @classmethod
    def of(
        cls, entry: RankingEntry, rows: Sequence[int], life: int, visitor: str | None = None
    ) -> Served:
        """Return what must be known about a list, given the rows of its items in its query."""
        placed = np.array(rows, np.int32), life, entry.offset
        plain = cls(entry.query, entry.time, entry.counted, *placed)
        if entry.continues is None and visitor is None and not entry.bot:
            return plain
        first = ranking_ids.time_of(entry.continues) if entry.continues else None
        return plain._replace(
            time=entry.time if first is None else first,
            continues=entry.continues,
            seen=np.array(entry.seen, np.int32) if entry.seen else None,
            bot=entry.bot,
            visitor=visitor,
        )

    def ranks(self) -> Sequence[int]:
        """Return the rank at which each item's impression counts."""
        own = range(self.offset + 1, self.offset + len(self.rows) + 1)
        if self.seen is None:
            return own
        return [seen or rank for seen, rank in zip(self.seen.tolist(), own, strict=True)]

    def packed(self) -> bytes:
        """Return it as bytes, which take less memory."""
        continues, visitor = encode(self.continues or ""), encode(self.visitor or "")
        flags = self.counted, self.bot, self.seen is not None
        sizes = self.offset, len(self.rows), len(continues), len(visitor)
        seen = b"" if self.seen is None else self.seen.tobytes()
        head = _HEAD.pack(self.time, self.life, *flags, *sizes)
        return b"".join([head, self.rows.tobytes(), seen, continues, visitor, encode(self.query)])

    @classmethod
    def unpacked(cls, data: bytes) -> Served:
        """Return the list that was packed."""
        time, life, counted, bot, repeats, offset, count, *lengths = _HEAD.unpack_from(data)
        rows, at = np.frombuffer(data, np.int32, count, _HEAD.size), _HEAD.size + 4 * count
        seen = None
        if repeats:
            seen, at = np.frombuffer(data, np.int32, count, at), at + 4 * count
        continues, visitor = at + lengths[0], at + sum(lengths)
        return cls(
            query=decode(data[visitor:]),
            time=time,
            counted=counted,
            rows=rows,
            life=life,
            offset=offset,
            continues=decode(data[at:continues]) or None,
            seen=seen,
            bot=bot,
            visitor=decode(data[continues:visitor]) or None,
        )


class RecentLists:
    """The latest lists, since most feedback cites one of them; others are in the store."""

    def __init__(self, store: Store, bots: Bots, room: int = ROOM) -> None:
        self._store = store
        self._bots = bots
        self.cache: PackedCache[str] = PackedCache(room)

    def add(self, ranking_id: str, served: Served) -> None:
        """Remember a list."""
        self.cache.put(ranking_id, served.packed())

    async def get(
        self, ranking_id: str, find: Callable[[str], Awaitable[LiveQuery | None]]
    ) -> tuple[Served, LiveQuery] | None:
        """Return a list that is still in the log, and its query, which `find` returns."""
        packed = self.cache.get(ranking_id)
        if packed is not None:
            served = Served.unpacked(packed)
            live = await find(served.query)
            if live is not None and live.life == served.life:
                return served, live
            self.cache.pop(ranking_id)  # its query was deleted, and maybe added again
        if ranking_ids.number_of(ranking_id) is None:
            return None
        entry = await self._store.log.ranking(ranking_id)
        live = None if entry is None else await find(entry.query)
        if entry is None or live is None:
            return None
        rows = [row for row in live.rows_of(entry.items) if row is not None]
        if len(rows) < len(entry.items):  # it was deleted meanwhile
            return None
        served = Served.of(entry, rows, live.life, self._bots.visitor_of(entry))
        self.add(ranking_id, served)
        return served, live


class Cited(NamedTuple):
    """A list that events cite, its query, and the rank and row of each of its items by name."""

    served: Served
    live: LiveQuery
    places: Mapping[str, tuple[int, int]]


class Counted(NamedTuple):
    """An event that may count, its query, the row of its item, and whose event it is if known.

    The store decides whether it does: it may be a duplicate, or its item may already be shown.
    """

    entry: EventEntry
    live: LiveQuery
    row: int
    visitor: str | None


class FeedbackRules:
    """Checks events against the lists they cite."""

    def __init__(
        self, settings: Settings, behaviors: Behaviors, half_life: HalfLife | None = None
    ) -> None:
        self._half_life = half_life
        self._behaviors = behaviors
        self._outcomes = {
            name: behaviors.outcome(name) for name in (*behaviors.names, *behaviors.negative)
        }
        self._measured = {one.type for one in behaviors.all if one.at_least is not None}
        plain = {one.type for one in behaviors.all if one.at_least is None}
        self._needs_value = self._measured - plain
        self._types = {IMPRESSION, *plain, *self._measured, *behaviors.negative}
        self._types |= set(settings.events.other)
        self._future = settings.events.future_seconds
        self._retention = settings.store.retention_seconds

    def judge(
        self,
        event: api.EventIn | api.Malformed,
        lists: Mapping[str, Cited],
        now: float,
        suspects: Callable[[Served], bool],
    ) -> Counted | str:
        """Return the event to log, or the reason why it is rejected."""
        if isinstance(event, api.Malformed):
            return f"malformed: {event.reason}"
        time = now if event.time is None else _seconds(event.time)
        problem = self._misshapen(event) or self._mistimed(time, now)
        if problem:
            return problem
        cited = lists.get(event.ranking_id)
        made = ranking_ids.time_of(event.ranking_id) if cited is None else cited.served.time
        if made is not None and made < now - self._retention:
            return f"expired: rankings are kept for {self._retention:g} seconds"
        if event.ranking_id == api.UNCOUNTED:
            return f"{api.UNCOUNTED}: the list was made while the store was failing, and not logged"
        if cited is None:
            return "unknown_ranking: no list with this ranking_id was served"
        if event.item not in cited.places:
            return "unknown_item: the item is not in this list"
        return self._resolved(event, cited, time, now, bot=suspects(cited.served))

    def _resolved(
        self, event: api.EventIn, cited: Cited, time: float, now: float, *, bot: bool
    ) -> Counted:
        """Return the event with the rank that was logged with its list."""
        rank, row = cited.places[event.item]
        kind = event.type
        if kind in self._measured:
            kind = self._behaviors.of_event(kind, event.value) or kind
        outcome = self._outcomes.get(kind, 0)
        if bot:
            outcome = 0
        shows = not (bot or cited.served.counted) and (outcome != 0 or kind == IMPRESSION)
        # If it does not show the item, whether the item is unseen does not matter.
        unseen = shows and math.isnan(cited.live.state.first_shown[row])
        logged = EventEntry(
            event_id=event.event_id,
            ranking_id=cited.served.continues or event.ranking_id,
            query=cited.served.query,
            item=event.item,
            type=kind,
            rank=rank,
            outcome=outcome,
            shows=shows,
            time=time,
            received=now,
            bot=bot,
            value=event.value,
            epoch=0 if self._half_life is None else self._half_life.epoch(now),
            hint=Hint((row,), (unseen,), cited.served.life),
        )
        return Counted(logged, cited.live, row, cited.served.visitor)

    def _misshapen(self, event: api.EventIn) -> str | None:
        lengths = len(event.event_id), len(event.ranking_id), len(event.item), len(event.type)
        if not min(lengths):
            return f"malformed: {_NAMED[lengths.index(0)]} is empty"
        if max(lengths) > api.LONGEST_NAME:
            name = _NAMED[lengths.index(max(lengths))]
            return f"too_long: {name} has more than {api.LONGEST_NAME} characters"
        if event.type not in self._types:
            return f"unknown_type: the type must be one of {', '.join(sorted(self._types))}"
        if event.value is None and event.type in self._needs_value:
            return f"malformed: {event.type} needs a value"
        if event.value is not None and not math.isfinite(event.value):
            return "malformed: value is not a finite number"
        return None

    def _mistimed(self, time: float, now: float) -> str | None:
        if not math.isfinite(time):
            return "malformed: time is not a finite number"
        if time > now + self._future:
            return f"future: time is more than {self._future:g} seconds ahead of the server's clock"
        return None


class Feedback:
    """Counts events."""

    def __init__(
        self,
        store: Store,
        rules: FeedbackRules,
        queries: Queries,
        lists: RecentLists,
        activity: Activity,
        bots: Bots,
        clock: Callable[[], float],
        timer: Callable[[], float],
    ) -> None:
        self._store = store
        self._rules = rules
        self._queries = queries
        self._lists = lists
        self._activity = activity
        self._bots = bots
        self._clock = clock
        self._timer = timer

    async def take(
        self, events: Sequence[api.EventIn | api.Malformed], epoch: int
    ) -> list[api.EventResult]:
        """Write and count a batch in one transaction; it is on disk after the next flush.

        The epoch is that in which memory read its lists and queries.
        """
        lists = await self._cited(events)
        now = self._clock()  # after all that may take time: the log's times never go back
        verdicts = [self._rules.judge(event, lists, now, self._suspects) for event in events]
        batch = [one for one in verdicts if not isinstance(one, str)]
        try:
            written = await self._written(batch, epoch)
        except StoreError:  # none counts, and they may be sent again
            self._not_done(batch)
            raise
        if self._bots.on:
            pairs = zip(batch, written, strict=True)
            self._not_done([one for one, told in pairs if told.status == "duplicate"])
        outcomes = iter(written)
        results = [
            api.EventResult(index, "rejected", verdict)
            if isinstance(verdict, str)
            else _result(index, next(outcomes))
            for index, verdict in enumerate(verdicts)
        ]
        for result in results:
            if result.status != "accepted":
                self._activity.not_counted(now, result.status, result.reason or "")
        return results

    def _suspects(self, served: Served) -> bool:
        """Return whether an event about a list is a bot's."""
        if served.visitor is None:
            return served.bot
        return self._bots.suspects(served.visitor, self._timer(), events=1) or served.bot

    def _not_done(self, events: Sequence[Counted]) -> None:
        """Forget for the recognition of bots that visitors sent events which did not count."""
        for one in events:
            if one.visitor is not None:
                self._bots.take_back(one.visitor, self._timer(), events=1)

    async def _cited(self, events: Sequence[api.EventIn | api.Malformed]) -> dict[str, Cited]:
        """Return the lists that events cite, if they still exist."""
        found = {}
        for name in {event.ranking_id for event in events if isinstance(event, api.EventIn)}:
            cited = await self._lists.get(name, self._live)
            if cited is not None:
                served, live = cited
                rows = served.rows.tolist()
                places = zip(served.ranks(), rows, strict=True)
                found[name] = Cited(served, live, dict(zip(live.ids.at(rows), places, strict=True)))
        return found

    async def _live(self, query: str) -> LiveQuery | None:
        return await self._queries.get(query, self._clock())

    async def _written(self, batch: Sequence[Counted], epoch: int) -> list[Written]:
        """Write events, add the accepted ones to the counts, and return the outcome of each."""
        if not batch:
            return []
        with self._queries.following([one.entry.query for one in batch]):
            commit = await self._store.log.write(
                [one.entry for one in batch], epoch=epoch, known=self._queries.version
            )
        changed = {
            query: self._queries.wrote(query, version, commit.news.get(query))
            for query, version in commit.versions.items()
        }
        for (event, known, row, _), written in zip(batch, commit.written, strict=True):
            if written.status != "accepted":
                continue
            self._activity.event(known, row, event, written)
            if event.bot:
                self._bots.on_bot("event")
            live = changed[event.query]
            if live is not None:
                live.add(counting.as_written(event, written), [row])
        return commit.written


def _result(index: int, written: Written) -> api.EventResult:
    return api.EventResult(index, written.status, written.reason or None)


def _seconds(time: float | datetime) -> float:
    return time.timestamp() if isinstance(time, datetime) else time
