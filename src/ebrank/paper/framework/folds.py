"""Folds: rankers whose parameters differ between them, and their results pooled.

In a dataset with folds, each query is a test query once. So the folds' test queries make one
sample, and significance tests use that sample. In each fold a ranker learns only from that fold's
training queries. Trial i of one fold is pooled with trial i of the others:

- Cold- and Warm-NDCG of a trial are means over the test queries of all folds;
- Cum- and Run-NDCG are means over folds; a query adds to them what it adds to its fold's, divided
  by the number of folds;
- the spread is that of the folds' means over trials: each fold has its own training queries;
- items that waited, and what priors predicted for them, are those of all folds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ebrank.errors import DataError, ParameterError
from ebrank.lab.data.dataset import SPLITS, Dataset
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import METRICS, Result, TrialResult
from ebrank.parameters import listed, to_text, typed
from ebrank.typing import Floats, Texts


@dataclass(frozen=True)
class Fold:
    """What is said of a fold, or of a dataset without folds, once its arrays are gone.

    Attributes:
        name: the dataset's, with the number of the fold.
        number: of the fold, None where there is none or it is unknown.
        queries, rows, features, max_label: its size, prepared.
        splits: its training, validation and test queries.
        sessions: of a trial.
        differences: how its files differ from the published ones, a sentence each.
    """

    name: str
    number: int | None
    queries: int
    rows: int
    features: int
    max_label: int
    splits: tuple[int, ...]
    sessions: int
    differences: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: Dataset, config: SimulationConfig, name: str | None = None) -> Fold:
        """Return what there is to say of a dataset; raise if the config does not fit it."""
        return cls(
            name or dataset.name,
            dataset.fold,
            dataset.n_queries,
            dataset.n_rows,
            dataset.n_features,
            dataset.max_label,
            tuple(len(dataset.queries_in(split)) for split in SPLITS),
            config.session_count(dataset),
            () if dataset.origin is None else dataset.origin.differences,
        )


def check_disjoint(test_queries: Mapping[str, Texts]) -> None:
    """Raise if a query, by its id, is a test query of two folds, since it would count twice."""
    owners: dict[str, str] = {}
    for fold, ids in test_queries.items():
        twice = owners.keys() & set(ids.tolist())
        if twice:
            query = min(twice)
            raise DataError(
                f"query {query} is a test query of {owners[query]} and of {fold}, and would count "
                "twice",
                remedy="Choose one fold with --fold.",
            )
        owners.update(dict.fromkeys(ids.tolist(), fold))


def pooled_name(dataset: str, folds: int) -> str:
    """Return what all folds together are called, given the name of one.

    >>> pooled_name("MQ2008", 5), pooled_name("mine/Fold1", 3)
    ('MQ2008, 5 folds', 'mine, 3 folds')
    """
    return f"{set_name(dataset)}, {folds} folds"


def set_name(dataset: str) -> str:
    """Return a dataset's name without the name of its fold folder."""
    return re.sub(r"(?i)/fold\d+$", "", dataset)


def in_words(numbers: Sequence[int]) -> str:
    """Return the numbers of folds in words.

    >>> in_words([1, 2, 3, 4, 5]), in_words([1, 2]), in_words([1, 3, 4])
    ('folds 1 to 5', 'folds 1 and 2', 'folds 1, 3, and 4')
    """
    if len(numbers) > 2 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"folds {numbers[0]} to {numbers[-1]}"
    return f"folds {listed(list(map(str, numbers)))}"


def pooled(by_fold: Sequence[Result], ranker: str | None = None) -> Result:
    """Return one ranker's results over all folds, trial by trial.

    If its parameters differ from fold to fold, `ranker` says what it is called.
    """
    first = by_fold[0]
    same = {(ranker or result.ranker, result.seed, len(result.trials)) for result in by_fold}
    if len(same) > 1:
        raise ParameterError("pooled folds must have the same ranker, seed and number of trials")
    trials = zip(*(result.trials for result in by_fold), strict=True)
    return replace(
        first,
        dataset=pooled_name(first.dataset, len(by_fold)),
        ranker=ranker or first.ranker,
        trials=tuple(map(_pooled, trials)),
        by_fold={
            metric: np.array([getattr(result, metric).mean() for result in by_fold])
            for metric in METRICS
        },
    )


JOINED = (
    *("cold_by_query", "warm_by_query", "test_ndcg"),
    *("wait_shown", "wait_top", "watched"),
)
AVERAGED = ("cum_ndcg", "run_ndcg", "run_ndcg_labels", "validation_ndcg")
SUMMED = ("sessions", "seconds", "serving_seconds", "learning_seconds")
"""How the other parts of a trial are pooled; `_pooled` has those with a rule of their own."""


def _pooled(folds: Sequence[TrialResult]) -> TrialResult:
    """Return the same trial of all folds as one."""

    def values(name: str) -> list[Any]:
        each = (getattr(fold, name) for fold in folds)
        return [own for own in each if own is not None]

    queries = np.array([len(fold.cold_by_query) for fold in folds])
    shares = queries / queries.sum()
    offsets = np.cumsum([0, *(1 + int(fold.test_queries.max(initial=-1)) for fold in folds)])
    pooled: dict[str, Any] = {name: np.concatenate(values(name)) for name in JOINED}
    pooled |= {name: sum(values(name)) for name in SUMMED}
    pooled |= {name: np.mean(values(name), axis=0) for name in AVERAGED}
    for name in ("cold_ndcg", "warm_ndcg"):
        pooled[name] = np.tensordot(shares, np.array(values(name)), axes=1)
        pooled[f"{name}_labels"] = float(shares @ values(f"{name}_labels"))
    for name in ("cum_by_query", "run_by_query"):
        pooled[name] = np.concatenate(values(name)) / len(folds)
    for name in ("cold_lists", "warm_lists"):
        pooled[name] = np.zeros((queries.sum(), 0), np.int64)  # rows of datasets that differ
    numbers = zip(values("test_queries"), offsets, strict=False)
    return TrialResult(
        **pooled,
        test_queries=np.concatenate([own + offset for own, offset in numbers]),
        calibration=np.concatenate(found) if (found := values("calibration")) else None,
        weights=_stacked(values("weights")),
        shares=np.mean(own, axis=0) if (own := values("shares")) else None,
    )


def _stacked(weights: Sequence[Floats]) -> Floats | None:
    """Return a row of weights for each fold; zeros come first where one has fewer features."""
    if not weights:
        return None
    most = max(map(len, weights))
    return np.array([np.pad(own, (most - len(own), 0)) for own in weights])


# --- rankers by fold -----------------------------------------------------------------------------


@dataclass(frozen=True)
class RankerByFold:
    """Rankers of one class, one for each fold, as choosing parameters in each fold makes them.

    Its text has the values in the order of the folds:

    >>> from ebrank.lab.rankers import registry
    >>> tuned = by_fold([registry.parse(f"ebrank:epsilon={value},beta=2") for value in (20, 5)])
    >>> print(tuned)
    ebrank:epsilon=20/5,beta=2
    >>> print(in_fold(tuned, 1))
    ebrank:epsilon=5,beta=2

    What is the same in all folds is a plain ranker:

    >>> print(tuned.with_parameters(epsilon=0.0))
    ebrank:epsilon=0,beta=2
    """

    rankers: tuple[Ranker, ...]

    def value(self, name: str) -> Any:  # noqa: ANN401 (of the parameter's type)
        """Return the value of a parameter; as a text, such as `20/5`, if it is not the same."""
        values = [ranker.value(name) for ranker in self.rankers]
        if len(set(values)) == 1:
            return values[0]
        return "/".join(map(typed, values))

    def with_parameters(self, **changes: Any) -> AnyRanker:  # noqa: ANN401 (of any type)
        """Return the same ranker with some parameters changed in all folds."""
        return by_fold([ranker.with_parameters(**changes) for ranker in self.rankers])

    def __str__(self) -> str:
        """Return a text such as `ebrank:epsilon=20/5`."""
        first = self.rankers[0]
        return to_text(first.called, first.parameters(), self.value)


AnyRanker: TypeAlias = Ranker | RankerByFold


def by_fold(rankers: Sequence[Ranker]) -> AnyRanker:
    """Return what runs in each fold, as one; a plain ranker if it is the same in all."""
    return rankers[0] if len(set(rankers)) == 1 else RankerByFold(tuple(rankers))


def in_fold(ranker: AnyRanker, place: int) -> Ranker:
    """Return what runs in the fold at a place in their order, from 0."""
    return ranker.rankers[place] if isinstance(ranker, RankerByFold) else ranker
