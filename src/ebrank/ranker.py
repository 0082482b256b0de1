"""EBRank as an estimator: fit a prior, rank by posterior relevance plus exploration (Algorithm 1).

Ten items, two of them new. Users like what the feature likes, so the new item with the high feature
is promising, and goes on top although nobody has clicked it yet:

>>> import numpy as np
>>> from ebrank import BehaviorStats, EBRanker
>>> features = np.linspace(0, 1, 10, dtype=np.float32).reshape(-1, 1)
>>> stats = BehaviorStats.from_arrays(
...     {"shown": [50] * 4 + [0] + [50] * 4 + [0],
...      "clicks": [5, 7, 10, 13, 0, 20, 22, 25, 28, 0],
...      "weighted_clicks": [5, 7, 10, 13, 0, 20, 22, 25, 28, 0],
...      "exposure": [50] * 4 + [0] + [50] * 4 + [0]})
>>> ranker = EBRanker(epsilon=10.0).fit(features, stats)
>>> ranking = ranker.rank(features, stats, k=3)
>>> ranking.order
array([9, 8, 7])
>>> print(ranking.explain(9))
prior 0.6..., observed 0.000 → relevance 0.6... + bonus 0.0...
"""

from __future__ import annotations

import copy
import os
from typing import Self

import numpy as np
import numpy.typing as npt

from ebrank import equations
from ebrank.behavior import BehaviorStats, Estimator, check_estimator
from ebrank.examination import Examination
from ebrank.features import Scaling
from ebrank.parameters import (
    Parameterized,
    check_whole,
    require,
    require_number,
    require_whole,
)
from ebrank.priors import LinearPrior, Prior
from ebrank.priors.base import BetaParameters, check_rows
from ebrank.ranking import Candidates, Ranking
from ebrank.typing import Features

__all__ = ["EBRanker", "Ranking"]


class EBRanker(Parameterized):
    """Rank by R̂ + ε·MC with an empirical Bayes prior learned from features.

    Parameters:
        prior: a `Prior`; None makes a `LinearPrior` with this ranker's `beta` and `estimator`.
        beta: β of the default prior.
        epsilon: ε, how much a unit of certainty gained is worth; 0 never explores.
        estimator: evidence that updates the prior: `ips` (C of n, the paper's equations) or
            `exposure` (c of E, lower variance).
        examination: how users examine ranks; used by `record`.
        seed: of the keys that break ties.
        scaling: what `rank` does to the features it is given, such as `Scaling("query")`; None
            takes them as they are. Rows given to `fit` are scaled already: they are of many
            queries, and only the caller knows which (`scaling(features, query_pointers)`).

    Attributes:
        prior_: the prior in use, fitted once `fit` was called.
    """

    def __init__(
        self,
        prior: Prior | None = None,
        beta: float = 5.0,
        epsilon: float = 1.0,
        estimator: Estimator = "ips",
        examination: Examination | None = None,
        seed: int = 0,
        scaling: Scaling | None = None,
    ) -> None:
        self.prior = prior
        self.beta = beta
        self.epsilon = epsilon
        self.estimator = estimator
        self.examination = examination
        self.seed = seed
        self.scaling = scaling
        self._check_params()
        self.prior_: Prior | None = None

    def fit(
        self,
        features: Features,
        behavior: BehaviorStats,
        *,
        validation: tuple[Features, BehaviorStats] | None = None,
    ) -> Self:
        """Learn the prior from rows of any number of queries and what users did with them.

        The prior given stays as it is; a copy is fitted. A prior with `warm_start` goes on from its
        last fit.
        """
        if not getattr(self.prior_, "warm_start", False):
            self.prior_ = None
        prior = self.prior_ or copy.deepcopy(self._prior())
        self.prior_ = prior.fit(features, behavior, validation=validation)
        return self

    def rank(
        self,
        features: Features,
        behavior: BehaviorStats,
        k: int | None = None,
        *,
        tie_keys: npt.ArrayLike | None = None,
    ) -> Ranking:
        """Return the k best candidates of one query (all of them by default).

        Equal scores are ordered by `tie_keys`, lowest first: one number per candidate, or by
        default a seeded random key for each position.
        """
        check_rows(features, behavior)
        return self.rank_by_prior(self.predict_prior(features), behavior, k, tie_keys=tie_keys)

    def predict_prior(self, features: Features) -> BetaParameters:
        """Return α and β of one query's candidates: their features, scaled, through the prior."""
        return self._prior().predict(features if self.scaling is None else self.scaling(features))

    def rank_by_prior(
        self,
        prior: BetaParameters,
        behavior: BehaviorStats,
        k: int | None = None,
        *,
        tie_keys: npt.ArrayLike | None = None,
    ) -> Ranking:
        """Return what `rank` returns, given α and β: they change far less often than behavior."""
        known = self._candidates(prior, behavior)
        check_whole("k", k, at_least=1, optional=True)
        keys = _tie_keys(self.seed, len(behavior)) if tie_keys is None else np.asarray(tie_keys)
        require(keys.shape == (len(behavior),), "tie_keys must hold one key per candidate")
        order = np.lexsort((keys, -(known.relevance + known.bonus)))[:k]
        return Ranking(order, known)

    def record(
        self, behavior: BehaviorStats, ranking: Ranking | npt.ArrayLike, clicks: npt.ArrayLike
    ) -> None:
        """Add one session to `behavior`: a list that was shown and what was clicked."""
        order = ranking.order if isinstance(ranking, Ranking) else ranking
        behavior.record(order, clicks, self.examination or Examination())

    def set_params(self, **params: object) -> Self:
        """Change some parameters; one that shapes the prior makes the ranker unfitted again."""
        super().set_params(**params)
        if params.keys() & {"prior", "beta", "estimator"}:
            self.prior_ = None
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker to one JSON file, replacing it atomically."""
        from ebrank import model_file

        model_file.write(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> EBRanker:
        """Read a ranker from a file written by `save`. Nothing in the file is executed."""
        from ebrank import model_file

        return model_file.read(path)

    def _candidates(self, prior: BetaParameters, behavior: BehaviorStats) -> Candidates:
        alpha, beta = prior
        require(len(alpha) == len(behavior), "the prior is not one of these candidates")
        clicks, trials = behavior.evidence(self.estimator)
        relevance = equations.relevance(clicks, trials, alpha, beta)
        certainty = equations.marginal_certainty(relevance, behavior.exposure, alpha, beta)
        return Candidates(
            alpha=alpha,
            beta=beta,
            clicks=clicks,
            trials=trials,
            plain_clicks=behavior.clicks.astype(np.float64),
            exposure=behavior.exposure,
            relevance=relevance,
            bonus=self.epsilon * certainty,
        )

    def _prior(self) -> Prior:
        """Return the fitted prior, the one given, or a new default, in this order."""
        if self.prior_ is not None:
            return self.prior_
        if self.prior is not None:
            return self.prior
        return LinearPrior(self.beta, estimator=self.estimator)

    def _check_params(self) -> None:
        require_number(self, "beta", above=0)
        require_number(self, "epsilon", at_least=0)
        check_estimator(self.estimator)
        require_whole(self, "seed", at_least=0)
        curve = self.examination
        require(curve is None or isinstance(curve, Examination), f"no examination: {curve!r}")
        scaled = self.scaling
        require(scaled is None or isinstance(scaled, Scaling), f"no scaling: {scaled!r}")
        if self.prior is not None:
            usable = isinstance(self.prior, Prior) and not isinstance(self.prior, type)
            require(usable, f"no prior, it cannot fit: {self.prior!r}")
            for name in ("beta", "estimator"):
                own, theirs = getattr(self, name), getattr(self.prior, name, None)
                require(
                    theirs in (own, None),
                    f"the ranker has {name}={own!r}, its prior {theirs!r}; give both the same",
                )


def _tie_keys(seed: int, count: int) -> npt.NDArray[np.uint64]:
    """Return a random key for each position; the key of a position depends on nothing else."""
    return np.random.PCG64(seed).random_raw(count)
