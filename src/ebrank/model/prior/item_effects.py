"""Evidence about an item from other queries: an effect of the item, which all its queries share.

    logit R_qi = s(x_qi) + u_i + e_qi        u_i ~ N(0, τ²),  e_qi ~ N(0, σ²)

u is what the features do not say about an item in any query: a good photo, a bad seller; e is the
query's own share. The counts of a query say something about u + e, as a normal likelihood with a
precision V and a mean S/V (Laplace's approximation at the mode; `kernels.write_messages`). With e
integrated out, this is the query's message about u:

    S' = S / (1 + V·σ²),    V' = V / (1 + V·σ²)

A query gets the messages of all *other* queries, so that none of its clicks counts twice:

    û_i\\q = (Σ S' − S'_q) / (Σ V' − V'_q + 1/τ²)

It is 0 for an item that nobody has seen, which stays where its features put it. A click rate over
all queries, the usual feature, is lowest for these items and buries them.

Messages are whole multiples of 2⁻²², so their sums are exact: taking a query's message away leaves
precisely what the others say, in any order and on any number of servers.

What was tried and did not pay: a wider prior for items that other queries have not seen, a longer
horizon for items that many queries share, and a weight for û (it is about 1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ebrank.typing import Floats, Ints, SmallInts, State

VARIANCE = "item_variance"
"""The name of τ² in a state; 0 or absent if items have no effects of their own."""
VARIANCES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""The values of τ² to choose from, besides 0."""
UNIT = 2.0**-22
"""What the whole numbers of messages count: fine enough, and one of 32 bits holds any message."""
MOST_ROWS = 65_536
"""An even sample of this many rows chooses τ²."""


class Elsewhere(NamedTuple):
    """Evidence about items from other queries than the one they are ranked for.

    Attributes:
        effect: û of each item, in logits.
        queries: how many other queries have shown it.
    """

    effect: Floats
    queries: Ints

    def rows(self, rows: npt.NDArray[np.integer] | slice) -> Elsewhere:
        """Return those of some items."""
        return Elsewhere(self.effect[rows], self.queries[rows])


def messages(mean: Floats, clicks: Floats, exposure: Floats) -> SmallInts:
    """Return what each row says about its item, S' and V' in units; 0 for rows not shown.

    `mean` is the relevance that the features alone predict.
    """
    from ebrank.model.prior.kernels import write_messages  # Numba takes a while to import

    out = np.empty((len(mean), 2), np.int32)
    write_messages(mean, clicks, exposure, 1.0 / UNIT, out)
    return out


def counted(messages: SmallInts) -> Ints:
    """Return messages as sums have them: S', V', and 1 if the row was shown."""
    return np.column_stack([messages, messages[:, 1] > 0]).astype(np.int64)


def others(messages: SmallInts, items: Ints, rows: Ints | None = None) -> Ints:
    """Return the sums, `counted`, of what other rows say about the items of all rows, or of some.

    Items are numbered from 0.
    """
    all_rows = counted(messages)
    sums = np.zeros((1 + items.max(initial=-1), 3), np.int64)
    np.add.at(sums, items, all_rows)
    chosen = slice(None) if rows is None else rows
    return sums[items[chosen]] - all_rows[chosen]


def elsewhere(others: Ints, variance: float) -> Elsewhere:
    """Return û from the summed messages of other queries."""
    return Elsewhere(effects(others[:, 0], others[:, 1], variance), others[:, 2])


def effects(pull: Ints, precision: Ints, variance: float) -> Floats:
    """Return û from sums of S' and V' in units."""
    return pull / (precision + 1.0 / (variance * UNIT))


def variance_of(state: State | None) -> float:
    """Return τ²; 0 if items have no effects of their own."""
    return 0.0 if state is None or VARIANCE not in state else float(state[VARIANCE][0])
