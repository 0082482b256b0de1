"""An item as stores keep it, and the arrays that a query's items become."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import NamedTuple, TypeAlias

import numpy as np

from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.slots import SLOTS
from ebrank.evidence.stats import COUNT
from ebrank.service.store.counting import faded
from ebrank.service.store.records import QueryState
from ebrank.typing import Features, SmallInts

MOST_OUTCOMES, MOST = 1000, np.iinfo(COUNT).max + 1


class ItemRow(NamedTuple):
    """An item of a query without its features and counts."""

    id: str
    entered: float
    active: bool
    first_shown: float | None


Count: TypeAlias = tuple[int, int, int, int, int]
"""The place of an item, from 0; an outcome; a slot; how many; and the epoch of the count."""


def state_of(
    query: str, rows: Sequence[ItemRow], features: Features, counted: Iterable[Count], version: int
) -> QueryState:
    """Return the arrays of a query's items, of which there is at least one.

    Raises:
        ValueError: if rows, features and counts are not of the same items.
        TypeError: if a name is not text.
    """
    ids, entered, active, first = zip(*rows, strict=True)
    "".join(ids)
    if not len(ids) == len(set(ids)) == len(features):
        raise ValueError("items, features and counts of a query do not fit together")
    counts, epoch = counts_of(counted, query, ids)
    return QueryState(
        query=query,
        ids=list(ids),
        features=features,
        counts=counts,
        entered=np.array(entered, np.float64),
        first_shown=np.array([math.nan if time is None else time for time in first], np.float64),
        active=np.array(active, np.bool_),
        version=version,
        epoch=epoch,
    )


def snapshot_of(state: QueryState, counted: Iterable[Count]) -> QueryState:
    """Return a query as it was when these were its counts, including what follows from them.

    The log is rolled up in order, so an item was first shown by a rolled-up entry if any entry that
    showed it was rolled up: then it has a count of impressions, perhaps 0 now.
    """
    rows = list(counted)
    state.counts, state.epoch = counts_of(rows, state.query, state.ids)
    shown = np.zeros(len(state.ids), np.bool_)
    shown[[place for place, outcome, *_ in rows if outcome == SHOWN]] = True
    state.first_shown = np.where(shown, state.first_shown, np.nan)
    return state


def item_rows(state: QueryState) -> list[ItemRow]:
    """Return a query's items one by one."""
    first = [None if math.isnan(time) else time for time in state.first_shown.tolist()]
    columns = (state.ids, state.entered.tolist(), state.active.tolist(), first)
    return [ItemRow(*row) for row in zip(*columns, strict=True)]


def counts_of(rows: Iterable[Count], query: str, ids: Sequence[str]) -> tuple[SmallInts, int]:
    """Return the counts of a query's items, all in the latest epoch, and that epoch.

    Raises:
        ValueError: if one has an impossible item, outcome or slot.

    >>> counts, epoch = counts_of([(1, 0, 2, 7, 0)], "shoes", ["a", "b"])
    >>> counts[1, 0].tolist(), epoch
    ([0, 0, 7], 0)
    """
    items, numbers = len(ids), np.array(list(rows), np.int64).reshape(-1, 5)
    outcomes, slots = 2, 1
    if len(numbers):
        most = (items, MOST_OUTCOMES, SLOTS, MOST, MOST)
        if numbers.min() < 0 or (numbers.max(axis=0) >= most).any():
            raise ValueError("a count has an impossible item, outcome or slot")
        numbers = numbers[numbers[:, 3] > 0]
    if len(numbers):
        outcomes = max(outcomes, 1 + int(numbers[:, 1].max()))
        slots = 1 + int(numbers[:, 2].max())
    counts = np.zeros((items, outcomes, slots), COUNT)
    place, outcome, slot, count, epochs = numbers.T
    counts[place, outcome, slot] = count
    latest = int(epochs.max(initial=0))
    if np.all(epochs == latest):
        return counts, latest
    of_items = np.full(items, latest)
    of_items[place] = epochs
    left = faded(counts, query, of_items, latest)
    # As many outcomes and slots as needed, whether or not others were forgotten.
    cells = np.argwhere(left)[:, 1:].max(axis=0, initial=0)
    return np.ascontiguousarray(left[:, : max(2, 1 + cells[0]), : 1 + cells[1]]), latest


def reach(state: QueryState, epoch: int) -> None:
    """Let a query's counts fade up to an epoch."""
    if epoch > state.epoch:
        state.counts = faded(state.counts, state.query, state.epoch, epoch)
        state.epoch = epoch


def count_rows(state: QueryState) -> list[Count]:
    """Return the counts that are not 0, the inverse of `counts_of`.

    An item that was shown has a count of impressions, even if it is 0.
    """
    counts, epoch = state.counts, state.epoch
    keys = np.nonzero(counts)
    columns = (*(key.tolist() for key in keys), counts[keys].tolist())
    shown = ~np.isnan(state.first_shown) & ~counts[:, SHOWN].any(axis=1)
    # Their rows keep the epoch of an item whose counts have all faded to 0.
    faded = ((place, SHOWN, 0, 0, epoch) for place in np.flatnonzero(shown).tolist())
    return [*zip(*columns, repeat(epoch), strict=False), *faded]
