"""A batch of events: held against the rules, written, counted, and answered one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ebrank.service import api, counting
from ebrank.service.committer import Committer
from ebrank.service.feedback import Counted, RecentLists, Rules
from ebrank.service.queries import Queries
from ebrank.service.records import RankingEntry
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store
from ebrank.service.watch import Watch


class _Numbered(NamedTuple):
    place: int
    event: Counted


class Inbox:
    """Counts events."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        queries: Queries,
        recent: RecentLists,
        committer: Committer,
        watch: Watch,
    ) -> None:
        self._store = store
        self._queries = queries
        self._committer = committer
        self._watch = watch
        self._rules = Rules(settings, recent, self._rows_of)

    def take(
        self, events: Sequence[api.EventIn | api.Malformed], now: float
    ) -> list[api.EventResult]:
        """Write and count a batch; what was accepted is on disk after the next flush.

        Whether an event is the impression of its item depends on those counted before it, so one
        that follows another of the same item in the same list waits until that one is written.
        """
        results: dict[int, api.EventResult] = {}
        waiting: list[_Numbered] = []
        slots: set[tuple[str, str]] = set()
        for index, event in enumerate(events):
            verdict = self._rules.judge(event, now)
            if isinstance(verdict, str):
                results[index] = api.EventResult(index, "rejected", verdict)
                continue
            if verdict.unconfirmed:
                if verdict.slot in slots:
                    self._write(waiting, results)
                    waiting, slots = [], set()
                slots.add(verdict.slot)
                if not self._store.shown_by_event(*verdict.slot):
                    verdict = verdict._replace(entry=replace(verdict.entry, shows=True))
            waiting.append(_Numbered(index, verdict))
        self._write(waiting, results)
        return [results[index] for index in range(len(events))]

    def _write(self, batch: Sequence[_Numbered], results: dict[int, api.EventResult]) -> None:
        """Write events in one transaction, and add the accepted ones to the counters in memory."""
        if not batch:
            return
        # In memory before they are written: read afterwards, they would be counted already.
        live = {
            query: self._queries.get(query, batch[0].event.entry.received)
            for query in {one.event.entry.query for one in batch}
        }
        commit = self._committer.submit([one.event.entry for one in batch], flush=False)
        for (index, (entry, row, _)), written in zip(batch, commit.written, strict=True):
            results[index] = api.EventResult(index, written.status, written.reason or None)
            owner = live[entry.query]
            if written.status == "accepted" and owner is not None:
                self._watch.event(owner, row, entry)
                steps = counting.steps(entry)
                owner.add(steps, [row] * len(steps))

    def _rows_of(self, entry: RankingEntry) -> list[int]:
        """Return the rows of a list's items; all are known, since items are never forgotten."""
        live = self._queries.get(entry.query, entry.time)
        rows = [] if live is None else live.rows_of(entry.items)
        return [-1 if row is None else row for row in rows]
