"""What users did with each item, as four running sums (eq:logsnC).

A click at a low rank says more than one at the top, because fewer users look there. Both ways of
accounting for this need only sums, so statistics from anywhere merge by addition:

>>> stats = BehaviorStats.zeros(3)
>>> stats.record([2, 0], [False, True], Examination(cutoff=5))  # item 2 on top, item 0 clicked
>>> stats.shown, stats.clicks
(array([1, 0, 1]), array([1, 0, 0]))
>>> stats.weighted_clicks.round(3), stats.exposure.round(3)
(array([1.585, 0.   , 0.   ]), array([0.631, 0.   , 1.   ]))
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ebrank.errors import ParameterError
from ebrank.examination import Examination
from ebrank.typing import Floats, Ints

Estimator: TypeAlias = Literal["ips", "exposure"]

ESTIMATORS: tuple[str, ...] = get_args(Estimator)
FIELDS = ("shown", "clicks", "weighted_clicks", "exposure")


@dataclass(frozen=True, eq=False)
class BehaviorStats:
    """Behavior of users towards the items of one query, or of many laid end to end.

    Attributes:
        shown: n, how often the item was in a list users could examine, int64.
        clicks: c, plain clicks, int64.
        weighted_clicks: C, clicks divided by the examination probability of their rank, float64.
        exposure: E, summed examination probability, float64.
    """

    shown: Ints
    clicks: Ints
    weighted_clicks: Floats
    exposure: Floats

    def __post_init__(self) -> None:
        """Refuse arrays that cannot be sums of behavior."""
        for field, kind in zip(FIELDS, (np.int64, np.int64, np.float64, np.float64), strict=True):
            values = getattr(self, field)
            if not isinstance(values, np.ndarray) or values.dtype != kind or values.ndim != 1:
                raise ParameterError(
                    f"{field} must be an array of {kind.__name__}, one number per item; "
                    "BehaviorStats.from_arrays converts lists and other types"
                )
            if len(values) != len(self.shown):
                raise ParameterError(f"{field} holds {len(values)} items, shown {len(self.shown)}")
            if not np.all(np.isfinite(values)) or np.any(values < 0):
                raise ParameterError(f"{field} holds a negative or non-finite number")
        if any(
            np.may_share_memory(getattr(self, one), getattr(self, other))
            for one, other in itertools.combinations(FIELDS, 2)
        ):
            raise ParameterError("the four arrays must not share memory")
        self._check_sums()

    def _check_sums(self) -> None:
        """Refuse sums that no sessions can give, rounding aside."""
        rounding = 1.0 + 1e-9
        for impossible, problem in (
            (self.clicks > self.shown, "more clicks than it was shown"),
            (self.exposure > self.shown * rounding, "more exposure than it was shown"),
            (self.weighted_clicks * rounding < self.clicks, "weighted clicks below its clicks"),
            ((self.clicks == 0) & (self.weighted_clicks > 0), "weighted clicks without a click"),
        ):
            if np.any(impossible):
                raise ParameterError(f"item {int(np.argmax(impossible))} has {problem}")

    @classmethod
    def zeros(cls, n_items: int) -> BehaviorStats:
        """Return statistics of items nobody has seen."""
        return cls(
            np.zeros(n_items, np.int64),
            np.zeros(n_items, np.int64),
            np.zeros(n_items),
            np.zeros(n_items),
        )

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.ArrayLike]) -> BehaviorStats:
        """Return statistics from a mapping of the four field names to numbers per item."""
        if set(arrays) != set(FIELDS):
            raise ParameterError(f"expected the arrays {', '.join(FIELDS)}, not {sorted(arrays)}")
        counts = [_whole(name, arrays[name]) for name in ("shown", "clicks")]
        sums = [_floats(name, arrays[name]) for name in ("weighted_clicks", "exposure")]
        return cls(counts[0], counts[1], sums[0], sums[1])

    @classmethod
    def _trusted(cls, arrays: Iterable[npt.NDArray[Any]]) -> BehaviorStats:
        """Return statistics of arrays that come from checked ones: no need to check them again."""
        stats = object.__new__(cls)
        stats.__dict__.update(zip(FIELDS, arrays, strict=True))
        return stats

    def to_arrays(self) -> dict[str, Ints | Floats]:
        """Return copies of the four arrays by name."""
        return {field: getattr(self, field).copy() for field in FIELDS}

    def __len__(self) -> int:
        return len(self.shown)

    def __getitem__(self, items: slice | npt.NDArray[np.integer]) -> BehaviorStats:
        """Return the statistics of some items; a slice shares memory with the whole."""
        return self._trusted(getattr(self, field)[items] for field in FIELDS)

    def record(
        self, ranking: npt.ArrayLike, clicks: npt.ArrayLike, examination: Examination
    ) -> None:
        """Add one session: the items shown, best rank first, and whether each was clicked.

        Ranks that users never examine add nothing, since their items were not really shown; a click
        there contradicts the curve and is refused. A refused session changes nothing.
        """
        items, clicked = _session(ranking, clicks, len(self))
        p = examination(np.arange(1, len(items) + 1))
        if np.any(clicked & (p == 0)):
            rank = int(np.flatnonzero(clicked & (p == 0))[0]) + 1
            raise ParameterError(
                f"a click at rank {rank}, which users never examine: {examination}"
            )
        items, clicked, p = items[p > 0], clicked[p > 0], p[p > 0]
        self.shown[items] += 1
        self.clicks[items] += clicked
        self.weighted_clicks[items] += clicked / p
        self.exposure[items] += p

    def merge(self, other: BehaviorStats) -> BehaviorStats:
        """Return the sum of both, as if one log had held all sessions."""
        if len(self) != len(other):
            raise ParameterError(f"cannot merge statistics of {len(self)} and {len(other)} items")
        return self._trusted(getattr(self, f) + getattr(other, f) for f in FIELDS)

    def evidence(self, estimator: Estimator, clamp: bool = False) -> tuple[Floats, Floats]:
        """Return (clicks, trials) that update the prior: (C, n) for `ips`, (c, E) for `exposure`.

        Debiased clicks may exceed the trials. That is harmless to the formulas; `clamp` limits them
        all the same, as the paper's authors meant to: min(C, n) and max(E, c).
        """
        check_estimator(estimator)
        if estimator == "ips":
            trials = self.shown.astype(np.float64)
            return (
                np.minimum(self.weighted_clicks, trials) if clamp else self.weighted_clicks
            ), trials
        clicks = self.clicks.astype(np.float64)
        return clicks, (np.maximum(self.exposure, clicks) if clamp else self.exposure)


def check_estimator(estimator: str) -> None:
    """Raise unless the name is that of an estimator."""
    if estimator not in ESTIMATORS:
        raise ParameterError(f"estimator must be one of {', '.join(ESTIMATORS)}, not {estimator!r}")


def _floats(name: str, values: npt.ArrayLike) -> Floats:
    try:
        return np.array(values, np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} holds something that is no number") from None


def _whole(name: str, values: npt.ArrayLike) -> Ints:
    numbers = _floats(name, values)
    if not np.all(np.isfinite(numbers)) or np.any(numbers != np.floor(numbers)):
        raise ParameterError(f"{name} holds a number that is not whole")
    return numbers.astype(np.int64)


def _session(
    ranking: npt.ArrayLike, clicks: npt.ArrayLike, n_items: int
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return a session's items and clicks as arrays, or raise what is wrong with them."""
    items, marks = np.asarray(ranking), np.asarray(clicks)
    if items.ndim != 1 or items.shape != marks.shape:
        raise ParameterError("a session needs one click mark for each ranked item")
    if len(items) and not np.issubdtype(items.dtype, np.integer):
        raise ParameterError("a ranking holds item numbers")
    if not np.all((marks == 0) | (marks == 1)):
        raise ParameterError("a click mark is 0 or 1")
    if np.any(items < 0) or np.any(items >= n_items):
        raise ParameterError(f"a ranking of {n_items} items holds numbers from 0 to {n_items - 1}")
    if len(np.unique(items)) != len(items):
        raise ParameterError("an item stands twice in one ranking")
    return items.astype(np.int64), marks.astype(np.bool_)
