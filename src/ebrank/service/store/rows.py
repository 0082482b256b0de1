"""An item as stores keep it, and the arrays that a query's items become."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ebrank.behavior import BehaviorStats
from ebrank.service.counting import Step
from ebrank.service.records import NewItem, QueryState
from ebrank.service.store.base import StoreError

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
    """An item of a query; its features as given or already as an array of float32."""

    id: str
    features: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float32]]
    entered: float
    active: bool
    counters: Counters


def state_of(query: str, rows: Sequence[ItemRow]) -> QueryState | None:
    """Return the arrays of a query's items; None if it has none, which means it is unknown."""
    if not rows:
        return None
    counters = [row.counters for row in rows]
    never = math.nan
    return QueryState(
        query=query,
        ids=[row.id for row in rows],
        features=np.array([row.features for row in rows], np.float32),
        stats=BehaviorStats(
            np.array([one.shown for one in counters], np.int64),
            np.array([one.clicks for one in counters], np.int64),
            np.array([one.weighted_clicks for one in counters], np.float64),
            np.array([one.exposure for one in counters], np.float64),
        ),
        entered=np.array([row.entered for row in rows], np.float64),
        first_shown=np.array(
            [never if one.first_shown is None else one.first_shown for one in counters], np.float64
        ),
        active=np.array([row.active for row in rows], np.bool_),
    )


def check_width(query: str, items: Sequence[NewItem], width: int | None) -> None:
    """Raise unless all items have as many features, namely `width` if some are there already."""
    for item in items:
        width = len(item.features) if width is None else width
        if len(item.features) != width:
            raise StoreError(
                f"item {item.id!r} of query {query!r} has {len(item.features)} features, "
                f"others have {width}; nothing was changed"
            )
