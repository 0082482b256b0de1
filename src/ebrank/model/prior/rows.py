"""Rows to fit a learner on: features, what users did with each, and the family's loss of a score.

Held-out rows decide how strongly to regularize. Rows of one query are similar, so they are held out
together (`Rows.folds`), and where chance must be ruled out they count as one (`surely_lower`).

Work is split into blocks, each summed by one thread, so the number of threads never changes a
result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ebrank.evidence import BehaviorStats
from ebrank.kernels.arrays import read_only
from ebrank.kernels.threads import map_blocks
from ebrank.typing import Bools, Features, Floats, Ints, State

BLOCK = 8192  # rows per task: small enough to share evenly, large enough to hide the overhead

FOLDS = 5
FEW_GROUPS = 10
"""With fewer groups than this, single rows are held out and compared."""
FEWEST_ROWS = 30
"""Fewer held-out rows than this decide nothing."""
SURE = 2.0
"""How many standard errors rule out chance."""

NO_OFFSETS: Floats = read_only(np.zeros(1))

T = TypeVar("T")


class Observations(NamedTuple):
    """Rows of features, what users did with each, and its query and item, numbered from 0.

    Without queries, each row counts as one. Without items, each row is about an item of its own.
    """

    features: Features
    behavior: BehaviorStats
    groups: Ints | None = None
    items: Ints | None = None

    @property
    def queries(self) -> Ints:
        """The query of each row."""
        return np.arange(len(self.behavior)) if self.groups is None else self.groups

    @property
    def numbered_items(self) -> Ints:
        """The item of each row."""
        return np.arange(len(self.behavior)) if self.items is None else self.items

    def part(self, chosen: Bools) -> Observations:
        """Return some of the rows."""
        return Observations(
            np.asarray(self.features)[chosen],
            self.behavior[np.flatnonzero(chosen)],
            self.queries[chosen],
            None if self.items is None else self.items[chosen],
        )


class LossTask(NamedTuple):
    """The fields of `Rows` that kernels read to compute losses; the loss is an address."""

    evidence: Floats
    included: Bools
    loss: int
    table: Ints
    slots: int
    behaviors: int
    parameters: Floats
    offsets: Floats


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of features with evidence, and the loss that says how well a score explains it.

    Attributes:
        features: float32, shape (rows, features).
        evidence: a row of numbers per item, as the policy's evidence lays them out.
        included: which rows count.
        loss: the compiled loss (see `ebrank.model.formula.COUNTS_LOSS`).
        table: what counts are worth, for losses that read counts; with slots and behaviors.
        parameters: of the loss, followed by what the model learned.
        learned: where the latter begins.
        offsets: what is added to each score, or one number for all: effects of items.
        groups: the query of each row, numbered from 0; None if held-out rows decide nothing.
        threads: cores to use, None for all; never changes a result.
    """

    features: Features
    evidence: Floats
    included: Bools
    loss: Any
    table: Ints
    slots: int
    behaviors: int
    parameters: Floats
    learned: int = 0
    offsets: Floats = field(default_factory=lambda: NO_OFFSETS)
    groups: Ints | None = None
    threads: int | None = None

    @cached_property
    def count(self) -> int:
        """Number of included rows."""
        return int(np.count_nonzero(self.included))

    @property
    def included_groups(self) -> Ints:
        """The group of each included row; each its own if there are none."""
        groups = np.arange(len(self.included)) if self.groups is None else self.groups
        return groups[self.included]

    def losses_and_slopes(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the loss of each row's score and its slope by the score; 0 where not included.

        This is all that your own learner needs.
        """
        from ebrank.model.prior import kernels

        losses, slopes = np.zeros((2, len(scores)))
        self.blocks(
            lambda start, stop: kernels.write_losses(self.task, scores, start, stop, losses, slopes)
        )
        return losses, slopes

    def subset(self, chosen: Bools) -> Rows:
        """Return the same rows with only the chosen ones included."""
        return replace(self, included=read_only(self.included & chosen))

    def folds(self) -> list[tuple[Rows, Rows]]:
        """Return the rows to keep and those to hold out, so that each row is held out once."""
        if self.groups is None:
            return []
        fold = folds_of(self.groups, self.included)
        numbers = np.unique(fold[self.included]).tolist()
        if len(numbers) < 2:
            return []
        return [(self.subset(fold != number), self.subset(fold == number)) for number in numbers]

    @property
    def task(self) -> LossTask:
        """What kernels need to compute losses; the loss, passed by address, must outlive them."""
        fields = {name: getattr(self, name) for name in LossTask._fields}
        return LossTask(**fields | {"loss": self.loss.address})

    def blocks(self, work: Callable[[int, int], T]) -> list[T]:
        """Return `work(start, stop)` for all blocks of rows, in order."""
        return map_blocks(work, total=len(self.features), block=BLOCK, threads=self.threads)


def number(state: State, name: str) -> float:
    """Return a single number of a state."""
    return float(state[name].reshape(-1)[0])


def folds_of(groups: Ints, included: Bools) -> Ints:
    """Return the fold of each row: whole groups in turn, or rows if there are few groups."""
    present = np.bincount(groups[included]) > 0
    fold = np.zeros(len(groups), np.int64)
    if np.count_nonzero(present) >= FEW_GROUPS:
        fold[included] = np.cumsum(present)[groups[included]] % FOLDS
    else:
        fold[included] = np.arange(np.count_nonzero(included)) % FOLDS
    return fold


def surely_lower(losses: Floats, others: Floats, groups: Ints) -> bool:
    """Return whether paired losses of held-out rows are lower by more than chance explains.

    The unit of chance is the group, or the row if there are few groups.
    """
    gains: Floats = others - losses
    if len(gains) < FEWEST_ROWS:
        return False
    present = np.bincount(groups) > 0
    if np.count_nonzero(present) >= FEW_GROUPS:
        gains = np.bincount(groups, weights=gains).astype(np.float64)[present]
    return bool(gains.mean() > SURE * gains.std() / np.sqrt(len(gains)))


def favored(losses: Floats, others: Floats, groups: Ints, *, eager: bool) -> bool:
    """Return whether held-out rows, if there are enough, favor a penalty over another.

    Validation rows are few, and a choice among equals would only follow their noise: they have to
    rule out chance. If all rows are held out in turn, a stronger penalty need not (`eager`): too
    weak a penalty costs more than one that is too strong.
    """
    if eager:
        return bool(len(losses) >= FEWEST_ROWS and losses.mean() < others.mean())
    return surely_lower(losses, others, groups)


def walked(grid: Sequence[float], value: float, takes: Callable[[float, float], bool]) -> float:
    """Return where steps along a rising grid end, up or else down; `takes` one from here to there.

    A value that is not in the grid is taken for the nearest one.
    """
    place = first = int(np.argmin(np.abs(np.log(grid) - np.log(max(value, grid[0])))))
    for step in (1, -1):
        while 0 <= place + step < len(grid) and takes(value, grid[place + step]):
            place += step
            value = grid[place]
        if place != first:
            break
    return value
