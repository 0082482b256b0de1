"""What lists, feedback and items all use: the store, what memory holds of it, and the clocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ebrank.evidence import Behaviors
from ebrank.service import api
from ebrank.service.core import agreed_settings
from ebrank.service.core.background import LogClock, Unsaved
from ebrank.service.core.catalog import Catalog
from ebrank.service.core.experiments import ArmCell
from ebrank.service.core.memory import PackedCache
from ebrank.service.core.models import ActiveModel
from ebrank.service.core.queries import Pace, Queries
from ebrank.service.serving.lists import Logged
from ebrank.service.settings import Settings
from ebrank.service.sharing.sharing import Sharing
from ebrank.service.store.base import Store
from ebrank.typing import Floats


class Watcher(Protocol):
    """An observer of what is served and counted; nothing depends on it.

    Attributes:
        arms: the sums of arms that are not yet in the store.
    """

    arms: Unsaved[ArmCell]

    def items(self, *, items: int, queries: int) -> None:
        """Take note of new items and queries."""
        ...

    def logged(self, logged: Logged) -> None:
        """Take note of a list or an event, before it is added to the counters of its query."""
        ...

    def not_counted(self, time: float, status: str, reason: str) -> None:
        """Take note of an event that was a duplicate, or rejected for a reason."""
        ...


@dataclass(frozen=True, eq=False)
class Resources:
    """What an engine opens once.

    The clock dates the log; the timer is for what must continue even if the clock is set back.

    Attributes:
        meta: the store's settings when it was opened.
        examination: the probability that users look at each rank, as configured.
        sharing: the evidence that queries share.
        recent: packed lists that feedback may cite, by their ids.
    """

    store: Store
    settings: Settings
    clock: LogClock
    timer: Callable[[], float]
    meta: Mapping[str, str]
    behaviors: Behaviors
    examination: Floats
    catalog: Catalog
    active: ActiveModel
    queries: Queries
    pace: Pace
    sharing: Sharing
    recent: PackedCache[str]

    @classmethod
    async def open(
        cls,
        store: Store,
        settings: Settings,
        clock: Callable[[], float],
        timer: Callable[[], float],
    ) -> Resources:
        """Read what a store holds; raise `SettingsError` if the settings do not fit it."""
        now = LogClock(clock, timer, await store.log.last_time())
        meta = await agreed_settings.agree(store, settings, now())
        behaviors = settings.events.declared()
        catalog = await Catalog.open(store, settings.features)
        queries = Queries(
            store,
            seed=settings.ranking.seed,
            behaviors=behaviors,
            catalog=catalog,
            half_life=agreed_settings.half_life(meta),
        )
        active = await ActiveModel.open(store, settings, now)
        return cls(
            store,
            settings,
            now,
            timer,
            meta,
            behaviors,
            settings.examination.examination()(np.arange(1, api.MOST_RANKS + 1)),
            catalog,
            active,
            queries,
            Pace(queries, settings.ranking.plan_seconds),
            Sharing(store, active, queries, now),
            PackedCache(),
        )
