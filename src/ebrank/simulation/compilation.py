"""Compile before the clock starts: a tiny run through the same code as the real one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

import numpy as np

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
