"""An item as stores keep it, and the arrays that a query's items become."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ebrank.behavior import FIELDS, BehaviorStats
from ebrank.service.store.base import StoreError
from ebrank.service.store.counting import Step
from ebrank.service.store.records import NewItem, QueryState

ID_SEEN = "event_id was seen before"
ALREADY_COUNTED = "an event of this type was counted for this item of this ranking"


@dataclass
class Counters:
    """n, c, C and E of an item, and when it was first shown; None if never."""

    shown: int = 0
    clicks: int = 0
    weighted_clicks: float = 0.0
    exposure: float = 0.0
    first_shown: float | None = None

    def add(self, step: Step) -> None:
        """Add what a log entry adds."""
        self.shown += step.shown
        self.clicks += step.clicks
        self.weighted_clicks += step.weighted_clicks
        self.exposure += step.exposure
        if self.first_shown is None:
            self.first_shown = step.first_shown


class ItemRow(NamedTuple):
    """An item of a query without its features."""

    id: str
    entered: float
    active: bool
    shown: int
    clicks: int
    weighted_clicks: float
    exposure: float
    first_shown: float | None


def state_of(
    query: str, rows: Sequence[ItemRow], features: npt.NDArray[np.float32], version: int
) -> QueryState:
    """Return the arrays of a query's items, of which it has one at least."""
    ids, entered, active, shown, clicks, weighted_clicks, exposure, first = zip(*rows, strict=True)
    return QueryState(
        query=query,
        ids=list(ids),
        features=features,
        stats=BehaviorStats(
            np.array(shown, np.int64),
            np.array(clicks, np.int64),
            np.array(weighted_clicks, np.float64),
            np.array(exposure, np.float64),
        ),
        entered=np.array(entered, np.float64),
        first_shown=np.array([math.nan if time is None else time for time in first], np.float64),
        active=np.array(active, np.bool_),
        version=version,
    )


def rows_of(state: QueryState) -> list[ItemRow]:
    """Return a query's items one by one: the way back from `state_of`."""
    stats = state.stats
    first = [None if math.isnan(time) else time for time in state.first_shown.tolist()]
    columns = (state.entered, state.active, *(getattr(stats, name) for name in FIELDS))
    numbers = (column.tolist() for column in columns)
    return [ItemRow(*row) for row in zip(state.ids, *numbers, first, strict=True)]


def check_width(query: str, items: Sequence[NewItem], width: int | None) -> None:
    """Raise unless all items have as many features, namely `width` if some are there already."""
    for item in items:
        width = len(item.features) if width is None else width
        if len(item.features) != width:
            raise StoreError(
                f"item {item.id!r} of query {query!r} has {len(item.features)} features, "
                f"others have {width}; nothing was changed"
            )
