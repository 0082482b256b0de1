"""Interleaving: two rankings in one list, and what clicks say about which is better.

Each user compares both rankings, so that differences between users and queries, which are most of
the noise of an A/B test, cancel. In a team draft rankings choose in turns, and a ranking gets the
clicks on what it chose.

A draft is a pure function of both orders and a key, so a refresh makes the same list again, and a
page goes on where the last one ended, even if the orders have changed since:

>>> a, b = [1, 2, 3, 4, 5], [1, 3, 2, 5, 4]
>>> draft = team_draft(a, b, key_of("experiment", "query", "user"), 5)
>>> draft.items
(1, 2, 3, 5, 4)
>>> draft.teams, draft.pairs
((-1, 0, 1, 1, 0), (-1, 0, 0, 1, 1))
>>> first = team_draft(a, b, key_of("experiment", "query", "user"), 2)
>>> team_draft(a, b, key_of("experiment", "query", "user"), 5, above=first) == draft
True
>>> pair_difference(draft.teams, clicks=[1, 0, 1, 0, 0])
(1.0, 2.0)

References:
    Radlinski, Kurup and Joachims (2008): How does clickthrough data reflect retrieval
    quality? CIKM.
    Chapelle, Joachims, Radlinski and Yue (2012): Large-scale validation and analysis of interleaved
    search evaluation. ACM TOIS 30(1).
    Zhang, Deng, Du, Gao, He and Katariya (2025): Harnessing the power of interleaving and
    counterfactual evaluation for Airbnb search ranking. KDD. arXiv 2508.00751.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

NEITHER, FIRST, SECOND = -1, 0, 1
"""Who put an item into a list: both at once, the first ranking, or the second."""


class Draft(NamedTuple):
    """A list made of two rankings, from its first rank on.

    Attributes:
        items: by rank.
        teams: for each the ranking that chose it; `NEITHER` if both would have.
        pairs: for each the number of its competitive pair, whose two items came from different
            rankings in an order decided by a coin; `NEITHER` outside of pairs.
    """

    items: tuple[int, ...] = ()
    teams: tuple[int, ...] = ()
    pairs: tuple[int, ...] = ()


_NOTHING = Draft()


def key_of(*parts: str) -> int:
    """Return the key of a draft: the same for the same experiment, query and user, say."""
    return xxhash.xxh3_64_intdigest("\0".join(parts).encode("utf-8", "surrogatepass"))


def team_draft(
    first: Sequence[int],
    second: Sequence[int],
    key: int,
    depth: int,
    *,
    above: Draft = _NOTHING,
) -> Draft:
    """Return the first `depth` of a team draft, which begins with those `above`.

    In every round each ranking chooses its best item that is left. If both choose the same one, it
    says nothing about them and belongs to neither. Otherwise the two are a competitive pair (Zhang
    et al.), and a coin decides which is higher. A page may end within a pair; the other half then
    begins the next.
    """
    items, teams, pairs = (list(column) for column in above)
    chosen, orders = set(items), (iter(first), iter(second))
    waiting: list[int | None] = [None, None]

    def best(team: int) -> int | None:
        if waiting[team] is None or waiting[team] in chosen:
            waiting[team] = next((item for item in orders[team] if item not in chosen), None)
        return waiting[team]

    def choose(item: int, team: int, pair: int) -> None:
        chosen.add(item)
        items.append(item)
        teams.append(team)
        pairs.append(pair)

    number = max(pairs, default=NEITHER)
    if number != NEITHER and pairs.count(number) == 1:
        team = SECOND - teams[pairs.index(number)]
        item = best(team)
        if item is not None:
            choose(item, team, number)
    while len(items) < depth:
        picks = best(FIRST), best(SECOND)
        if picks[FIRST] is None or picks[SECOND] is None or picks[FIRST] == picks[SECOND]:
            shared = picks[SECOND] if picks[FIRST] is None else picks[FIRST]
            if shared is None:
                break
            choose(shared, NEITHER, NEITHER)
            continue
        number += 1
        begins = coin(key, number)
        for team in (begins, SECOND - begins)[: depth - len(items)]:
            choose(picks[team], team, number)  # type: ignore[arg-type] # neither is None
    return Draft(tuple(items[:depth]), tuple(teams[:depth]), tuple(pairs[:depth]))


def coin(key: int, number: int) -> int:
    """Return the coin of a number, 0 or 1."""
    return xxhash.xxh3_64_intdigest(number.to_bytes(8, "little"), key) & 1


def pair_difference(teams: Sequence[int], clicks: npt.ArrayLike) -> tuple[float, float]:
    """Return clicks on the second ranking's items minus those on the first's, and the pairs.

    Summed over lists it is the difference per competitive pair (Zhang et al.): value and weight of
    a unit for `sequential.Moments`. A pair that the page's end has cut in two counts half here, and
    half on the next page.
    """
    clicked, chosen = np.asarray(clicks, np.float64), np.asarray(teams)
    signs = np.where(chosen == SECOND, 1.0, np.where(chosen == FIRST, -1.0, 0.0))
    return float(signs @ clicked), float(np.abs(signs).sum()) / 2.0
