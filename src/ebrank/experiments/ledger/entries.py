"""The ledger's content: a published figure, ours, the difference, and a remark if it is not noise.

A figure differs beyond the spread of the trials if it is off by more than two standard deviations
of ours, and by at least what a reader would care about: .005 of an NDCG or ratio, 1 of a Cum-NDCG.
Then the remark lists the known differences between the two experiments, or says that there are
none:

>>> LedgerEntry("EBRank", "Warm-NDCG", 0.849, 0.852, sd=0.004).remarked([]).remark
''
>>> LedgerEntry("EBRank", "Warm-NDCG", 0.849, 0.800, sd=0.004).remarked([]).remark
'beyond the spread; not explained'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ebrank.experiments.framework.outcome import Finding

DEVIATIONS = 2.0
WORTH_A_REMARK = {3: 0.005, 1: 1.0}
"""The least difference to remark on, by a figure's digits after the point."""
RULE = (
    "A remark stands where the difference is at least .005 (Cum-NDCG: 1.0) and more than two "
    "standard deviations of our trials; with one trial, whose spread is unknown, the size alone "
    "decides. It lists known differences between the experiments, which may or may not be the "
    "cause."
)


@dataclass(frozen=True)
class LedgerEntry:
    """One figure, theirs and ours.

    Attributes:
        name: whose it is.
        figure: what it is.
        reference: theirs; None if they have none.
        ours: the mean over trials; None if it was not run.
        sd: standard deviation over trials, None for a single one.
        digits: after the point.
        group: the heading above it, a feature setting.
        remark: the known causes of a difference, or that none is known.
        reference_sd: their standard deviation, None if they gave none.
    """

    name: str
    figure: str
    reference: float | None
    ours: float | None
    sd: float | None = None
    digits: int = 3
    group: str = ""
    remark: str = ""
    reference_sd: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours minus theirs."""
        if self.reference is None or self.ours is None:
            return None
        return self.ours - self.reference

    def remarked(self, causes: Sequence[str]) -> LedgerEntry:
        """Return the entry with its remark, given the known differences of the experiments."""
        off = abs(self.difference or 0.0)
        if self.ours is None:
            remark = "not run"
        elif off < WORTH_A_REMARK[self.digits]:
            remark = ""
        elif self.sd is None:
            remark = "one trial: the spread is unknown"
        elif off > DEVIATIONS * self.sd:
            remark = "; ".join(["beyond the spread", *(causes or ["not explained"])])
        else:
            remark = ""
        return replace(self, remark=remark)


@dataclass(frozen=True)
class LedgerSection:
    """Figures that belong together, or why there are none.

    Attributes:
        note: what to know before comparing, or why there is nothing to compare; Markdown's
            backticks mark commands.
    """

    title: str
    note: str = ""
    entries: tuple[LedgerEntry, ...] = ()
    findings: tuple[Finding, ...] = ()
