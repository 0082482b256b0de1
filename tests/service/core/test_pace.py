"""Plans follow the rate of lists."""

from __future__ import annotations

import pytest

from ebrank.service.core.live import LiveQuery
from ebrank.service.core.queries import Pace, Queries
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem, News

DAY = 86_400.0
MONTH = 30 * DAY


def with_lists(queries: Queries, name: str, lists: int, items: int = 20) -> LiveQuery:
    """Return a query whose first item stood at the top of so many lists."""
    live = queries.empty(name, ("p0",), now=0.0)
    live.put([NewItem(f"i{at}", (0.0,)) for at in range(items)], 0.0)
    live.catch_up(1, News(0, [(0, 0, 0, lists)], [(0, 1.0)]))
    queries.admit(live)
    return live


def planned(lists: int, *, after: float, others: int = 0, period: float = MONTH) -> float:
    """Return what is planned for a query after some time, beside another query."""
    queries = Queries(MemoryStore(), seed=0)
    if others:
        with_lists(queries, "other", others)
    return Pace(queries, period).lists_ahead(with_lists(queries, "q", lists), after)


def test_as_many_lists_are_planned_for_as_there_were() -> None:
    assert planned(600, after=10.0) == pytest.approx(600, rel=0.02)
    assert planned(0, after=0.0) == planned(0, after=MONTH) == 10.0


def test_the_period_limits_the_past() -> None:
    assert planned(60_000, after=2 * MONTH) == pytest.approx(30_000, rel=1e-3)
    assert planned(60_000, after=2 * MONTH, period=MONTH / 10) == pytest.approx(3000, rel=1e-3)


def test_a_new_query_is_expected_to_be_like_the_others() -> None:
    assert planned(20, after=MONTH) == 20.0
    assert planned(20, after=MONTH, others=90_000) < 40.0  # as old, and rarely asked
    queries = Queries(MemoryStore(), seed=0)
    with_lists(queries, "other", 90_000)
    new = queries.empty("new", ("p0",), now=MONTH)
    new.put([NewItem("a", (0.0,))], MONTH)
    queries.admit(new)
    assert Pace(queries, MONTH).lists_ahead(new, MONTH) > 5000
