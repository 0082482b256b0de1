"""Folds pooled: one result of each ranker over the test queries of all folds.

In a dataset of folds each query is a test query once. So the folds' test queries make one sample,
and that is what a test of significance is over. A ranker learns in each fold from that fold's
training queries alone, and its trial i in one fold goes with its trial i in the others:

- Cold- and Warm-NDCG of a trial are means over the test queries of all folds;
- Cum- and Run-NDCG are means over folds, and what a query adds to its fold's, divided by the number
  of folds, is what it adds to the pooled one;
- the spread is that of the pooled trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ebrank.errors import DataError, ParameterError
from ebrank.simulation.result import Result, TrialResult
from ebrank.typing import Floats, Texts


def check_disjoint(test_queries: Sequence[Texts]) -> None:
    """Raise if a query, by its id, is a test query of two folds, since it would count twice."""
    seen: set[str] = set()
    for ids in test_queries:
        twice = seen.intersection(ids.tolist())
        if twice:
            raise DataError(
                f"query {min(twice)} is a test query of two folds, and would count twice",
                remedy="Choose one fold with --fold.",
            )
        seen.update(ids.tolist())


def pooled(by_fold: Sequence[Result]) -> Result:
    """Return one ranker's results over all folds, trial by trial."""
    first = by_fold[0]
    if len({(result.ranker, result.seed, len(result.trials)) for result in by_fold}) > 1:
        raise ParameterError("folds are pooled of one ranker, seed and number of trials")
    trials = zip(*(result.trials for result in by_fold), strict=True)
    name = f"{first.dataset}, {len(by_fold)} folds"
    return replace(first, dataset=name, trials=tuple(map(_pooled, trials)))


def _pooled(folds: Sequence[TrialResult]) -> TrialResult:
    """Return the same trial of all folds as one."""
    queries = np.array([len(fold.cold_by_query) for fold in folds])
    shares = queries / queries.sum()
    offsets = np.cumsum([0, *(1 + int(fold.test_queries.max(initial=-1)) for fold in folds)])
    return replace(
        folds[0],
        sessions=np.sum([fold.sessions for fold in folds], axis=0),
        cold_ndcg=_weighted([fold.cold_ndcg for fold in folds], shares),
        warm_ndcg=_weighted([fold.warm_ndcg for fold in folds], shares),
        cum_ndcg=np.mean([fold.cum_ndcg for fold in folds], axis=0),
        run_ndcg=np.mean([fold.run_ndcg for fold in folds], axis=0),
        cold_by_query=np.concatenate([fold.cold_by_query for fold in folds]),
        warm_by_query=np.concatenate([fold.warm_by_query for fold in folds]),
        cum_by_query=np.concatenate([fold.cum_by_query for fold in folds]) / len(folds),
        run_by_query=np.concatenate([fold.run_by_query for fold in folds]) / len(folds),
        test_queries=np.concatenate(
            [fold.test_queries + offset for fold, offset in zip(folds, offsets, strict=False)]
        ),
        test_ndcg=np.concatenate([fold.test_ndcg for fold in folds]),
        validation_ndcg=float(np.mean([fold.validation_ndcg for fold in folds])),
        seconds=sum(fold.seconds for fold in folds),
        serving_seconds=sum(fold.serving_seconds for fold in folds),
        learning_seconds=sum(fold.learning_seconds for fold in folds),
    )


def _weighted(values: Sequence[Floats], shares: Floats) -> Floats:
    return np.asarray(np.tensordot(shares, np.array(values), axes=1))
