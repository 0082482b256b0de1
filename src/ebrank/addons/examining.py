"""`ebrank examine`: how far down users look, as a store's counts tell. Nothing is written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebrank.errors import DataError
from ebrank.evidence.slots import ranks_of
from ebrank.evidence.valuation import UNIT
from ebrank.model.policy import policies
from ebrank.model.policy.ranker import EBRanker
from ebrank.model.policy.scaling import Scaling
from ebrank.service.learning.fitting import TrainingJob, TrainingTable, gather
from ebrank.service.learning.training import job
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store


@dataclass(frozen=True)
class ExaminedRank:
    """What the log says about a rank, or about a few ranks that are counted together.

    Attributes:
        first, last: the ranks.
        probability: that a user looks at them, given that users look at the first.
        error: its standard error; None if the log does not reveal it.
        configured: what the settings say.
        support: impressions there, those of each item times the share of its impressions at other
            ranks.
        learned: whether the log reveals it; otherwise the configured value applies.
    """

    first: int
    last: int
    probability: float
    error: float | None
    configured: float
    support: float
    learned: bool


@dataclass(frozen=True)
class ExaminedCurve:
    """What the log says about each rank with impressions.

    Attributes:
        pairs: how many pairs of a query and an item were shown.
        ranks: from the first on.
    """

    pairs: int
    ranks: list[ExaminedRank]


async def examined(store: Store, settings: Settings) -> ExaminedCurve:
    """Return what a store reveals about each rank with impressions."""
    task = job(settings, active=0)
    table = await shown_items(store, task)
    scaling = Scaling.learn(task.scaling, table.features[table.seen])
    curve = settings.examination.examination()
    ranker = EBRanker(policies.make("auto"), examination=curve, scaling=scaling)
    ranker.fit(*table.taught(scaling))
    state = ranker.state_ or {}
    configured = table.stats.valuation(curve).exposure * UNIT
    shown = table.stats.counts[:, 0].sum(axis=0)
    first = int(np.argmax(configured > 0.0))
    ranks = [
        ExaminedRank(
            first=ranks_of(slot)[0],
            last=ranks_of(slot)[-1],
            probability=float(state["examination"][slot]),
            error=_error(float(state["examination_error"][slot])),
            configured=float(configured[slot]),
            support=float(state["examination_support"][slot]),
            learned=bool(slot == first or state["examination"][slot] != configured[slot]),
        )
        for slot in np.flatnonzero(shown).tolist()
    ]
    return ExaminedCurve(int(table.seen.sum()), ranks)


def _error(error: float) -> float | None:
    """Return a standard error, None if it is 1: nothing is known then."""
    return error if error < 1.0 else None


async def shown_items(store: Store, task: TrainingJob) -> TrainingTable:
    """Return the items of a store, of which some must have been shown."""
    table = await gather(store, task)
    if table is None or not table.seen.any():
        raise DataError("nothing has been shown yet: there is nothing to learn from")
    return table
