"""Is one ranker ahead of all others, or was it luck? And is the run large enough to tell?

The test is Fisher's randomization test over test queries (`evaluation.significance`), adjusted by
Holm's method over the comparisons made: those of one ranker, by one measure, with all its rivals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ebrank.evaluation.significance import compare, holm
from ebrank.experiments.framework.measures import Measure
from ebrank.experiments.framework.numbers import counted, p_text
from ebrank.experiments.framework.outcome import Finding
from ebrank.simulation.result import Result

LEVEL = 0.05
ENOUGH_QUERIES = 100
ENOUGH_TRIALS = 5
LUCK = "The claims about auto compare means: one that holds here may also be luck."


@dataclass(frozen=True)
class Lead:
    """How far one ranker is ahead of its rivals.

    Attributes:
        rival: the strongest of them.
        difference: to the strongest; below 0 if that is ahead.
        p_value: the largest of all comparisons, adjusted.
    """

    measure: Measure
    rival: str
    difference: float
    p_value: float

    @property
    def significant(self) -> bool:
        """Whether it is significantly ahead of every rival."""
        return self.difference > 0 and self.p_value < LEVEL

    def __str__(self) -> str:
        return (
            f"{self.measure.text(self.difference, signed=True)} in {self.measure.title} against "
            f"{self.rival}, largest adjusted {p_text(self.p_value)}"
        )


def lead(first: Result, rivals: Mapping[str, Result], measure: Measure) -> Lead:
    """Return how far one ranker is ahead of its rivals, given by label."""
    comparisons = [compare(first, rival, measure.metric) for rival in rivals.values()]
    largest = float(np.max(holm([comparison.p_value for comparison in comparisons])))
    means = {label: measure.mean(result) for label, result in rivals.items()}
    strongest = max(means, key=lambda label: means[label])
    return Lead(measure, strongest, measure.mean(first) - means[strongest], largest)


def pairwise(
    pairs: Mapping[str, tuple[Result, Result]], measure: Measure
) -> dict[str, tuple[float, float]]:
    """Return the difference of each pair and its p-value, adjusted over all pairs."""
    comparisons = [compare(a, b, measure.metric) for a, b in pairs.values()]
    adjusted = holm([comparison.p_value for comparison in comparisons])
    return {
        name: (comparison.difference, float(p))
        for name, comparison, p in zip(pairs, comparisons, adjusted, strict=True)
    }


def caution(test_queries: int | None, trials: int, findings: Sequence[Finding] = ()) -> str:
    """Return a warning about the findings of a small run; "" if the run is large enough.

    The test is over test queries, so few of them leave even large differences undecided; few trials
    leave each query's figure to luck. A run is small below the protocol's five trials, or below 100
    test queries: MQ2008, the smallest test set with published figures, has 105. Results written
    before test queries were counted have None of them.

    >>> print(caution(6, 1))
    6 test queries, 1 trial: too few for significance tests to decide. A claim that does not hold \
here may hold in a run with at least 100 test queries and 5 trials.
    >>> caution(105, 5)
    ''
    """
    few_queries = test_queries is not None and test_queries < ENOUGH_QUERIES
    if not few_queries and trials >= ENOUGH_TRIALS:
        return ""
    size = [counted(trials, "trial")]
    if test_queries is not None:
        size.insert(0, counted(test_queries, "test query", "test queries"))
    luck = f" {LUCK}" if any(finding.ours for finding in findings) else ""
    return (
        f"{', '.join(size)}: too few for significance tests to decide. A claim that does not hold "
        f"here may hold in a run with at least {ENOUGH_QUERIES} test queries and {ENOUGH_TRIALS} "
        f"trials.{luck}"
    )
