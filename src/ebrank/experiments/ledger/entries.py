"""The ledger's content: a published figure, ours, the difference, and whether it is noise.

A figure differs beyond the spread of the trials if it is off by more than two standard deviations
of ours, and by at least what a reader would care about: .005 of an NDCG or ratio, 1 of a Cum-NDCG
or a count.

>>> LedgerEntry("EBRank", "Warm-NDCG", 0.849, 0.852, sd=0.004).beyond_the_spread
False
>>> LedgerEntry("EBRank", "Warm-NDCG", 0.849, 0.800, sd=0.004).beyond_the_spread
True
"""

from __future__ import annotations

from dataclasses import dataclass

from ebrank.experiments.framework.outcome import Finding

DEVIATIONS = 2.0
WORTH_A_MARK = {3: 0.005, 1: 1.0, 0: 1.0}
"""The least difference to mark, by a figure's digits after the point."""
MARK = "*"
RULE = (
    f"{MARK} : the difference is at least .005 (Cum-NDCG: 1.0) and more than two standard "
    "deviations of our trials; with one trial, whose spread is unknown, the size alone decides."
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
        reference_sd: their standard deviation, None if they gave none.
    """

    name: str
    figure: str
    reference: float | None
    ours: float | None
    sd: float | None = None
    digits: int = 3
    group: str = ""
    reference_sd: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours minus theirs."""
        if self.reference is None or self.ours is None:
            return None
        return self.ours - self.reference

    @property
    def beyond_the_spread(self) -> bool:
        """Whether the difference is large, and larger than chance makes it."""
        off = abs(self.difference or 0.0)
        large = off >= WORTH_A_MARK[self.digits]
        return large and (self.sd is None or off > DEVIATIONS * self.sd)


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
