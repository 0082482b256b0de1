"""What users did with each item: impressions and clicks by rank, and the sums they give.

A click at a low rank says more than one at the top, because fewer users look there. So we count by
rank, and let an examination curve say later what the counts are worth (eq:logsnC):

>>> stats = BehaviorStats.zeros(3)
>>> stats.record([2, 0], [False, True])  # item 2 on top, item 0 below it, clicked
>>> stats.shown, stats.clicks
(array([1, 0, 1]), array([1, 0, 0]))
>>> sums = stats.sums(Examination(cutoff=5))
>>> sums.weighted_clicks.round(3), sums.exposure.round(3)
(array([1.585, 0.   , 0.   ]), array([0.631, 0.   , 1.   ]))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ebrank.errors import ParameterError
from ebrank.evidence.behaviors import CLICKS, NEGATIVE, SHOWN, Behaviors
from ebrank.evidence.examination import Examination
from ebrank.evidence.slots import FIRST_RANKS, SLOTS, slot_name, slot_of
from ebrank.evidence.valuation import Valuation
from ebrank.kernels.threads import map_blocks
from ebrank.typing import Floats, Ints, SmallInts

COUNT = np.int32
TOO_MANY = "a count would exceed 2³¹ − 1, the maximum; keep such logs apart"
BLOCK = 65_536


class Columns(Protocol):
    """Columns by name: a data frame, or a dictionary."""

    def __getitem__(self, name: str, /) -> npt.ArrayLike:
        """Return a column."""
        ...


class Sums(NamedTuple):
    """n, c, C and E of each item for a curve; slots that nobody examines do not count."""

    shown: Floats
    clicks: Floats
    weighted_clicks: Floats
    exposure: Floats

    def rows(self, rows: slice | npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> Sums:
        """Return the sums of some items."""
        return Sums(*(values[rows] for values in self))


@dataclass(frozen=True, eq=False)
class BehaviorStats:
    """What users did with the items of one query, or of many queries in sequence.

    Attributes:
        counts: whole numbers of shape (items, outcomes, slots). `counts[i, 0, k]` says how often
            item i was shown in slot k, `counts[i, b, k]` how often behavior b was the outcome.
        behaviors: what users may do; outcome b is the b-th of them, counting from 1.
    """

    counts: SmallInts
    behaviors: Behaviors = CLICKS

    def __post_init__(self) -> None:
        """Raise if no log can give these counts."""
        counts, outcomes = self.counts, self.behaviors.outcomes
        shaped = isinstance(counts, np.ndarray) and counts.dtype == COUNT and counts.ndim == 3
        if not shaped or counts.shape[1] != outcomes or not 1 <= counts.shape[2] <= SLOTS:
            raise ParameterError(
                f"counts must be int32 of shape (items, {outcomes}, slots) with up to {SLOTS} "
                "slots; BehaviorStats.of converts lists and other types"
            )
        if counts.size and counts.min() < 0:
            raise ParameterError("counts must not be negative")
        excess = counts[:, SHOWN + 1 :].sum(axis=1, dtype=np.int64) > counts[:, SHOWN]
        if np.any(excess):
            item, slot = (int(place) for place in np.argwhere(excess)[0])
            raise ParameterError(
                f"item {item} has more clicks than impressions at {slot_name(slot)}"
            )

    @classmethod
    def zeros(
        cls, n_items: int, *, slots: int = SLOTS, behaviors: Behaviors = CLICKS
    ) -> BehaviorStats:
        """Return statistics of items nobody has seen."""
        return cls(np.zeros((n_items, behaviors.outcomes, slots), COUNT), behaviors)

    @classmethod
    def of(cls, shown: npt.ArrayLike, clicks: npt.ArrayLike) -> BehaviorStats:
        """Return statistics from impressions and clicks, by item and slot.

        Rows are items, columns the slots of `ebrank.evidence.slots`: ranks 1, 2, ... One number per
        item means that all of it happened at rank 1.

        >>> BehaviorStats.of(shown=[[5, 2], [0, 3]], clicks=[[1, 0], [0, 3]]).clicks
        array([1, 3])
        """
        parts = [_whole(name, part) for name, part in (("shown", shown), ("clicks", clicks))]
        if parts[0].shape != parts[1].shape:
            raise ParameterError(
                f"shown has the shape {parts[0].shape}, clicks the shape {parts[1].shape}"
            )
        return cls(np.ascontiguousarray(np.stack(parts, axis=1)))

    @classmethod
    def from_log(
        cls,
        log: Columns,
        items: npt.ArrayLike,
        *,
        item: str = "item",
        rank: str = "rank",
        clicked: str = "clicked",
    ) -> BehaviorStats:
        """Return statistics from a log of one query with a row for each item shown.

        >>> log = {"item": ["b", "a", "b"], "rank": [1, 2, 1], "clicked": [True, False, False]}
        >>> stats = BehaviorStats.from_log(log, items=["a", "b", "c"])
        >>> stats.shown, stats.clicks
        (array([1, 2, 0]), array([0, 1, 0]))

        Args:
            log: columns by name, such as a data frame.
            items: the items of the query in the order of the rows of the statistics.
            item: the column of items.
            rank: the column of ranks, which count from 1.
            clicked: the column of clicks: 1 or 0, true or false.
        """
        listed = np.asarray(items).tolist()
        rows = {name: row for row, name in enumerate(listed)}
        twice = next((name for row, name in enumerate(listed) if rows[name] != row), None)
        if twice is not None:
            raise ParameterError(f"items names {twice!r} twice")
        ranks, clicks = (_whole(name, log[name])[:, 0] for name in (rank, clicked))
        shown = np.asarray(log[item]).tolist()
        if not len(shown) == len(ranks) == len(clicks):
            raise ParameterError(f"{item}, {rank} and {clicked} must have one value for each row")
        places = np.array([rows.get(name, -1) for name in shown], np.int64)
        wrong = (places < 0) | (ranks < 1) | (clicks < 0) | (clicks > 1)
        if wrong.any():
            row = int(wrong.argmax())
            why = f"{clicked} is {clicks[row]}; write 1 or 0"
            if places[row] < 0:
                why = f"{shown[row]!r} is not among the items"
            elif ranks[row] < 1:
                why = f"{rank} is {ranks[row]}; ranks count from 1"
            raise ParameterError(f"row {row}: {why}")
        slots = np.searchsorted(FIRST_RANKS, ranks, side="right") - 1
        counts = np.zeros((len(rows), 2, 1 + slots.max(initial=0)), COUNT)
        np.add.at(counts[:, SHOWN], (places, slots), 1)
        np.add.at(counts[:, 1], (places, slots), clicks.astype(COUNT))
        return cls(counts)

    @property
    def shown(self) -> Ints:
        """How often each item was shown, at any rank."""
        total: Ints = self.counts[:, SHOWN].sum(axis=1, dtype=np.int64)
        return total

    @property
    def clicks(self) -> Ints:
        """How many impressions of each item led to a click, or another behavior."""
        total: Ints = self.counts[:, SHOWN + 1 :].sum(axis=(1, 2), dtype=np.int64)
        return total

    @property
    def slots(self) -> int:
        """Number of slots."""
        return int(self.counts.shape[2])

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(
        self, items: slice | npt.NDArray[np.integer] | npt.NDArray[np.bool_]
    ) -> BehaviorStats:
        """Return the statistics of some items; a slice shares memory with the whole."""
        counts = self.counts[items]
        if counts.ndim != 3:
            raise ParameterError("choose items by a slice or by an array, not by one number")
        return self.trusted(counts, self.behaviors)

    def record(self, ranking: npt.ArrayLike, outcomes: npt.ArrayLike) -> None:
        """Add one session: the items shown, best rank first, and what each impression led to.

        An outcome is 0 for nothing and 1 for a click, or False and True; with more behaviors, it is
        the number that `behaviors.outcome` returns. A negative one counts as nothing. An invalid
        session changes nothing.
        """
        items, results = _session(ranking, outcomes, len(self), self.behaviors)
        places = np.array([slot_of(rank) for rank in range(1, len(items) + 1)], np.int64)
        if len(places) and places[-1] >= self.slots:
            raise ParameterError(
                f"a list of {len(items)} items needs {places[-1] + 1} slots, but these statistics "
                f"have {self.slots}; make them with BehaviorStats.zeros(n_items)"
            )
        if np.any(self.counts[items, SHOWN, places] == np.iinfo(COUNT).max):
            raise ParameterError(TOO_MANY)
        self.counts[items, SHOWN, places] += 1
        clicked = results > SHOWN
        self.counts[items[clicked], results[clicked], places[clicked]] += 1

    def valuation(self, examination: Examination) -> Valuation:
        """Return what these counts are worth under a curve."""
        return Valuation.of(examination, self.behaviors, slots=self.slots)

    def sums(self, examination: Examination, *, threads: int | None = None) -> Sums:
        """Return n, c, C and E of each item under a curve."""
        from ebrank.evidence.kernels import write_sums  # Numba takes a while to import

        valuation = self.valuation(examination)
        counts = packed(self.counts)
        sums = Sums(*np.empty((4, len(self))))
        map_blocks(
            lambda start, stop: write_sums(counts, valuation.table, start, stop, *sums),
            total=len(self),
            block=BLOCK,
            threads=threads,
        )
        return sums

    @classmethod
    def trusted(cls, counts: SmallInts, behaviors: Behaviors) -> BehaviorStats:
        """Return statistics of counts that are derived from checked ones, without checks."""
        stats = object.__new__(cls)
        stats.__dict__.update(counts=counts, behaviors=behaviors)
        return stats


def packed(counts: SmallInts) -> SmallInts:
    """Return counts with each item's numbers adjacent in memory, as kernels expect."""
    beside = counts.strides[1:] == (counts.shape[2] * counts.itemsize, counts.itemsize)
    return counts if beside else np.ascontiguousarray(counts)


def _whole(name: str, values: npt.ArrayLike) -> SmallInts:
    try:
        numbers = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} holds something that is not a number") from None
    if numbers.ndim == 1:
        numbers = numbers[:, None]
    if numbers.ndim != 2:
        raise ParameterError(f"{name} must have one row per item, and one column per slot")
    whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
    if not np.all(whole & (np.abs(numbers) <= np.iinfo(COUNT).max)):
        raise ParameterError(f"{name} holds a number that is not a whole number below 2³¹")
    return numbers.astype(COUNT)


def _session(
    ranking: npt.ArrayLike, outcomes: npt.ArrayLike, n_items: int, behaviors: Behaviors
) -> tuple[Ints, Ints]:
    """Return a session's items and outcomes as arrays; raise if something is wrong."""
    items, results = np.asarray(ranking), np.asarray(outcomes)
    if items.ndim != 1 or items.shape != results.shape:
        raise ParameterError("a session needs one outcome for each ranked item")
    if len(items) and not np.issubdtype(items.dtype, np.integer):
        raise ParameterError("a ranking must hold item numbers")
    lowest = NEGATIVE if behaviors.negative else SHOWN
    if not np.all(np.isin(results, range(lowest, behaviors.outcomes))):
        names = ", ".join(f"{i} ({name})" for i, name in enumerate(behaviors.names, start=1))
        raise ParameterError(f"an outcome must be 0 (nothing) or {names}")
    if np.any(items < 0) or np.any(items >= n_items):
        raise ParameterError(f"item numbers must be from 0 to {n_items - 1}")
    if len(np.unique(items)) != len(items):
        raise ParameterError("an item appears twice in one ranking")
    return items.astype(np.int64), results.astype(np.int64)
