"""Single impressions of the log and their outcomes, from which contexts are learned."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ebrank.evidence import Behaviors, Examination
from ebrank.model.policy.contexts import Impressions
from ebrank.service.store.base import StoredLog
from ebrank.service.store.records import EventEntry, QueryState, RankingEntry
from ebrank.typing import Bools, Floats, Ints

LISTS = 50_000
"""How many of the latest lists in the log are read."""


@dataclass(frozen=True, eq=False)
class LoggedImpressions:
    """Impressions in lists with a context.

    Attributes:
        rows: the item of each, by its row among all items of all queries.
        ranks: its rank, from 1.
        outcomes: what it was worth.
        lists: the context of each, by its place in `contexts`.
        contexts: numbers of contexts.
    """

    rows: Ints
    ranks: Ints
    outcomes: Floats
    lists: Ints
    contexts: Sequence[Sequence[int]]

    def of_items(self, items: Bools, curve: Examination) -> Impressions:
        """Return the impressions of some items, rows renumbered, under an examination curve."""
        kept, rows = items[self.rows], np.cumsum(items) - 1
        return Impressions(
            rows[self.rows[kept]],
            curve(self.ranks[kept]),
            self.outcomes[kept],
            self.lists[kept],
            self.contexts,
        )


async def read(
    log: StoredLog, states: Sequence[QueryState], behaviors: Behaviors
) -> LoggedImpressions:
    """Return the latest impressions; rows are counted over the items of the states."""
    reader = _Reader(states, behaviors)
    async for entry in log.latest(LISTS):
        if isinstance(entry, RankingEntry):
            reader.listed(entry)
        else:
            reader.done(entry)
    return reader.impressions()


class _Reader:
    """Adds entries up, in the order of the log."""

    def __init__(self, states: Sequence[QueryState], behaviors: Behaviors) -> None:
        begins = np.cumsum([0, *(len(state.ids) for state in states)]).tolist()
        self._states = {
            state.query: (state, begin) for state, begin in zip(states, begins, strict=False)
        }
        self._row_of: dict[str, dict[str, int]] = {}
        self._weights = behaviors.weights
        self._contexts: dict[tuple[int, ...], int] = {}
        # By the list that events count for: its context, and its impressions by item.
        self._cited: dict[str, tuple[int, dict[str, int]]] = {}
        self._rows, self._ranks, self._lists = array("q"), array("q"), array("q")
        self._outcomes = array("d")

    def listed(self, entry: RankingEntry) -> None:
        """Add a list."""
        if not entry.contexts:
            return
        context = self._contexts.setdefault(entry.contexts, len(self._contexts))
        _, impressions = self._cited.setdefault(entry.continues or entry.id, (context, {}))
        if not entry.counted:
            return
        seen = entry.seen or (0,) * len(entry.items)
        for rank, (item, before) in enumerate(zip(entry.items, seen, strict=True), 1):
            if not before:
                self._add(entry.query, item, entry.offset + rank, context, impressions)

    def done(self, entry: EventEntry) -> None:
        """Add what a user did."""
        if entry.ranking_id not in self._cited:
            return
        context, impressions = self._cited[entry.ranking_id]
        if entry.shows:
            self._add(entry.query, entry.item, entry.rank, context, impressions)
        place = impressions.get(entry.item)
        if place is not None and entry.outcome:
            worth = self._weights[entry.outcome - 1] if entry.outcome > 0 else 0.0
            self._outcomes[place] = worth

    def _add(
        self, query: str, item: str, rank: int, context: int, impressions: dict[str, int]
    ) -> None:
        row = self._rows_of(query).get(item)
        if row is None:  # deleted since
            return
        impressions[item] = len(self._rows)
        self._rows.append(row)
        self._ranks.append(rank)
        self._lists.append(context)
        self._outcomes.append(0.0)

    def _rows_of(self, query: str) -> dict[str, int]:
        rows = self._row_of.get(query)
        if rows is None:
            rows = {}
            if query in self._states:
                state, begin = self._states[query]
                rows = {item: row for row, item in enumerate(state.ids, begin)}
            self._row_of[query] = rows
        return rows

    def impressions(self) -> LoggedImpressions:
        """Return everything added."""
        return LoggedImpressions(
            np.array(self._rows, np.int64),
            np.array(self._ranks, np.int64),
            np.array(self._outcomes, np.float64),
            np.array(self._lists, np.int64),
            list(self._contexts),
        )
