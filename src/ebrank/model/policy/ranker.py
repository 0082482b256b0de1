"""A policy as an estimator: fit a prior, then rank by what we know about each item (Algorithm 1).

There are ten items, two of them new. Users prefer items with a high feature, so the new item with
the high feature is promising, and comes first although nobody has clicked it yet:

>>> import numpy as np
>>> from ebrank import BehaviorStats, EBRanker
>>> features = np.linspace(0, 1, 10, dtype=np.float32).reshape(-1, 1)
>>> stats = BehaviorStats.of(
...     shown=[50] * 4 + [0] + [50] * 4 + [0],
...     clicks=[5, 7, 10, 13, 0, 20, 22, 25, 28, 0])
>>> ranker = EBRanker().fit(features, stats)
>>> ranking = ranker.rank(features, stats, k=3)
>>> ranking.order
array([9, 8, 7])
>>> print(ranking.explain(9))
prior 0.54..., observed 0.000 → relevance 0.54... + bonus 0.04...
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ebrank.errors import ParameterError
from ebrank.evidence import BehaviorStats, Examination, Valuation
from ebrank.model.formula import ItemPrior
from ebrank.model.policy import policies
from ebrank.model.policy.composition import HORIZON, Scores
from ebrank.model.policy.policies import Policy
from ebrank.model.policy.ranking import Candidates, Ranking
from ebrank.model.policy.scaling import Scaling
from ebrank.model.prior import fitting
from ebrank.model.prior.item_effects import Elsewhere
from ebrank.model.prior.rows import Observations
from ebrank.parameters import check_number, check_whole, require
from ebrank.typing import Features, Floats, Ints, Keys, State

__all__ = ["EBRanker", "Ranking"]


class _Scoring(NamedTuple):
    """What counts are worth, how items are scored, and the place of the horizon, if any."""

    valuation: Valuation
    scores: Scores
    horizon: int | None


class EBRanker:
    """Ranks by a policy: `auto` by default, which has nothing to tune.

    Parameters:
        policy: a `Policy`, or its text form: `"auto"`, the paper's `"ebrank"`, or with parameters
            `"ebrank:epsilon=5,estimator=exposure"`.
        examination: how users examine ranks.
        scaling: how `rank` scales features, such as `Scaling("query")`; None leaves them as
            they are. `fit` expects scaled rows: they come from many queries, and only the caller
            knows which (`scaling(features, query_pointers)`).
        seed: seed for breaking ties, and for policies that sample.
        threads: number of cores to use, None for all; it does not affect the result.
        **parameters: parameters of the policy, such as `epsilon=5.0` of `ebrank`.

    Attributes:
        state_: what the policy's learner has learned; None before `fit`.
    """

    def __init__(
        self,
        policy: Policy | str = "auto",
        *,
        examination: Examination | None = None,
        scaling: Scaling | None = None,
        seed: int = 0,
        threads: int | None = None,
        **parameters: Any,  # noqa: ANN401 (of any type)
    ) -> None:
        given = policies.parse(policy) if isinstance(policy, str) else policy
        require(isinstance(given, Policy), f"not a policy: {policy!r}")
        self.policy = given.with_parameters(**parameters) if parameters else given
        self.examination = Examination() if examination is None else examination
        self.scaling = scaling
        self.threads = threads
        require(isinstance(self.examination, Examination), f"not an examination: {examination!r}")
        require(scaling is None or isinstance(scaling, Scaling), f"not a scaling: {scaling!r}")
        check_whole("seed", seed, at_least=0)
        check_whole("threads", threads, at_least=1, optional=True)
        self.seed = int(seed)
        self.state_: State | None = None
        self._derived: Any = None

    def fit(
        self,
        features: Features,
        behavior: BehaviorStats,
        *,
        groups: Ints | None = None,
        items: npt.ArrayLike | None = None,
        validation: tuple[Features, BehaviorStats] | Observations | None = None,
        warm_start: bool = False,
    ) -> Self:
        """Learn the prior from rows of any number of queries and what users did with them.

        `groups` says which rows belong to one query, with the same number for each. How strongly
        to regularize is decided by rows that are held out: each fifth of the queries in turn. If
        there are fewer than ten queries, or none are given, single rows are held out.

        `items` names the item of each row, by any value. If items occur in several queries, `auto`
        learns how much they have in common there that the features do not say (see `elsewhere`).

        With `validation` rows, these decide instead, and when to stop; they may have groups of
        their own (`ebrank.model.prior.rows.Observations`). None of them is learned from.

        With `warm_start`, the fit continues from the last one.
        """
        start = self.state_ if warm_start else None
        self.state_ = fitting.fit(
            self.policy.prior,
            _table(features, behavior, groups, items),
            None if validation is None else _table(*validation),
            self.examination,
            start,
            self.threads,
        )
        return self

    def elsewhere(
        self, features: Features, behavior: BehaviorStats, items: npt.ArrayLike
    ) -> Elsewhere | None:
        """Return the evidence about the item of each row from rows of other queries.

        Give all rows of all queries, as for `fit`, and `rank` the part of a query's candidates:
        `elsewhere.rows(candidates)`. None of a query's own clicks are in it, so they do not count
        twice. None if items have nothing in common that helps, or the policy does not share.

        It costs one pass over all rows, without a fit, so it may follow the log more often.
        """
        table = _table(features, behavior, None, items)
        return self.policy.prior.elsewhere(self.state_, table, self.examination, self.threads)

    @property
    def curve(self) -> Examination:
        """How far down users look: learned if the policy learns it, otherwise as given."""
        return self._cached[0]

    def scores(self, behavior: BehaviorStats) -> Scores:
        """Return how items with such behavior are scored."""
        return self._scoring(behavior)[1]

    @property
    def _cached(self) -> tuple[Examination, dict[tuple[Any, ...], _Scoring]]:
        """The curve, and what follows from it and the state; computed once per state."""
        if self._derived is None or self._derived[0] is not self.state_:
            self._derived = self.state_, self.policy.prior.curve(self.state_, self.examination), {}
        curve, scoring = self._derived[1:]
        return curve, scoring

    def _scoring(self, behavior: BehaviorStats) -> _Scoring:
        """Return what the counts are worth, and how items are scored."""
        curve, cached = self._cached
        key = behavior.counts.shape[2], behavior.behaviors
        scoring = cached.get(key)
        if scoring is None:
            valuation = behavior.valuation(curve)
            scores = self.policy.scores(self.state_, valuation)
            names = scores.both.formula.parameters if self.policy.plans else ()
            place = names.index(HORIZON) if HORIZON in names else None
            scoring = cached[key] = _Scoring(valuation, scores, place)
        return scoring

    def rank(
        self,
        features: Features,
        behavior: BehaviorStats,
        k: int | None = None,
        *,
        tie_keys: npt.ArrayLike | None = None,
        lists: float | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> Ranking:
        """Return the k best candidates of one query (all of them by default).

        `lists` is H, how many more lists of the query to plan for, such as
        `bonus.horizon.lists_ahead` of those it has had; 50 by default. A policy with a horizon
        explores more if there are more; one whose horizon is given, or that has none, ignores it.

        `tie_keys` order equal scores, lowest first: one number per candidate, or by default a
        seeded random key for each position. A policy that samples derives its draws from the same
        keys, so give new keys for each list.

        `elsewhere` is the evidence about the candidates from other queries.
        """
        _check_lengths(features, behavior)
        check_whole("k", k, at_least=1, optional=True)
        keys = draws = None
        if tie_keys is not None:
            keys = np.asarray(tie_keys)
            require(keys.shape == (len(behavior),), "tie_keys must hold one key per candidate")
            draws = _draw_keys(keys) if self.policy.noisy else None
        if lists is not None:
            check_number("lists", lists, at_least=0)
        if elsewhere is not None:
            require(self.policy.prior.shares, f"{self.policy.name} has no use for `elsewhere`")
            fits = len(elsewhere.effect) == len(behavior)
            require(fits, "`elsewhere` is not of these candidates")
        ranking = self.ranked(
            self.prior(features),
            behavior,
            keys,
            draws,
            lists=lists,
            elsewhere=elsewhere,
        )
        return ranking if k is None else Ranking(ranking.order[:k], ranking.candidates)

    def prior(self, features: Features) -> ItemPrior:
        """Return the prior of one query's candidates, from their features alone, scaled."""
        scaled = features if self.scaling is None else self.scaling(features)
        return self.policy.prior.of_items(self.state_, scaled, self.threads)

    def ranked(
        self,
        prior: ItemPrior,
        behavior: BehaviorStats,
        keys: npt.NDArray[Any] | None = None,
        draws: Keys | None = None,
        lists: float | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> Ranking:
        """Return what `rank` returns, given the prior, which changes far less often than behavior.

        Nothing is checked: the arrays fit together. Where keys are given, a policy that samples
        needs those of its draws.
        """
        from ebrank.model.scoring import best_first, score_pairs  # Numba takes a while

        if keys is None:  # random ones that stay with the position, however many candidates
            keys = np.random.PCG64(self.seed).random_raw(len(behavior))
            draws = keys if draws is None and self.policy.noisy else draws
        valuation, scores, horizon = self._scoring(behavior)
        parameters = scores.both.parameters
        if lists is not None and horizon is not None:
            parameters = parameters.copy()
            parameters[horizon] = lists
        counts, by_features = behavior.counts, prior
        if elsewhere is not None:
            prior = ItemPrior(prior.a + elsewhere.effect, prior.b)
        total, relevance = score_pairs(scores.both, parameters, prior, counts, valuation, draws)
        details = Candidates(
            self.policy,
            scores,
            prior,
            behavior,
            self.curve,
            relevance,
            total,
            by_features,
            elsewhere,
        )
        return Ranking(best_first(total, keys), details)

    def losses(
        self, features: Features, behavior: BehaviorStats, items: npt.ArrayLike | None = None
    ) -> Floats:
        """Return the loss of the prior for each row: lower is better.

        The loss is the negative log of the probability that the prior assigns to what users did; it
        is not a number for rows that were not shown. As for `fit`, the rows must be scaled.
        """
        table = _table(features, behavior, None, items)
        return self.policy.prior.losses(self.state_, table, self.examination, self.threads)

    def held_out_losses(
        self,
        features: Features,
        behavior: BehaviorStats,
        groups: Ints | None = None,
        items: npt.ArrayLike | None = None,
    ) -> Floats:
        """Return the loss of each row under this prior, refitted to the rows of other queries.

        So it says how good the prior is for queries that it has not seen. Each fifth of the queries
        is held out in turn; see `fit` for `groups` and `items`.
        """
        require(self.state_ is not None, "fit the prior first")
        table = _table(features, behavior, groups, items)
        return fitting.held_out_losses(
            self.policy.prior, table, self.examination, self.state_ or {}, self.threads
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker to one JSON file, replacing it atomically."""
        from ebrank.model.policy import model_file

        model_file.write(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, allow: Iterable[str] = ()) -> EBRanker:
        """Read a ranker from a file written by `save`. Nothing in the file is executed.

        `allow` lists your own parts that the file may use, as `module:Class`.
        """
        from ebrank.model.policy import model_file

        return model_file.read(path, allow=allow)

    def __getstate__(self) -> dict[str, Any]:
        """Copy and pickle without derived values."""
        return {**self.__dict__, "_derived": None}

    def __repr__(self) -> str:
        shown = [repr(str(self.policy))]
        if self.examination != Examination():
            shown.append(f"examination={self.examination!r}")
        shown += [
            f"{name}={value!r}"
            for name, value in (("scaling", self.scaling), ("seed", self.seed))
            if value
        ]
        return f"EBRanker({', '.join(shown)})"


def _check_lengths(features: Features, behavior: BehaviorStats) -> None:
    if len(features) != len(behavior):
        raise ParameterError(f"{len(features)} rows of features, but behavior for {len(behavior)}")


def _table(
    features: Features,
    behavior: BehaviorStats,
    groups: Ints | None = None,
    items: npt.ArrayLike | None = None,
) -> Observations:
    _check_lengths(features, behavior)

    def numbered(name: str, values: npt.ArrayLike | None) -> Ints | None:
        if values is None:
            return None
        given = np.asarray(values)
        require(given.shape == (len(behavior),), f"{name} must hold one value per row")
        return _numbered(name, given)

    return Observations(features, behavior, numbered("groups", groups), numbered("items", items))


def _numbered(name: str, values: npt.NDArray[Any]) -> Ints:
    """Return the place of each value among the different ones, in ascending order."""
    missing = values != values  # NaN
    require(not missing.any(), f"{name} has no value in row {np.argmax(missing)}")
    if values.dtype == np.int64 and len(values) and 0 <= values.min() <= values.max() < len(values):
        present = np.bincount(values) > 0  # sorting takes longer
        places: Ints = np.cumsum(present) - 1
        numbers: Ints = places[values]
    else:
        try:
            numbers = np.unique(values, return_inverse=True)[1]
        except TypeError:
            raise ParameterError(
                f"{name} must be all texts or all numbers, and none may be missing"
            ) from None
    return numbers


def _draw_keys(keys: npt.NDArray[Any]) -> Keys:
    """Return keys of draws that differ if the tie keys do, whether these are whole or not."""
    whole = np.issubdtype(keys.dtype, np.integer)
    return keys.astype(np.uint64) if whole else keys.astype(np.float64).view(np.uint64)
