"""Which events count: each is validated against the logged list that it cites.

A rejected event has a reason that begins with a short code: `malformed`, `too_long`,
`unknown_type`, `uncounted`, `unknown_ranking`, `unknown_item`, `expired`, `future`.

An event cites its list by the list's id.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from ebrank.service import api
from ebrank.service.core.experiments import OWN, policy_of
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.resources import Resources, Watcher
from ebrank.service.serving.lists import Logged, Served, number_of, time_of
from ebrank.service.serving.stages import Stages
from ebrank.service.store import counting
from ebrank.service.store.counting import IMPRESSION
from ebrank.service.store.records import EventEntry, Hint, Written

_NAMED = ("event_id", "ranking_id", "item", "type")


class Cited(NamedTuple):
    """A list that events cite, its query, and the rank and row of each of its items by name."""

    served: Served
    live: LiveQuery
    places: Mapping[str, tuple[int, int]]


class Counted(NamedTuple):
    """An event that may count, its query, the row of its item, and its list.

    The store decides whether it does: it may be a duplicate, or its item may already be shown.
    """

    entry: EventEntry
    live: LiveQuery
    row: int
    served: Served


class Feedback:
    """Checks events against the lists they cite, and counts them."""

    def __init__(self, resources: Resources, stages: Stages, watcher: Watcher) -> None:
        self._resources, self._stages, self._watcher = resources, stages, watcher
        settings, behaviors = resources.settings, resources.behaviors
        self._worth = behaviors.weights
        self._outcomes = {
            name: behaviors.outcome(name) for name in (*behaviors.names, *behaviors.negative)
        }
        self._measured = {each.type for each in behaviors.all if each.at_least is not None}
        plain = {each.type for each in behaviors.all if each.at_least is None}
        self._needs_value = self._measured - plain
        self._types = {IMPRESSION, *plain, *self._measured, *behaviors.negative}
        self._types |= set(settings.events.other)
        self._future = settings.events.future_seconds
        self._retention = settings.store.retention_seconds

    async def take(
        self, events: Sequence[api.EventIn | api.Malformed], basis: int
    ) -> list[api.EventResult]:
        """Write and count a batch in one transaction; it is on disk after the next flush.

        `basis` is the incarnation of the store that lists and queries in memory were read in.
        """
        lists = await self._cited(events)
        now = self._resources.clock()  # after all that may take time: the log never goes back
        oldest = self._resources.clock.ago(self._retention)
        verdicts = [self._judged(event, lists, now, oldest) for event in events]
        batch = [verdict for verdict in verdicts if not isinstance(verdict, str)]
        written = await self._written(batch, basis)
        outcomes, results = iter(written), list[api.EventResult]()
        for index, verdict in enumerate(verdicts):
            if isinstance(verdict, str):
                result = api.EventResult(index, "rejected", verdict)
            else:
                outcome = next(outcomes)
                result = api.EventResult(index, outcome.status, outcome.reason or None)
            if result.status != "accepted":
                self._watcher.not_counted(now, result.status, result.reason or "")
            results.append(result)
        return results

    def _judged(
        self,
        event: api.EventIn | api.Malformed,
        lists: Mapping[str, Cited],
        now: float,
        oldest: float,
    ) -> Counted | str:
        """Return the event to log, or why it is rejected: its list may be before the `oldest`."""
        if isinstance(event, api.Malformed):
            return f"malformed: {event.reason}"
        time = now if event.time is None else seconds(event.time)
        problem = self._misshapen(event) or self._mistimed(time, now)
        if problem:
            return problem
        cited = lists.get(event.ranking_id)
        made = time_of(event.ranking_id) if cited is None else cited.served.time
        if made is not None and made < oldest:
            return f"expired: rankings are kept for {self._retention:g} seconds"
        if event.ranking_id == api.UNCOUNTED:
            return f"{api.UNCOUNTED}: the list was neither logged nor counted"
        if cited is None:
            return "unknown_ranking: no list with this ranking_id was served"
        if event.item not in cited.places:
            return "unknown_item: the item is not in this list"
        return self._resolved(event, cited, time, now)

    def _resolved(self, event: api.EventIn, cited: Cited, time: float, now: float) -> Counted:
        """Return the event with the rank that was logged with its list."""
        rank, row = cited.places[event.item]
        kind, retracted = event.type, cited.served.retracted
        if kind in self._measured:
            kind = self._resources.behaviors.of_event(kind, event.value) or kind
        outcome = 0 if retracted else self._outcomes.get(kind, 0)
        shows = not (retracted or cited.served.counted) and (outcome != 0 or kind == IMPRESSION)
        # If it does not show the item, whether the item is unseen does not matter.
        unseen = shows and math.isnan(cited.live.state.first_shown[row])
        arm = self._arm(cited.served)
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
            retracted=retracted,
            value=event.value,
            epoch=self._resources.queries.epoch(now),
            hint=Hint((row,), (unseen,), cited.served.life),
            arm=arm,
            cell=cited.served.cell,
        )
        return Counted(logged, cited.live, row, cited.served)

    def _arm(self, served: Served) -> str | None:
        """Return the arm that an event counts for, None unless its experiment is running."""
        assigner, label = self._resources.active.deployment.assigner, served.arm
        return None if assigner is None or label is None or not assigner.runs(label) else label

    def _misshapen(self, event: api.EventIn) -> str | None:
        lengths = len(event.event_id), len(event.ranking_id), len(event.item), len(event.type)
        if not min(lengths):
            return f"malformed: {_NAMED[lengths.index(0)]} is empty"
        if max(lengths) > api.LONGEST_NAME:
            name = _NAMED[lengths.index(max(lengths))]
            return f"too_long: {name} has more than {api.LONGEST_NAME} characters"
        if any("\0" in name for name in (event.event_id, event.ranking_id, event.item)):
            return "malformed: a name has a NUL character"
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

    async def _cited(self, events: Sequence[api.EventIn | api.Malformed]) -> dict[str, Cited]:
        """Return the lists that events cite, if they still exist."""
        lists = {}
        for name in {event.ranking_id for event in events if isinstance(event, api.EventIn)}:
            cited = await self._list(name)
            if cited is not None:
                served, live = cited
                places = zip(served.ranks(), served.rows, strict=True)
                names = live.ids.at(served.rows)
                lists[name] = Cited(served, live, dict(zip(names, places, strict=True)))
        return lists

    async def _list(self, ranking_id: str) -> tuple[Served, LiveQuery] | None:
        """Return a list that is still in the log, and its query."""
        own = self._resources
        packed = own.recent.get(ranking_id)
        if packed is not None:
            served = Served.unpacked(packed)
            live = await own.queries.get(served.query, own.clock())
            if live is not None and live.life == served.life:
                return served, live
            own.recent.pop(ranking_id)  # its query was deleted, and maybe added again
        return None if number_of(ranking_id) is None else await self._logged_list(ranking_id)

    async def _logged_list(self, ranking_id: str) -> tuple[Served, LiveQuery] | None:
        """Return a list that memory has forgotten, as the log has it."""
        own = self._resources
        entry = await own.store.log.ranking(ranking_id)
        live = None if entry is None else await own.queries.get(entry.query, own.clock())
        if entry is None or live is None:
            return None
        rows = [row for row in live.rows_of(entry.items) if row is not None]
        if len(rows) < len(entry.items):  # it was deleted meanwhile
            return None
        assigner = own.active.deployment.assigner
        entry.cell = 0 if assigner is None or entry.arm is None else assigner.cell_of(entry)
        label = entry.arm
        compared = label is None or policy_of(label, own.active.experiments) != OWN
        served = Served.of(entry, rows, live.life, compared=compared)
        own.recent.put(ranking_id, served.packed())
        return served, live

    async def _written(self, batch: Sequence[Counted], basis: int) -> list[Written]:
        """Write events, add the accepted ones to the counts, and return the outcome of each."""
        if not batch:
            return []
        own = self._resources
        commit, changed = await own.queries.write([event.entry for event in batch], basis)
        for (entry, cited, row, served), written in zip(batch, commit.written, strict=True):
            if written.status != "accepted" or entry.retracted:
                continue
            change = counting.change_of(entry, written, [row], self._worth)
            logged = Logged(change, cited, compared=served.compared)
            self._stages.logged(logged, own.active.deployment)
            live = changed[entry.query]
            if live is not None:
                live.add(change)
        return commit.written


def seconds(time: float | datetime) -> float:
    """Return a time of a request in seconds since 1970."""
    return time.timestamp() if isinstance(time, datetime) else time
