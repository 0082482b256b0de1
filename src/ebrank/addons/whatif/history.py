"""What a log says: who was asked for, what was there since when, and what users did.

>>> import numpy as np
>>> from ebrank.evidence import BehaviorStats
>>> history = History("tea", np.array([0, 2]), np.zeros((2, 1), np.float32),
...                   BehaviorStats.of(shown=[[5, 1], [1, 5]], clicks=[[2, 0], [0, 1]]))
>>> history.lists, history.list_length
(array([6]), 2)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from ebrank.addons.logs import Evidence
from ebrank.errors import DataError
from ebrank.evidence import BehaviorStats, Examination
from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.valuation import UNIT
from ebrank.model.policy.scaling import Scaling
from ebrank.service.core.feature_schema import filled
from ebrank.service.learning.fitting import gather, loaded
from ebrank.service.learning.training import job
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store
from ebrank.typing import Bools, Features, Floats, Ints

SINGLE = 10
"""Slots that hold one rank each."""
REACHED = 0.05
"""Lists are as long as the last rank that this share of them reaches."""
SECONDS_PER_DAY = 86400.0


@dataclass(frozen=True, eq=False)
class History:
    """A log, as far as a forecast needs it. Rows are pairs of a query and an item.

    Attributes:
        name: what to call it.
        pointers: first row of each query and the end.
        features: scaled, float32, without missing values.
        stats: what users did with each row.
        arrived: when each row became a candidate, as a share of the log's time; 0 for the start.
        items: number of the item behind each row, if queries share items.
        active: which rows are candidates today; None for all.
        examination: how far down users look, where the log does not tell.
        today: the policy in use; "" if it is unknown, then the order of the log's lists stands in.
        days: how long the log is; None if it has no times.
    """

    name: str
    pointers: Ints
    features: Features
    stats: BehaviorStats
    arrived: Floats | None = None
    items: Ints | None = None
    active: Bools | None = None
    examination: Examination = field(default_factory=Examination)
    today: str = ""
    days: float | None = None

    def check(self) -> None:
        """Raise if there is nothing to learn from."""
        if not len(self.stats) or not self.stats.counts[:, SHOWN].any():
            raise DataError(
                f"{self.name}: no impressions: a forecast begins with what users saw",
                remedy="Log which items were shown at which ranks.",
            )
        if not self.stats.counts[:, SHOWN + 1 :].any():
            raise DataError(
                f"{self.name}: nobody has clicked yet: any relevance is possible",
                remedy="Come back when users have done something.",
            )

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.pointers) - 1

    @property
    def query_of_rows(self) -> Ints:
        """The query of each row, numbered from 0."""
        return np.repeat(np.arange(self.n_queries), np.diff(self.pointers))

    @property
    def times(self) -> Floats:
        """When each row became a candidate."""
        return np.zeros(len(self.stats)) if self.arrived is None else self.arrived

    @property
    def lists(self) -> Ints:
        """How many lists each query had: the impressions at its busiest rank."""
        shown = self.stats.counts[:, SHOWN, :SINGLE]
        by_rank = np.add.reduceat(shown, self.pointers[:-1], axis=0, dtype=np.int64)
        return np.asarray(by_rank.max(axis=1))

    @property
    def list_length(self) -> int:
        """How long lists are; beyond the first ten ranks, as long as they are on average."""
        by_rank = self.stats.counts[:, SHOWN].sum(axis=0, dtype=np.int64)
        reached = np.flatnonzero(by_rank[:SINGLE] >= REACHED * by_rank[:SINGLE].max())
        length = int(reached[-1]) + 1
        if length < SINGLE:
            return length
        return max(length, round(float(by_rank.sum() / max(self.lists.sum(), 1))))

    @property
    def production(self) -> Floats:
        """Where the log's lists had each item: its exposure, as a share of its query's lists."""
        exposure = self.stats.counts[:, SHOWN] @ (
            self.stats.valuation(self.examination).exposure * UNIT
        )
        return np.asarray(exposure / np.maximum(self.lists, 1)[self.query_of_rows])

    def part(self, queries: Ints) -> History:
        """Return some of the queries, in this order."""
        return self.taken(np.diff(self.pointers)[queries], rows_of(self.pointers, queries))

    def candidates(self) -> History:
        """Return the candidates of today, and the queries that have any."""
        if self.active is None or self.active.all():
            return self
        sizes = np.add.reduceat(self.active, self.pointers[:-1], dtype=np.int64)
        return self.taken(sizes[sizes > 0], np.flatnonzero(self.active))

    def taken(self, sizes: Ints, rows: Ints) -> History:
        """Return queries of these sizes, which have these rows."""
        return replace(
            self,
            pointers=np.append(0, np.cumsum(sizes)),
            features=self.features[rows],
            stats=self.stats[rows],
            arrived=self.times[rows],
            items=None if self.items is None else self.items[rows],
            active=None if self.active is None else self.active[rows],
        )

    @classmethod
    def of_evidence(
        cls,
        evidence: Evidence,
        name: str = "the log",
        examination: Examination | None = None,
    ) -> History:
        """Return the history that a file of evidence holds.

        An item is there from its first impression; one that nobody has seen, from the start.
        Without features, all items of a query are alike until somebody has seen them.
        """
        first, last = evidence.first_shown, evidence.last_time
        began = np.nanmin(first) if np.isfinite(first).any() else np.nan
        days, arrived = None, None
        if last is not None and last > began:
            days = float(last - began) / SECONDS_PER_DAY
            arrived = np.nan_to_num((first - began) / (last - began))
        if evidence.features is None:
            features = np.zeros((len(evidence), 1), np.float32)
        else:
            whole = [filled(evidence.features[rows], by_mean=True) for _, rows in evidence.rows()]
            features = replace(evidence, features=np.concatenate(whole)).scaled()
        return cls(
            name,
            evidence.pointers,
            features,
            evidence.stats,
            arrived,
            numbered(evidence.items),
            examination=examination or Examination(),
            days=days,
        )


async def history_of(store: Store, settings: Settings, name: str) -> History:
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


def rows_of(pointers: Ints, queries: Ints) -> Ints:
    """Return the rows of some queries, one query after the other."""
    sizes = np.diff(pointers)[queries]
    starts = np.repeat(pointers[queries] - np.append(0, np.cumsum(sizes))[:-1], sizes)
    return np.asarray(starts + np.arange(sizes.sum()))


def numbered(names: Iterable[str]) -> Ints | None:
    """Return items by number; None if each belongs to one query.

    >>> numbered(["a", "b", "a"]), numbered(["a", "b"])
    (array([0, 1, 0]), None)
    """
    numbers: dict[str, int] = {}
    items = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
    return items if len(numbers) < len(items) else None
