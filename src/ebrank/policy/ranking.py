"""A ranked list that can explain its order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ebrank import equations
from ebrank.errors import ParameterError
from ebrank.evidence import BehaviorStats, Examination, Sums
from ebrank.parameters import check_whole
from ebrank.policy.composition import Scores
from ebrank.policy.formula import Score
from ebrank.policy.policies import Policy
from ebrank.priors.base import ItemPrior
from ebrank.typing import Floats, Ints


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
        from ebrank.policy.scoring import scores  # Numba takes a while to import

        return scores(score, self.prior.rows(items), self.behavior[items], self.examination)

    @cached_property
    def prior_mean(self) -> Floats:
        """The relevance that the features alone predict for each candidate."""
        return self.by(self.formulas.prior, np.arange(len(self.scores)))

    @cached_property
    def prior_beta(self) -> tuple[Floats, Floats]:
        """α and β of each prior, or of the Beta with its mean and spread."""
        from ebrank.policy.scoring import scores  # Numba takes a while to import

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
        candidates, order = self.candidates, self.order
        if candidates.policy.estimator.by_rank:
            spread = candidates.by(candidates.formulas.spread, order)
            return np.column_stack(equations.interval_of(self.relevance, spread, level=0.9))
        low, high = candidates.policy.family.interval(
            candidates.prior.rows(order), candidates.sums.rows(order), level=0.9
        )
        return np.column_stack([low, high])

    def explain(self, item: int) -> Explanation:
        """Return why the candidate in this position of the input scored as it did."""
        candidates = self.candidates
        check_whole("item", item, at_least=0)
        if item >= len(candidates.scores):
            raise ParameterError(f"item must be from 0 to {len(candidates.scores) - 1}, not {item}")
        chosen = np.array([item])
        policy, sums = candidates.policy, candidates.sums.rows(chosen)
        return Explanation(
            prior=float(candidates.prior_mean[item]),
            observed=float(policy.estimator.rate(sums)[0]),
            relevance=float(candidates.relevance[item]),
            bonus=float(candidates.bonus[item]),
            context=0.0 if candidates.moved is None else float(candidates.moved[item]),
        )

    def __len__(self) -> int:
        return len(self.order)

    def __repr__(self) -> str:
        return f"Ranking(order={self.order.tolist()}, scores={self.scores.round(4).tolist()})"
