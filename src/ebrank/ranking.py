"""A ranked list that can explain its order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ebrank import equations
from ebrank.composition import Scores
from ebrank.errors import ParameterError
from ebrank.evidence import BehaviorStats, Examination, Sums
from ebrank.formula import Score
from ebrank.parameters import check_whole
from ebrank.policy import Policy
from ebrank.priors.base import ItemPrior
from ebrank.typing import Floats, Ints

MANY = 128
"""From this many candidates on, it pays to look for equal scores before sorting by two keys."""


def best_first(scores: Floats, keys: npt.NDArray[np.unsignedinteger]) -> Ints:
    """Return the order by score, the highest first; the lower key decides between equals.

    >>> best_first(np.array([0.5, 0.7, 0.5]), np.array([9, 1, 3], np.uint64)).tolist()
    [1, 2, 0]
    """
    if len(scores) < MANY:
        return np.lexsort((keys, -scores))
    order = np.argsort(-scores)
    ordered = scores[order]
    equal = ordered[1:] == ordered[:-1]
    if equal.any():
        tied = np.zeros(len(order), np.bool_)
        tied[1:] = equal
        tied[:-1] |= equal
        places = order[tied]
        order[tied] = places[np.lexsort((keys[places], -scores[places]))]
    return order


@dataclass(frozen=True)
class Explanation:
    """Why an item has its rank, in four numbers.

    The relevance blends what the features predict with what users did, moved by the context if one
    is given; the score is relevance plus bonus.
    """

    prior: float
    """The relevance that the features alone predict."""
    observed: float
    """Debiased click rate of its users (0 while nobody has seen it)."""
    relevance: float
    """R̂: both, weighted by how much was seen."""
    bonus: float
    """What showing it is worth beyond its relevance."""
    context: float = 0.0
    """How far the context moved its relevance."""

    def __str__(self) -> str:
        moved = f", {self.context:+.3f} by the context" if self.context else ""
        return (
            f"prior {self.prior:.3f}, observed {self.observed:.3f}{moved} "
            f"→ relevance {self.relevance:.3f} + bonus {self.bonus:.3f}"
        )


@dataclass(frozen=True, eq=False)
class Candidates:
    """What a ranker knows about every candidate, in the caller's order.

    In a context, `moved` is the change of relevances and scores, which already include it.
    """

    policy: Policy
    formulas: Scores
    prior: ItemPrior
    behavior: BehaviorStats
    examination: Examination
    relevance: Floats
    scores: Floats
    moved: Floats | None = None

    def rows(self, items: Ints) -> Candidates:
        """Return what is known about some candidates."""
        return replace(
            self,
            prior=self.prior.rows(items),
            behavior=self.behavior[items],
            relevance=self.relevance[items],
            scores=self.scores[items],
            moved=None if self.moved is None else self.moved[items],
        )

    @cached_property
    def sums(self) -> Sums:
        """n, c, C and E of each candidate."""
        return self.behavior.sums(self.examination)

    def by(self, score: Score, items: Ints) -> Floats:
        """Return another score of some candidates."""
        from ebrank.scoring import scores  # Numba takes a while to import

        return scores(score, self.prior.rows(items), self.behavior[items], self.examination)

    @cached_property
    def prior_mean(self) -> Floats:
        """The relevance that the features alone predict for each candidate."""
        return self.by(self.formulas.prior, np.arange(len(self.scores)))

    @cached_property
    def prior_beta(self) -> tuple[Floats, Floats]:
        """α and β of each prior, or of the Beta with its mean and spread."""
        from ebrank.scoring import scores  # Numba takes a while to import

        nothing = BehaviorStats(np.zeros_like(self.behavior.counts), self.behavior.behaviors)
        spread = scores(self.formulas.spread, self.prior, nothing, self.examination)
        return equations.beta_of(self.prior_mean, spread)

    @property
    def bonus(self) -> Floats:
        """What the score adds to the relevance."""
        return self.scores - self.relevance


@dataclass(frozen=True, eq=False)
class Ranking:
    """The top of a ranked list, best first; every array is aligned with `order`.

    Attributes:
        order: positions of the items in the features given to `rank`.
        candidates: what was known about all candidates, for `explain`.
    """

    order: Ints
    candidates: Candidates

    @property
    def scores(self) -> Floats:
        """Relevance plus bonus, the key of the order."""
        return self.candidates.scores[self.order]

    @property
    def relevance(self) -> Floats:
        """R̂, the estimated relevance.

        With the `ips` estimator it may exceed 1: a click at a low rank counts for several.
        """
        return self.candidates.relevance[self.order]

    @property
    def bonus(self) -> Floats:
        """The exploration bonus."""
        return self.candidates.bonus[self.order]

    @cached_property
    def interval(self) -> Floats:
        """Central 90 % credible interval of the relevance, shape (k, 2).

        It is based on plain clicks over exposure, a proper posterior; the `ips` estimate, which
        varies more, may lie outside. With `exact` evidence it is that of the Beta distribution
        with the posterior's mean and spread.
        """
        known, order = self.candidates, self.order
        if known.policy.estimator.by_rank:
            spread = known.by(known.formulas.spread, order)
            return np.column_stack(equations.interval_of(self.relevance, spread, level=0.9))
        low, high = known.policy.family.interval(
            known.prior.rows(order), known.sums.rows(order), level=0.9
        )
        return np.column_stack([low, high])

    def explain(self, item: int) -> Explanation:
        """Return why the candidate in this position of the input scored as it did."""
        known = self.candidates
        check_whole("item", item, at_least=0)
        if item >= len(known.scores):
            raise ParameterError(f"item must be from 0 to {len(known.scores) - 1}, not {item}")
        chosen = np.array([item])
        policy, sums = known.policy, known.sums.rows(chosen)
        return Explanation(
            prior=float(known.prior_mean[item]),
            observed=float(policy.estimator.rate(sums)[0]),
            relevance=float(known.relevance[item]),
            bonus=float(known.bonus[item]),
            context=0.0 if known.moved is None else float(known.moved[item]),
        )

    def __len__(self) -> int:
        return len(self.order)

    def __repr__(self) -> str:
        return f"Ranking(order={self.order.tolist()}, scores={self.scores.round(4).tolist()})"
