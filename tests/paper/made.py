"""Results made by hand, so that who is better, and how surely, is known beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import Result, TrialResult, about_config
from ebrank.paper.framework.display import Cell
from ebrank.paper.framework.runner import (
    FinishedDataset,
    ReproductionPlan,
    Watch,
    run_folds,
)

QUERIES = 40
CONFIG = SimulationConfig(updates=2)


def trial(
    cold: float, warm: float, served: float, noise: float, seed: int, queries: int
) -> TrialResult:
    """Return a trial with these figures on every test query, up to noise with mean zero."""
    weights = np.asarray(CONFIG.discount ** np.arange(queries - 1.0, -1.0, -1.0))
    rng = np.random.default_rng(seed)
    half = rng.uniform(-noise, noise, (3, queries // 2))
    around = np.concatenate([half, -half], axis=1)
    cold_by_query, warm_by_query, test_ndcg = np.array([[cold], [warm], [served]]) + around
    others: dict[str, Any] = dict.fromkeys(("wait_shown", "wait_top", "watched"), np.zeros(0, int))
    others |= dict.fromkeys(("cold_lists", "warm_lists"), np.zeros((queries, 1), np.int64))
    others |= dict.fromkeys(("serving_seconds", "learning_seconds", "validation_ndcg"), 0.5)
    return TrialResult(
        sessions=np.array([50, 100]),
        cold_ndcg=np.array([[cold / 2], [cold]]),
        warm_ndcg=np.array([[warm / 2], [warm]]),
        cum_ndcg=np.array([served * 10, float((weights * test_ndcg).sum())]),
        run_ndcg=np.array([served / 2, test_ndcg.mean()]),
        cold_ndcg_labels=cold - 0.1,
        warm_ndcg_labels=warm - 0.1,
        run_ndcg_labels=served - 0.1,
        cold_by_query=cold_by_query,
        warm_by_query=warm_by_query,
        cum_by_query=weights * test_ndcg,
        run_by_query=test_ndcg / queries,
        test_queries=np.arange(queries),
        test_ndcg=test_ndcg,
        calibration=None,
        weights=None,
        seconds=1.0,
        **others,
    )


def result(
    text: str,
    figures: Sequence[tuple[float, float, float]],
    *,
    noise: float = 0.0,
    seed: int = 0,
    queries: int = QUERIES,
) -> Result:
    """Return a result with a trial for each (cold, warm, served)."""
    trials = tuple(trial(*each, noise, seed + n, queries) for n, each in enumerate(figures))
    return Result("made", str(registry.parse(text)), about_config(CONFIG), 0, trials)


def sure(text: str, cold: float, warm: float, served: float, seed: int = 0) -> Result:
    """Return a result of two trials with so little noise that queries agree."""
    return result(text, [(cold, warm, served)] * 2, noise=0.01, seed=seed)


def with_trials(made: Result, **values: Sequence[object]) -> Result:
    """Return a result whose trials have other values, one of each name for each trial."""
    trials = (
        replace(trial, **{name: np.asarray(own[n]) for name, own in values.items()})  # type: ignore[arg-type]
        for n, trial in enumerate(made.trials)
    )
    return replace(made, trials=tuple(trials))


def run_plan(
    plan: ReproductionPlan,
    dataset: Dataset,
    folder: Path,
    jobs: int = 1,
    watch: Watch | None = None,
) -> FinishedDataset:
    """Run a plan on a dataset without folds, and keep trials in a folder."""
    return run_folds(plan, (), lambda place: (dataset, None), folder, jobs=jobs, watch=watch)


def numbers(cells: Iterable[Cell | str]) -> list[float | None]:
    """Return the values of cells, all of which must be numbers."""
    return [cell.value for cell in cells if isinstance(cell, Cell) or pytest.fail(cell)]
