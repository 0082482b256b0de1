"""Compile before the clock starts: a tiny run through the same code as the real one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import event

from ebrank.compiled import is_kernel
from ebrank.data.dataset import SPLITS, Dataset
from ebrank.errors import EBRankError
from ebrank.rankers.base import Ranker
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import run_trial

QUERIES_PER_SPLIT = 2


def compile_for(dataset: Dataset, rankers: Iterable[Ranker], config: SimulationConfig) -> None:
    """Compile or load every kernel that these rankers need on this dataset."""
    small = few_queries(dataset, QUERIES_PER_SPLIT)
    short = replace(
        config,
        sessions=4 * small.n_queries,
        updates=2,
        warmup_sessions=min(config.warmup_sessions, 2),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about a run this small mean nothing
        for ranker in rankers:
            with suppress(EBRankError):  # the trial itself will fail with the same error
                run_trial(small, ranker, short, seed=0, trial=0, threads=1)


def few_queries(dataset: Dataset, per_split: int) -> Dataset:
    """Return the first queries of each split of a dataset, as a dataset."""
    chosen = np.sort(np.concatenate([dataset.queries_in(split)[:per_split] for split in SPLITS]))
    rows = np.concatenate(
        [np.arange(dataset.query_pointers[q], dataset.query_pointers[q + 1]) for q in chosen]
    )
    return replace(
        dataset,
        features=dataset.features[rows],
        labels=dataset.labels[rows],
        query_pointers=np.concatenate(([0], np.cumsum(dataset.candidates[chosen]))),
        query_ids=dataset.query_ids[chosen],
        query_splits=dataset.query_splits[chosen],
        baseline=dataset.baseline[rows],
    )


class _Listener(event.Listener):  # type: ignore[misc, unused-ignore]
    """Reports the first kernel that is compiled.

    Small functions without a cache are compiled in every process; that takes hardly any time.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._told = False

    def on_start(self, event: Any) -> None:  # noqa: ANN401 (Numba's own type)
        if not self._told and is_kernel(event.data["dispatcher"]):
            self._told = True
            self._tell()

    def on_end(self, event: Any) -> None:  # noqa: ANN401
        pass


@contextmanager
def watched(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` once if, within this context, a kernel is not cached and must be compiled."""
    with event.install_listener("numba:compile", _Listener(tell)):
        yield
