"""What a store's history says: judgments, how far down users look, and itself, for a forecast.

Nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ebrank.addons.whatif.history import SECONDS_PER_DAY, History, numbered
from ebrank.errors import DataError
from ebrank.evidence.slots import ranks_of
from ebrank.evidence.valuation import UNIT
from ebrank.model.policy import model_file, policies
from ebrank.model.policy.ranker import EBRanker
from ebrank.model.policy.ranking import Ranking
from ebrank.model.policy.scaling import Scaling
from ebrank.service.core.models import own_parts
from ebrank.service.learning.fitting import TrainingJob, TrainingTable, fitted, gather, loaded
from ebrank.service.learning.training import job
from ebrank.service.ops.judgments import Judgment, Judgments
from ebrank.service.settings import Settings
from ebrank.service.store.base import StoreView


async def _seen(store: StoreView, task: TrainingJob) -> TrainingTable:
    """Return the items of a store, of which some must have been shown."""
    table = await gather(store, task)
    if table is None or not table.seen.any():
        raise DataError("nothing has been shown yet: there is nothing to learn from")
    return table


# --- how relevant items are ----------------------------------------------------------------------


async def judged(store: StoreView, settings: Settings) -> Judgments:
    """Return the judgments of a store by its active prior.

    If there is none, one is fitted; without features, all items start out alike.
    """
    active = await store.models.active()
    task = job(settings, active)
    table = await _seen(store, task)
    if not table.features.shape[1]:
        table = replace(table, features=np.ones((len(table.features), 1), np.float32), keys=("1",))
    if table.document is None:
        ranker = fitted(table, task.ranker(), task)
    else:
        own = own_parts(policies.parse(task.policy))
        ranker = model_file.from_bytes(table.document, f"model {active}", allow=own)
        table = table.as_learned()
    features, stats = table.taught(ranker.scaling)
    ranker.scaling = None  # they are scaled
    items = table.seen_items
    earned = None if items is None else ranker.elsewhere(features, stats, items)
    ranking = ranker.rank(features, stats, earned=earned)
    candidates = ranking.candidates
    ends = Ranking(np.arange(len(stats)), candidates).interval.clip(0.0, 1.0)
    means, exposure = candidates.relevance.clip(0.0, 1.0), candidates.sums.exposure
    names = [(state.query, item) for state in await loaded(store) for item in state.ids]
    names = [pair for pair, seen in zip(names, table.seen, strict=True) if seen]
    rows = [
        Judgment(*pair, float(mean), float(low), float(high), float(looks))
        for pair, mean, (low, high), looks in zip(names, means, ends, exposure, strict=True)
    ]
    places = {query: place for place, (query, _) in enumerate(reversed(names))}
    rows.sort(key=lambda row: (-places[row.query], -row.mean, row.item))
    return Judgments(rows, active)


# --- how far down users look ---------------------------------------------------------------------


@dataclass(frozen=True)
class ExaminedRank:
    """What the log says about a rank, or about a few ranks that are counted together.

    Attributes:
        first, last: the ranks.
        probability: that a user looks at them, given that users look at the first.
        error: its standard error; None if the log says nothing about it.
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


async def examined(store: StoreView, settings: Settings) -> ExaminedCurve:
    """Return what a store reveals about each rank with impressions."""
    task = job(settings, active=0)
    table = await _seen(store, task)
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


# --- what a forecast begins with -----------------------------------------------------------------


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
