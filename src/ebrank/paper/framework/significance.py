"""Is one ranker ahead of all others, or was it luck? And by how much?

The test is Fisher's randomization test over test queries (`evaluation.significance`). Holm's method
adjusts it over all comparisons that may decide a claim by themselves. The test decides;
the interval says how large a difference may be. A claim is

- *confirmed* where the difference is on the claim's side and the test rejects the border,
- *contradicted* where it is on the other side and the test rejects the border,
- *undecided* otherwise.

The border is 0, or a margin: "no more than .03 below" is tested against −.03. The interval is
Student's over test queries, at the level at which Holm's method tested this comparison: 95 % for a
single one. So, but for a hair's breadth, it excludes the border where the test does, unless queries
are so few that no p-value is below the level: n of them allow none below 2/2ⁿ.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ebrank.lab.evaluation.significance import (
    ADDS_UP,
    fisher_randomization,
    holm,
    query_differences,
)
from ebrank.lab.simulation.result import Result
from ebrank.paper.framework.display import Effect, Finding, Verdict
from ebrank.paper.framework.measures import Measure
from ebrank.paper.framework.numbers import counted, p_text
from ebrank.typing import Floats

K = TypeVar("K", bound=Hashable)

LEVEL = 0.05
ENOUGH_QUERIES = 100
ENOUGH_TRIALS = 5


@dataclass(frozen=True)
class Contrast:
    """A difference, how sure it is, and its interval.

    Attributes:
        difference: the estimate.
        low, high: the ends of its interval; None if there is only a single number.
        p_value: of the difference being at the border, adjusted if there were several tests.
        border: 0, or the margin that the difference is tested against.
        whole: the mean that the difference is relative to.
    """

    difference: float
    low: float | None
    high: float | None
    p_value: float
    border: float = 0.0
    whole: float | None = None

    @property
    def verdict(self) -> Verdict:
        """What the test says about the claim that the difference is above the border."""
        if not self.p_value < LEVEL or self.difference == self.border:
            return "undecided"
        return "confirmed" if self.difference > self.border else "contradicted"

    @property
    def share(self) -> float:
        """The difference as a share of the whole."""
        return self.difference / self.whole if self.whole else self.difference

    def finding(
        self,
        name: str,
        claim: str,
        measure: Measure,
        theme: str,
        subject: str,
        detail: str = "",
        *,
        unit: str = "",
        ours: bool = False,
    ) -> Finding:
        """Return the check of the claim that the difference is above the border."""
        detail = detail or f"adjusted {p_text(self.p_value)}"
        effect = Effect(self.difference, self.low, self.high, unit or measure.title, measure.digits)
        return Finding(name, claim, self.verdict, detail, theme, subject, ours, effect)


@dataclass(frozen=True)
class Lead:
    """How far one ranker is ahead of its rivals.

    Attributes:
        rivals: the difference to each, by label.
        rival: the strongest of them, by its mean.
    """

    measure: Measure
    rivals: Mapping[str, Contrast]
    rival: str

    @property
    def significant(self) -> bool:
        """Whether it is significantly ahead of every rival."""
        return self.verdict == "confirmed"

    @property
    def verdict(self) -> Verdict:
        """Confirmed if it is ahead of every rival, contradicted if one is ahead of it."""
        verdicts = {contrast.verdict for contrast in self.rivals.values()}
        if "contradicted" in verdicts:
            return "contradicted"
        return "undecided" if "undecided" in verdicts else "confirmed"

    @property
    def deciding(self) -> str:
        """The rival that decides the verdict: the strongest, unless another one decides."""
        if self.rivals[self.rival].verdict == self.verdict:
            return self.rival
        own = (label for label, each in self.rivals.items() if each.verdict == self.verdict)
        return min(own, key=lambda label: self.rivals[label].difference)

    @property
    def contrast(self) -> Contrast:
        """The difference to the rival that decides."""
        return self.rivals[self.deciding]

    def __str__(self) -> str:
        return f"against {self.deciding}, adjusted {p_text(self.contrast.p_value)}"


def lead(first: Result, rivals: Mapping[str, Result], measure: Measure) -> Lead:
    """Return how far one ranker is ahead of its rivals, given by label."""
    pairs = {label: (first, rival) for label, rival in rivals.items()}
    means = {label: measure.mean(result) for label, result in rivals.items()}
    strongest = max(means, key=lambda label: means[label])
    return Lead(measure, pairwise(pairs, measure), strongest)


def pairwise(
    pairs: Mapping[K, tuple[Result, Result]], measure: Measure, border: float = 0.0
) -> dict[K, Contrast]:
    """Return by how much the first of each pair exceeds the second, adjusted over all pairs."""
    added = {name: shares(*pair, measure) for name, pair in pairs.items()}
    p_values = [_p_value(own, border) for own in added.values()]
    return {
        name: replace(
            contrast(own, border, p_value=p, level=LEVEL * p / adjusted),
            p_value=float(adjusted),
            whole=measure.mean(pairs[name][1]),
        )
        for (name, own), p, adjusted in zip(added.items(), p_values, holm(p_values), strict=True)
    }


def shares(a: Result, b: Result, measure: Measure) -> Floats:
    """Return what each test query adds to the difference of two rankers, shape (queries,)."""
    differences = query_differences(a, b, measure.metric)
    return differences if measure.metric in ADDS_UP else differences / len(differences)


def contrast(
    added: Floats, border: float = 0.0, *, p_value: float | None = None, level: float = LEVEL
) -> Contrast:
    """Return a difference that is a sum over queries, with its interval."""
    total, count = float(added.sum()), len(added)
    if p_value is None:
        p_value = _p_value(added, border)
    if count < 2:
        return Contrast(total, None, None, p_value, border)
    from scipy.special import stdtrit  # SciPy takes a while to import

    error = float(np.sqrt(count) * added.std(ddof=1))
    reach = float(stdtrit(count - 1, 1 - level / 2)) * error
    return Contrast(total, total - reach, total + reach, p_value, border)


def over_trials(values: Floats) -> Contrast:
    """Return the mean of one number per trial; five allow no test but Student's."""
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return Contrast(mean, None, None, 1.0)
    from scipy.special import stdtr, stdtrit

    error = float(values.std(ddof=1) / np.sqrt(count))
    reach = float(stdtrit(count - 1, 1 - LEVEL / 2)) * error
    p_value = 2 * float(stdtr(count - 1, -abs(mean) / error)) if error else float(mean == 0)
    return Contrast(mean, mean - reach, mean + reach, p_value)


def _p_value(added: Floats, border: float) -> float:
    """Return how likely a sum this far from the border is if the border is the truth."""
    return fisher_randomization(added - border / len(added))


def caution(test_queries: int | None, trials: int) -> str:
    """Return a warning about the findings of a small run; "" if the run is large enough.

    The test is over test queries, so with few of them even large differences stay undecided; with
    few trials each query's figure is left to luck. A run is small below the protocol's five trials,
    or below 100 test queries: MQ2008, the smallest test set with published figures, has 105.

    >>> print(caution(6, 1))
    6 test queries, 1 trial: a small run, which leaves much undecided. Run at least 100 test \
queries and 5 trials.
    >>> caution(105, 5)
    ''
    """
    few_queries = test_queries is not None and test_queries < ENOUGH_QUERIES
    if not few_queries and trials >= ENOUGH_TRIALS:
        return ""
    size = [counted(trials, "trial")]
    if test_queries is not None:
        size.insert(0, counted(test_queries, "test query", "test queries"))
    return (
        f"{', '.join(size)}: a small run, which leaves much undecided. Run at least "
        f"{ENOUGH_QUERIES} test queries and {ENOUGH_TRIALS} trials."
    )
