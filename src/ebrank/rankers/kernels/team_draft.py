"""Team-draft multileaving (Schuth et al. 2014): one list out of many, and who gets its clicks.

In each round every ranker, in a random order, adds the item it likes best among those not yet in
the list. An item belongs to the team that added it, and so do the clicks on it. With two rankers
this is the team-draft interleaving of Radlinski et al. (2008).
"""

from __future__ import annotations

import numpy as np

from ebrank import streams
from ebrank.compiled import inner, leaf
from ebrank.typing import Bools, Ints

NOBODY = -1


@inner
def draft(
    lists: Ints,
    length: int,
    disputed_only: bool,
    key: np.uint64,
    order: Ints,
    merged: Ints,
    teams: Ints,
) -> None:
    """Merge the rankers' lists, one in each row of `lists`, best first; write who added what.

    The first `length` items of each ranker suffice. With `disputed_only`, the items that all
    rankers agree on from the top down belong to no team: clicks on them do not tell which is
    better. `order` is working space, one place for each ranker.
    """
    n_rankers = len(lists)
    filled = 0
    if disputed_only:
        filled = agreed(lists, length)
        for rank in range(filled):
            merged[rank] = lists[0, rank]
            teams[rank] = NOBODY
    turn = n_rankers
    for rank in range(filled, length):
        if turn == n_rankers:
            turn = 0
            for ranker in range(n_rankers):
                order[ranker] = ranker
        chosen = turn + streams.below(streams.child(key, rank), n_rankers - turn)
        order[turn], order[chosen] = order[chosen], order[turn]
        teams[rank] = order[turn]
        merged[rank] = first_new(lists[teams[rank]], merged, rank)
        turn += 1


@inner
def agreed(lists: Ints, length: int) -> int:
    """Return how many items all rankers agree on, from the top down."""
    for rank in range(length):
        for ranker in range(1, len(lists)):
            if lists[ranker, rank] != lists[0, rank]:
                return rank
    return length


@inner
def first_new(ranking: Ints, merged: Ints, filled: int) -> int:
    """Return a ranking's first item that is not among the first `filled` merged ones."""
    place = 0
    while occurrences(merged, filled, ranking[place]) > 0:
        place += 1
    return int(ranking[place])


@inner
def occurrences(items: Ints, n: int, item: int) -> int:
    """Return how often an item is among the first n."""
    found = 0
    for i in range(n):
        found += items[i] == item
    return found


@leaf
def write_wins(teams: Ints, clicked: Bools, length: int, wins: Bools) -> None:
    """Write which candidates (rankers 1, 2, ...) have more clicks than the current one, ranker 0.

    >>> wins = np.zeros(2, np.bool_)
    >>> write_wins(np.array([1, 0, 2]), np.array([True, False, False]), 3, wins)
    >>> wins
    array([ True, False])
    """
    current = team_clicks(teams, clicked, length, 0)
    for candidate in range(len(wins)):
        wins[candidate] = team_clicks(teams, clicked, length, candidate + 1) > current


@inner
def team_clicks(teams: Ints, clicked: Bools, length: int, team: int) -> int:
    """Return how many clicks fell on a team's items."""
    clicks = 0
    for rank in range(length):
        clicks += clicked[rank] and teams[rank] == team
    return clicks
