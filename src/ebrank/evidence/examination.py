"""Which ranks users look at: the curve that turns positions into exposure.

>>> Examination(cutoff=5)(np.array([1, 3, 6]))
array([1. , 0.5, 0. ])
>>> Examination(curve=(1.0, 0.6, 0.3))(np.array([1, 2, 9]))
array([1. , 0.6, 0. ])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebrank import equations
from ebrank.errors import ParameterError
from ebrank.evidence.slots import DEEPEST, ranks_of
from ebrank.parameters import check_number, check_whole
from ebrank.typing import Floats


@dataclass(frozen=True)
class Examination:
    """Examination probability by rank: the paper's curve, or one you measured.

    Attributes:
        severity: exponent of 1/log2(rank + 1); 0 means every rank is examined.
        cutoff: the last rank users examine (k_s in the paper); None means there is none.
        curve: measured probabilities of ranks 1, 2, ..., used instead of the formula; users never
            examine ranks beyond it.
    """

    severity: float = 1.0
    cutoff: int | None = None
    curve: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Raise unless this is a curve of probabilities."""
        check_number("severity", self.severity, at_least=0)
        check_whole("cutoff", self.cutoff, at_least=1, optional=True)
        object.__setattr__(self, "severity", float(self.severity))
        if self.cutoff is not None:
            object.__setattr__(self, "cutoff", int(self.cutoff))
        if self.curve is not None:
            if self.severity != 1.0:
                raise ParameterError("give either a measured curve or a severity, not both")
            try:
                object.__setattr__(self, "curve", tuple(float(p) for p in self.curve))
            except (TypeError, ValueError, OverflowError):
                raise ParameterError(f"curve must hold numbers, not {self.curve!r}") from None
            if not self.curve or not all(0 <= p <= 1 for p in self.curve):
                raise ParameterError("curve must hold probabilities between 0 and 1, rank 1 first")
            if not any(self.curve[: self.cutoff]):
                raise ParameterError("users must examine some rank, but the curve is 0 at all")

    def __call__(self, ranks: npt.ArrayLike) -> Floats:
        """Return the examination probability of ranks counted from 1."""
        ranks = np.asarray(ranks, dtype=np.float64)
        if not np.all(ranks >= 1):
            raise ParameterError("ranks are counted from 1")
        cutoff = np.inf if self.cutoff is None else float(min(self.cutoff, 2**53))
        if self.curve is None:
            return equations.examination(ranks, self.severity, cutoff)
        table = np.append(self.curve, 0.0)
        place = np.minimum(ranks.astype(np.int64) - 1, len(self.curve))
        return np.asarray(table[place] * (ranks <= cutoff), dtype=np.float64)

    def by_slot(self, p: Floats) -> Examination:
        """Return the curve with these probabilities of slots, the same for all ranks of a slot.

        Ranks beyond these slots are examined as before.
        """
        ranks = [len(ranks_of(slot)) for slot in range(len(p))]
        beyond = self(np.arange(sum(ranks), DEEPEST) + 1)
        return Examination(curve=tuple(np.append(np.repeat(p, ranks), beyond).tolist()))
