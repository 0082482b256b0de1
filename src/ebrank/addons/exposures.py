"""The lists of an experiment as rows for experiment platforms, such as GrowthBook."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import NamedTuple

from ebrank.service.core import experiments
from ebrank.service.store import counting
from ebrank.service.store.base import Store
from ebrank.service.store.records import EventEntry, RankingEntry


class Exposure(NamedTuple):
    """A list and its further pages; the names are those of GrowthBook's exposures.

    Attributes:
        timestamp: when it was made.
        experiment_id: of which experiment.
        variation_id: the arm.
        hash_attribute: what was randomized: `query` or `user`.
        hash_value: its name; of a user, the hash.
        ranking_id: the list.
        clicks: how many of its items were clicked.
    """

    timestamp: str
    experiment_id: str
    variation_id: str
    hash_attribute: str
    hash_value: str
    ranking_id: str
    clicks: int = 0


async def exposures(store: Store, name: str) -> list[Exposure]:
    """Return a row for each logged list of an experiment, as far as the readout compares it."""
    experiment = experiments.named(
        experiments.read(await store.meta.get(experiments.EXPERIMENTS)), name
    )
    compared, by_query = experiment.comparable(), experiment.unit == "query"
    rows, clicks = list[Exposure](), Counter[str]()
    async for entry in store.log.entries():
        if isinstance(entry, EventEntry):
            clicks[entry.ranking_id] += counting.clicks_of(entry)
        elif entry.arm is not None and entry.continues is None and not entry.retracted:
            of, arm, stretch = experiments.parted(entry.arm)
            if of == name and stretch in compared:
                rows.append(_exposure(entry, of, arm, by_query=by_query))
    return [row._replace(clicks=clicks[row.ranking_id]) for row in rows]


def _exposure(entry: RankingEntry, experiment: str, arm: str, *, by_query: bool) -> Exposure:
    when = datetime.fromtimestamp(entry.time, UTC).isoformat(timespec="milliseconds")
    unit = ("query", entry.query) if by_query or entry.user is None else ("user", entry.user)
    return Exposure(when, experiment, arm, *unit, entry.id)
