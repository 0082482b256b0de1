"""Single impressions from the log: each once, where it counts, with its best outcome."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ebrank.evidence import Behaviors, Examination
from ebrank.service.learning import impressions
from ebrank.service.learning.impressions import LoggedImpressions, read
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import Operation
from ebrank.testing.histories import event, new_items, ranking
from tests.service.store.blocking import run

BEHAVIORS = Behaviors.parse(["click=0.25", "purchase"], negative=["hide"])


def read_from(*log: Operation) -> LoggedImpressions:
    """Return the impressions of a log about `abcd` of a query after one with other items."""
    store = MemoryStore()
    run(store.items.put("p", new_items("x", "y"), 1.0))
    run(store.items.put("q", new_items(*"abcd"), 1.0))
    run(store.log.write(log))
    states = [run(store.items.load(query)) for query in "pq"]
    found: LoggedImpressions
    found = run(read(store.log, [state for state in states if state], BEHAVIORS))
    return found


def told(found: LoggedImpressions) -> list[tuple[str, int, float, tuple[int, ...]]]:
    """Return each impression's item, rank, outcome and context."""
    columns = (found.rows, found.ranks, found.outcomes, found.lists)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        ("xyabcd"[row], rank, outcome, tuple(found.contexts[context]))
        for row, rank, outcome, context in rows
    ]


def test_impressions_have_their_best_outcome() -> None:
    """In lists with a context; others teach nothing of it."""
    first = ranking("r1", "ab", contexts=(7,))
    plain = ranking("r2", "cd")
    other = ranking("r3", "dx", query="p", contexts=(7, 9))
    other = replace(other, items=("y",))
    found = read_from(
        first,
        plain,
        event("e1", first, "b"),
        event("e2", first, "b", "purchase"),
        event("e3", plain, "c"),
        other,
        event("e4", other, "y"),
    )
    assert told(found) == [("a", 1, 0.0, (7,)), ("b", 2, 1.0, (7,)), ("y", 1, 0.25, (7, 9))]


def test_a_negative_behavior_takes_all_back() -> None:
    first = ranking("r1", "a", contexts=(7,))
    found = read_from(first, event("e1", first, "a", "purchase"), event("e2", first, "a", "hide"))
    assert told(found) == [("a", 1, 0.0, (7,))]


def test_pages_and_refreshes_count_once() -> None:
    """Events are logged for the first list of the window."""
    first = ranking("r1", "ab", contexts=(7,))
    second = ranking("r2", "cd", offset=2, continues="r1", contexts=(7,))
    again = ranking("r3", "ab", continues="r1", seen=(1, 2), contexts=(7,))
    clicked = replace(event("e1", second, "d"), ranking_id="r1", rank=4)
    found = read_from(first, second, again, clicked)
    ranks = [(item, rank, outcome) for item, rank, outcome, _ in told(found)]
    assert ranks == [("a", 1, 0.0), ("b", 2, 0.0), ("c", 3, 0.0), ("d", 4, 0.25)]


def test_impressions_that_must_be_confirmed() -> None:
    """Only those that were count, and bots' never do."""
    first = ranking("r1", "ab", counted=False, contexts=(7,))
    bot = ranking("r2", "ab", counted=False, bot=True, contexts=(7,))
    found = read_from(
        first,
        bot,
        event("e1", first, "b", "impression", shows=True),
        event("e2", first, "b"),
        replace(event("e3", bot, "a"), outcome=0, bot=True),
    )
    assert told(found) == [("b", 2, 0.25, (7,))]


def test_the_latest_lists_are_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Late events about earlier lists are left out."""
    monkeypatch.setattr(impressions, "LISTS", 1)
    first, second = ranking("r1", "ab", contexts=(7,)), ranking("r2", "c", contexts=(7,))
    found = read_from(first, second, event("e1", first, "b"), event("e2", second, "c"))
    assert told(found) == [("c", 1, 0.25, (7,))]


def test_what_was_deleted_is_left_out() -> None:
    """A query, or an item whose name is another's now."""
    store = MemoryStore()
    run(store.items.put("q", new_items(*"ab"), 1.0))
    run(store.items.put("p", new_items(*"ab"), 1.0))
    run(store.log.write([ranking("r1", "ab", contexts=(7,))]))
    run(store.log.write([ranking("r2", "ab", query="p", contexts=(7,))]))
    state = run(store.items.load("q"))
    assert state is not None
    kept = run(read(store.log, [replace(state, ids=["a", "gone"])], BEHAVIORS))
    assert kept.rows.tolist() == [0]


def test_some_items_have_rows_of_their_own() -> None:
    """As the features of these items do; ranks are as likely to be seen as the curve says."""
    found = read_from(ranking("r1", "abcd", contexts=(7,)))
    some = found.of_items(np.array([1, 1, 0, 1, 0, 1], np.bool_), Examination(curve=(1, 0.5)))
    assert some.rows.tolist() == [2, 3]
    assert some.p.tolist() == [0.5, 0.0]
