"""The state that sessions read and write, as flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ebrank.typing import Compiled, Floats, Ints, SmallInts


class World(NamedTuple):
    """Everything a session reads and writes. Rows are items; `arrivals` puts them in order.

    Query q owns the rows pointers[q] to pointers[q + 1]. `arrivals` holds these rows in the order
    in which they enter, so that the candidates are its first `entered[q]`; `positions` is the place
    of a row in that order. `entered_at` is the session of its query in which an item entered, −1
    for initial candidates; `first_shown` that of its first impression, −1 before. `leaves` numbers
    a query's rows in a random order, `by_leaf` holds them in that order: of equal scores, the lower
    leaf comes first. `click` and `stop` are the users' habits by grade, clicks at the config's
    rate; `relevance` is R, the truth that lists are measured by. `gain` by grade, `ideal_gain` and
    `label_ndcg` measure the same lists by labels alone; the last is the sum over a query's lists.
    `late_dcg` is the sum of what items that entered add to the DCG of a query's lists. If queries
    share the items of a catalog, `due` holds the session of the run from which each of `arrivals`
    is there, −1 for initial candidates; otherwise it is empty.

    The numbers that change when an item is shown are adjacent in memory: `counts` (see
    `BehaviorStats`), their value under the assumed curve, C and E, in units of 2⁻³⁰, `entered_at`
    and `first_shown`. For lists of five that is one cache line per item.
    """

    pointers: Ints
    arrivals: SmallInts
    due: Ints
    positions: SmallInts
    leaves: SmallInts
    by_leaf: SmallInts
    relevance: Floats
    grades: npt.NDArray[np.int8]
    click: Floats
    stop: Floats
    ideal: Floats
    gain: Floats
    ideal_gain: Floats
    label_ndcg: Floats
    late_dcg: Floats
    entered: Ints
    entered_at: SmallInts
    sessions_done: Ints
    first_shown: SmallInts
    counts: SmallInts
    weighted_clicks: Ints
    exposure: Ints
    user_curve: Floats
    slots: Ints
    table: Ints
    discounts: Floats


class Schedule(NamedTuple):
    """Sessions grouped by query: those of query q are times[starts[q] : starts[q + 1]]."""

    starts: Ints
    times: Ints


class Sessions(NamedTuple):
    """Sessions to run with one model.

    Attributes:
        world: the state that they read and change.
        browse: how users go through a list, compiled.
        eta: probability that an item enters.
        begin: session of the run with which the plan begins; negative before the run.
        arrivals, users, ranker: keys of the random draws for each purpose.
        plan: which query is asked when.
        ndcg: where each session writes its NDCG, in order of time.
    """

    world: World
    browse: Compiled
    eta: float
    begin: int
    arrivals: np.uint64
    users: np.uint64
    ranker: np.uint64
    plan: Schedule
    ndcg: Floats
