"""What a log entry adds to the counters of its items: the only place where that is decided.

It is `BehaviorStats.record`, cut into the moments at which a service learns of its parts: a list is
shown now, its clicks arrive later. Whoever adds the steps of a log in its order gets the same bits.

>>> entry = EventEntry("e", "r", "shoes", "a", "click", 3, 0.5, False, time=7.0, received=8.0)
>>> steps(entry)
[Step(item='a', shown=0, clicks=1, weighted_clicks=2.0, exposure=0.0, first_shown=None)]
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ebrank.behavior import BehaviorStats
from ebrank.service.store.records import EventEntry, Operation, RankingEntry, Written

CLICK, IMPRESSION = "click", "impression"


class Step(NamedTuple):
    """What is added to n, c, C and E of an item, and when it was shown, if it was."""

    item: str
    shown: int
    clicks: int
    weighted_clicks: float
    exposure: float
    first_shown: float | None


def steps(entry: Operation) -> list[Step]:
    """Return what an entry adds, in order; ranks that nobody examines add nothing."""
    if isinstance(entry, RankingEntry):
        return _steps_of_ranking(entry) if entry.counted else []
    return _steps_of_event(entry)


def as_written(entry: Operation, written: Written) -> Operation:
    """Return an entry as it was logged: no impression, if an earlier event was that."""
    if isinstance(entry, EventEntry) and entry.shows and not written.shows:
        return replace(entry, shows=False)
    return entry


def _steps_of_ranking(entry: RankingEntry) -> list[Step]:
    ranks = zip(entry.items, entry.examination, strict=True)
    return [Step(item, 1, 0, 0.0, p, entry.time) for item, p in ranks if p > 0.0]


def _steps_of_event(entry: EventEntry) -> list[Step]:
    p = entry.examination
    shows, clicked = entry.shows and p > 0.0, entry.type == CLICK
    if not shows and not clicked:
        return []
    return [
        Step(
            entry.item,
            int(shows),
            int(clicked),
            1.0 / p if clicked else 0.0,
            p if shows else 0.0,
            entry.received if shows else None,
        )
    ]


def add(stats: BehaviorStats, place: int, step: Step) -> None:
    """Add a step to the sums of the item at a place."""
    stats.shown[place] += step.shown
    stats.clicks[place] += step.clicks
    stats.weighted_clicks[place] += step.weighted_clicks
    stats.exposure[place] += step.exposure


def time_of(entry: Operation) -> float:
    """Return when an entry was logged: times of a log never go back."""
    return entry.time if isinstance(entry, RankingEntry) else entry.received
