"""Is one ranker ahead of all others, or was it luck?

By Fisher's randomization test over test queries (`evaluation.significance`), adjusted by Holm's
method over the comparisons made: those of one ranker, by one measure, with all its rivals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ebrank.evaluation.significance import compare, holm
from ebrank.experiments.measures import Measure
from ebrank.simulation.result import Result

LEVEL = 0.05


@dataclass(frozen=True)
class Lead:
    """How far one is ahead of its rivals.

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
        """Whether it is ahead of every rival beyond luck."""
        return self.difference > 0 and self.p_value < LEVEL

    def __str__(self) -> str:
        return (
            f"{self.measure.text(self.difference, '+')} in {self.measure.title} against "
            f"{self.rival}, largest adjusted {in_words(self.p_value)}"
        )


def lead(first: Result, rivals: Mapping[str, Result], measure: Measure) -> Lead:
    """Return how far one is ahead of all rivals, given by what they are called."""
    found = [compare(first, rival, measure.metric) for rival in rivals.values()]
    p_value = float(np.max(holm([comparison.p_value for comparison in found])))
    means = {label: measure.mean(result) for label, result in rivals.items()}
    strongest = max(means, key=lambda label: means[label])
    return Lead(measure, strongest, measure.mean(first) - means[strongest], p_value)


def pairwise(
    pairs: Mapping[str, tuple[Result, Result]], measure: Measure
) -> dict[str, tuple[float, float]]:
    """Return the difference of each pair and its p-value, adjusted over all pairs."""
    found = [compare(a, b, measure.metric) for a, b in pairs.values()]
    adjusted = holm([comparison.p_value for comparison in found])
    return {
        name: (comparison.difference, float(p))
        for name, comparison, p in zip(pairs, found, adjusted, strict=True)
    }


def in_words(p_value: float) -> str:
    """Return a p-value as text.

    >>> in_words(0.00001), in_words(0.0312), in_words(1.0)
    ('p < .0001', 'p = .0312', 'p = 1.0000')
    """
    return "p < .0001" if p_value < 0.0001 else "p = " + f"{p_value:.4f}".removeprefix("0")
