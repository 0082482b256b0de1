"""The history that a store holds, for a forecast; nothing is written."""

from __future__ import annotations

import numpy as np

from ebrank.errors import DataError
from ebrank.policy.scaling import Scaling
from ebrank.service.learning.fitting import gather, loaded
from ebrank.service.learning.training import job
from ebrank.service.settings import Settings
from ebrank.service.store.base import StoreView
from ebrank.whatif.history import SECONDS_PER_DAY, History, numbered


async def history_of(store: StoreView, settings: Settings, name: str) -> History:
    """Return a store's history; its policy is that of the settings."""
    task = job(settings, active=0)
    table = await gather(store, task)
    if table is None:
        raise DataError("no items yet: there is nothing to forecast", path=name)
    states = await loaded(store)
    entered = np.concatenate([state.entered for state in states])
    began, last = float(entered.min()), await store.log.last_time()
    # A store from evidence has no log: its items entered when they were first shown.
    last = max(last, float(entered.max()))
    timed = last > began
    everything = np.ones(len(table.stats), np.bool_)
    scaling = Scaling.learn(task.scaling, table.features)
    features, stats = table.part(scaling, everything)
    return History(
        name,
        table.pointers,
        features,
        stats,
        np.minimum((entered - began) / (last - began), 1.0 - 1e-9) if timed else None,
        numbered([item for state in states for item in state.ids]),
        table.active,
        settings.examination.examination(),
        settings.ranking.policy,
        (last - began) / SECONDS_PER_DAY if timed else None,
    )
