"""Plans follow the rate of lists, and end where new items take over."""

from __future__ import annotations

import pytest

from ebrank.service.core.queries.cache import Queries
from ebrank.service.core.queries.live import LiveQuery
from ebrank.service.core.queries.pace import Pace
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem, News

DAY = 86_400.0
MONTH = 30 * DAY
K = 10


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
    return Pace(queries, period, K).expected_lists(with_lists(queries, "q", lists), after)


def test_a_rate_goes_on_for_the_period_planned() -> None:
    assert planned(60_000, after=2 * MONTH) == pytest.approx(30_000, rel=1e-3)
    assert planned(60_000, after=2 * MONTH, period=MONTH / 10) == pytest.approx(3000, rel=1e-3)


def test_nobody_plans_further_ahead_than_the_past_reaches_back() -> None:
    assert planned(600, after=10.0) == pytest.approx(600, rel=0.02)


def test_a_new_query_is_expected_to_be_like_the_others() -> None:
    assert planned(0, after=0.0) == 100.0
    assert planned(0, after=MONTH) == 100.0
    alone, beside = planned(20, after=MONTH), planned(20, after=MONTH, others=90_000)
    assert alone == 100.0
    assert beside == 100.0  # it has been there as long, and is rarely asked
    queries = Queries(MemoryStore(), seed=0)
    with_lists(queries, "other", 90_000)
    new = queries.empty("new", ("p0",), now=MONTH)
    new.put([NewItem("a", (0.0,))], MONTH)
    queries.admit(new)
    assert Pace(queries, MONTH, K).expected_lists(new, MONTH) > 10_000


def test_plans_end_where_new_items_take_over() -> None:
    queries = Queries(MemoryStore(), seed=0)
    pace, live = Pace(queries, MONTH, K), with_lists(queries, "q", 600, items=30)
    before = pace.expected_lists(live, 100.0)
    assert live.arrivals == 0
    live.put([NewItem(f"new{at}", (0.0,)) for at in range(30)], 50.0)
    assert live.arrivals == 30
    # an arrival in 20 lists, of which one in six (10 of 60) is listed
    expected = 1.0 / (1.0 / before + 2.0 / 120.0)
    assert pace.expected_lists(live, 100.0) == pytest.approx(expected)


def test_where_all_are_listed_every_arrival_is() -> None:
    queries = Queries(MemoryStore(), seed=0)
    pace, live = Pace(queries, MONTH, K), with_lists(queries, "q", 600, items=3)
    before = pace.expected_lists(live, 100.0)
    live.put([NewItem("new", (0.0,))], 50.0)
    assert pace.expected_lists(live, 100.0) == pytest.approx(1.0 / (1.0 / before + 2.0 / 600.0))
