"""A batch of events: held against the rules, written, counted, and answered one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ebrank.service import api, counting
from ebrank.service.committer import Committer
from ebrank.service.feedback import Counted, RecentLists, Rules
from ebrank.service.queries import Queries
from ebrank.service.records import RankingEntry, Written
from ebrank.service.settings import Settings
from ebrank.service.watch import Watch


class Inbox:
    """Counts events."""

    def __init__(
        self,
        settings: Settings,
        queries: Queries,
        recent: RecentLists,
        committer: Committer,
        watch: Watch,
    ) -> None:
        self._queries = queries
        self._committer = committer
        self._watch = watch
        self._rules = Rules(settings, recent, self._rows_of)

    def take(
        self, events: Sequence[api.EventIn | api.Malformed], now: float
    ) -> list[api.EventResult]:
        """Write and count a batch in one transaction; it is on disk after the next flush."""
        verdicts = [self._rules.judge(event, now) for event in events]
        written = self._written([one for one in verdicts if isinstance(one, Counted)], now)
        return [
            api.EventResult(index, "rejected", verdict)
            if isinstance(verdict, str)
            else _result(index, next(written))
            for index, verdict in enumerate(verdicts)
        ]

    def _written(self, batch: Sequence[Counted], now: float) -> Iterator[Written]:
        """Write events, add the accepted ones to the counters, and return what became of each."""
        if not batch:
            return iter(())
        # In memory before they are written: read afterwards, they would be counted already.
        queries = {one.entry.query for one in batch}
        live = {query: self._queries.get(query, now) for query in queries}
        commit = self._committer.submit([one.entry for one in batch], flush=False)
        for (event, row), written in zip(batch, commit.written, strict=True):
            owner = live[event.query]
            if written.status == "accepted" and owner is not None:
                entry = counting.as_written(event, written)
                steps = counting.steps(entry)
                self._watch.event(owner, row, event, shows=written.shows)
                owner.add(steps, [row] * len(steps))
        return iter(commit.written)

    def _rows_of(self, entry: RankingEntry) -> list[int]:
        """Return the rows of a list's items; all are known, since items are never forgotten."""
        live = self._queries.get(entry.query, entry.time)
        rows = [] if live is None else live.rows_of(entry.items)
        return [-1 if row is None else row for row in rows]


def _result(index: int, written: Written) -> api.EventResult:
    return api.EventResult(index, written.status, written.reason or None)
