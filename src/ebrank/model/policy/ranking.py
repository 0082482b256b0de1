"""A ranked list that can explain its order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from ebrank import equations
from ebrank.errors import ParameterError
from ebrank.evidence import BehaviorStats, Examination, Sums
from ebrank.model.formula import ItemPrior, Score
from ebrank.model.policy.composition import Scores
from ebrank.model.policy.policies import Policy
from ebrank.model.policy.posterior import Densities, log_beta, log_likelihood
from ebrank.model.prior.item_effects import Elsewhere
from ebrank.parameters import check_whole
from ebrank.typing import Floats, Ints


@dataclass(frozen=True)
class Explanation:
    """Why an item has its rank, in a few numbers.

    The relevance blends what features and other queries predict with what users did; the score is
    relevance plus bonus.
    """

    prior: float
    """The relevance that the features alone predict."""
    observed: float
    """Debiased click rate of its users (0 while nobody has seen it)."""
    relevance: float
    """R̂: both, weighted by how much was seen."""
    bonus: float
    """What showing it is worth beyond its relevance."""
    elsewhere: float = 0.0
    """How far evidence from other queries moved the prior."""
    queries: int = 0
    """How many other queries these are."""

    def __str__(self) -> str:
        shared = ""
        if self.queries:
            shared = f", {self.elsewhere:+.3f} from {self.queries:,} other quer"
            shared += "y" if self.queries == 1 else "ies"
        return (
            f"prior {self.prior:.3f}{shared}, observed {self.observed:.3f} "
            f"→ relevance {self.relevance:.3f} + bonus {self.bonus:.3f}"
        )


@dataclass(frozen=True, eq=False)
class Candidates:
    """What a ranker knows about every candidate, in the caller's order.

    The prior includes the evidence from other queries, `elsewhere`; `by_features` does not.
    """

    policy: Policy
    formulas: Scores
    prior: ItemPrior
    behavior: BehaviorStats
    examination: Examination
    relevance: Floats
    scores: Floats
    by_features: ItemPrior
    elsewhere: Elsewhere | None = None

    def rows(self, items: Ints) -> Candidates:
        """Return what is known about some candidates."""
        return replace(
            self,
            prior=self.prior.rows(items),
            behavior=self.behavior[items],
            relevance=self.relevance[items],
            scores=self.scores[items],
            by_features=self.by_features.rows(items),
            elsewhere=None if self.elsewhere is None else self.elsewhere.rows(items),
        )

    @cached_property
    def sums(self) -> Sums:
        """n, c, C and E of each candidate."""
        return self.behavior.sums(self.examination)

    def by(self, score: Score, items: Ints) -> Floats:
        """Return another score of some candidates."""
        from ebrank.model.scoring import scores  # Numba takes a while to import

        return scores(score, self.prior.rows(items), self.behavior[items], self.examination)

    @cached_property
    def prior_mean(self) -> Floats:
        """The relevance that features and other queries predict for each candidate."""
        return self.by(self.formulas.prior, np.arange(len(self.scores)))

    @cached_property
    def prior_change(self) -> Floats:
        """How far evidence from other queries moves the prior of each candidate."""
        if self.elsewhere is None:
            return np.zeros(len(self.scores))
        return self.prior_mean - replace(self, prior=self.by_features).prior_mean

    @cached_property
    def prior_beta(self) -> tuple[Floats, Floats]:
        """α and β of each prior, or of the Beta with its mean and spread."""
        from ebrank.model.scoring import scores  # Numba takes a while to import

        nothing = BehaviorStats(np.zeros_like(self.behavior.counts), self.behavior.behaviors)
        spread = scores(self.formulas.spread, self.prior, nothing, self.examination)
        return equations.beta_of(self.prior_mean, spread)

    @cached_property
    def posterior_beta(self) -> tuple[Floats, Floats]:
        """The Beta with mean R̂ and weight E + α + β, whose variance is about the paper's.

        R̂ by `ips` may exceed 1: the second number is at least that of the prior. A policy that
        ranks by the prior or by clicks alone has the posterior of both.
        """
        alpha, beta = self.prior_beta
        weight = self.sums.exposure + alpha + beta
        mean = self.relevance
        if self.policy.choices.part != "both":
            mean = (self.sums.clicks + alpha) / weight
        return mean * weight, np.maximum((1.0 - mean) * weight, beta)

    @property
    def prior_densities(self) -> Densities:
        """The prior of each candidate."""
        return Densities.around_beta(*self.prior_beta, self._log_prior)

    @property
    def posterior_densities(self) -> Densities:
        """The posterior of each candidate under its policy.

        With exact evidence it is prior times likelihood. Otherwise it is the Beta distribution with
        mean R̂ and the weight of the exposure, E + α + β.
        """
        if not self.policy.prior.estimator.by_rank:
            posterior = self.posterior_beta
            return Densities.around_beta(*posterior, partial(log_beta, *posterior))
        log_prior = self._log_prior
        likelihood = partial(log_likelihood, self.behavior, self.examination)
        spread = self.by(self.formulas.spread, np.arange(len(self.scores)))
        return Densities.around(self.relevance, spread, lambda u: log_prior(u) + likelihood(u))

    @property
    def _log_prior(self) -> Callable[[Floats], Floats]:
        """The log density of the priors: the family's own, if evidence is exact."""
        if not self.policy.prior.estimator.by_rank:
            return partial(log_beta, *self.prior_beta)
        score = self.formulas.prior
        learned = score.parameters[len(score.formula.parameters) :]
        return partial(self.policy.family.log_prior, self.prior, learned)

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

        It is that of the policy's posterior. An estimate of about 1 or above, such as `ips` may
        give, lies outside, and so may the mean of a posterior that is nearly all at 0.
        """
        chosen = self.candidates.rows(self.order)
        if chosen.policy.prior.estimator.by_rank:
            return chosen.posterior_densities.interval(0.9)
        hits = chosen.posterior_beta[0] - chosen.prior_beta[0]
        sums = chosen.sums._replace(clicks=hits)
        return np.column_stack(chosen.policy.family.interval(chosen.prior, sums, level=0.9))

    def explain(self, item: int) -> Explanation:
        """Return why the candidate in this position of the input scored as it did."""
        candidates = self.candidates
        check_whole("item", item, at_least=0)
        if item >= len(candidates.scores):
            raise ParameterError(f"item must be from 0 to {len(candidates.scores) - 1}, not {item}")
        chosen = np.array([item])
        policy, sums = candidates.policy, candidates.sums.rows(chosen)
        return Explanation(
            prior=float(candidates.prior_mean[item] - candidates.prior_change[item]),
            observed=float(policy.prior.estimator.rate(sums)[0]),
            relevance=float(candidates.relevance[item]),
            bonus=float(candidates.bonus[item]),
            elsewhere=float(candidates.prior_change[item]),
            queries=0 if candidates.elsewhere is None else int(candidates.elsewhere.queries[item]),
        )

    def __len__(self) -> int:
        return len(self.order)

    def __repr__(self) -> str:
        return f"Ranking(order={self.order.tolist()}, scores={self.scores.round(4).tolist()})"
