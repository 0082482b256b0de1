"""What the slow reference is made of: queries, items, lists, and how good a list is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ebrank.model.prior import ItemPrior


@dataclass
class Item:
    """A (query, item) pair; n, c, C and E are what the paper's log says about it.

    `log` counts the same by outcome and rank: 0 for being shown, 1 for a click, and so on.
    """

    row: int
    place: int  # within its query
    relevance: float
    baseline: float
    tie_key: float
    entered_at: int | None = None
    first_shown: int | None = None  # at a rank where users were assumed to look
    n: int = 0
    c: float = 0.0
    C: float = 0.0
    E: float = 0.0
    log: Counter[tuple[int, int]] = field(default_factory=Counter)


@dataclass
class Query:
    """A query, its candidates D_q, and the masked items in the order in which they enter."""

    split: str
    items: list[Item]
    candidates: list[Item]
    masked: list[Item]
    sessions: int = 0


class Session(NamedTuple):
    """A line of the log: a list, its clicks, and how good it was."""

    query: int
    rows: list[int]
    clicked: list[bool]
    ndcg: float


class Checkpoint(NamedTuple):
    """What is measured after a model update; NDCG of each test query at each cutoff."""

    sessions: int
    cum_ndcg: float
    run_ndcg: float
    cold: list[list[float]]
    warm: list[list[float]]


class Snapshot(NamedTuple):
    """How things stand after a model update, the first one before serving included.

    `sessions` is of each query; the rest is of test queries' items, by row.
    """

    sessions: list[int]
    top: set[int]
    unseen: set[int]
    prior: ItemPrior | None


def ranking(candidates: list[Item], score: Callable[[Item], float]) -> list[Item]:
    """Return the candidates by falling score, equal ones by their tie keys."""
    return sorted(candidates, key=lambda item: (-score(item), item.tie_key))


def ndcg_of(ranked: list[Item], query: Query, cutoff: int) -> float:
    """Return the NDCG of a list; the ideal one is made of all items, entered or not."""
    ideal = sorted((item.relevance for item in query.items), reverse=True)
    best = dcg(ideal[:cutoff])
    return dcg([item.relevance for item in ranked[:cutoff]]) / best if best > 0 else 1.0


def dcg(gains: list[float]) -> float:
    """Return Σ_i R(i)/log2(i + 1)."""
    return math.fsum(gain / math.log2(i + 1) for i, gain in enumerate(gains, start=1))
