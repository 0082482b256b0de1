"""The lists of an experiment as rows for experiment platforms, such as GrowthBook."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ebrank.lab.evaluation.interleaving import NEITHER
from ebrank.service.core import trials
from ebrank.service.store.base import StoreView
from ebrank.service.store.records import EventEntry, RankingEntry


class Exposure(NamedTuple):
    """A list and its further pages; the names are those of GrowthBook's exposures.

    Attributes:
        timestamp: when it was made.
        experiment_id: of which experiment.
        variation_id: the arm, or `interleaved`.
        hash_attribute: what was randomized: `query` or `user`.
        hash_value: its name; of a user, the hash.
        ranking_id: the list.
        clicks: how many of its items were clicked.
        items: of an interleaved list, JSON: an object for each item with its `itemId`, the
            `variation` that chose it, its `position` from 0, its `clicks`, and whether it is
            `competitive`: one of a pair that both arms filled with different items.
    """

    timestamp: str
    experiment_id: str
    variation_id: str
    hash_attribute: str
    hash_value: str
    ranking_id: str
    clicks: int = 0
    items: str = ""


async def exposures(store: StoreView, name: str) -> list[Exposure]:
    """Return a row for each logged list of an experiment, as far as the readout compares it."""
    experiment = trials.found(trials.read(await store.meta.get(trials.EXPERIMENTS)), name)
    compared, arms = experiment.comparable(), list(experiment.stretch.arms)
    rows, teams = dict[str, Exposure](), defaultdict[str, list[tuple[str, int]]](list)
    clicks = defaultdict[str, Counter[str]](Counter)
    async for entry in store.log.entries():
        if isinstance(entry, EventEntry):
            clicks[entry.ranking_id][entry.item] += (entry.outcome > 0) - (entry.replaces > 0)
        elif entry.arm is not None and not entry.bot:
            of, arm, stretch = trials.parted(entry.arm)
            if of != name or stretch not in compared:
                continue
            if entry.continues is None:
                rows[entry.id] = _exposure(entry, of, arm, by_query=experiment.unit == "query")
            seen = entry.seen or [0] * len(entry.items)
            chosen = zip(entry.items, entry.teams, seen, strict=False)
            first = entry.continues or entry.id
            teams[first] += [(item, team) for item, team, before in chosen if not before]
    return [
        row._replace(
            clicks=clicks[ranking].total(), items=_items(teams[ranking], arms, clicks[ranking])
        )
        for ranking, row in rows.items()
    ]


def _exposure(entry: RankingEntry, experiment: str, arm: str, *, by_query: bool) -> Exposure:
    when = datetime.fromtimestamp(entry.time, UTC).isoformat(timespec="milliseconds")
    unit = ("query", entry.query) if by_query or entry.user is None else ("user", entry.user)
    return Exposure(when, experiment, arm, *unit, entry.id)


def _items(chosen: Sequence[tuple[str, int]], arms: Sequence[str], clicks: Counter[str]) -> str:
    """Return the items of an interleaved list, "" if none has a team."""
    competing = [place for place, (_, team) in enumerate(chosen) if team != NEITHER]
    pairs = set(competing[: len(competing) // 2 * 2])  # the last page may end within one
    items = [
        {
            "itemId": item,
            "variation": arms[max(team, 0)],
            "position": place,
            "competitive": place in pairs,
            "clicks": clicks[item],
        }
        for place, (item, team) in enumerate(chosen)
    ]
    return json.dumps(items) if items else ""
