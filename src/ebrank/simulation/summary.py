"""Results as plain objects, for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from ebrank.data.dataset import Dataset
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.result import Result

LABELS = ("cold_ndcg_labels", "warm_ndcg_labels", "run_ndcg_labels")
"""The measures with standard gains, 2^label − 1."""
METRICS = ("cold_ndcg", "warm_ndcg", "cum_ndcg", "run_ndcg", *LABELS)


def summary(result: Result) -> dict[str, Any]:
    """Return the measures of a simulation, and the run time of all trials without compilation."""
    return measured(result) | {"seconds": result.seconds}


def measured(result: Result) -> dict[str, Any]:
    """Return the measures of a simulation, the same on every machine; None without a trial.

    Run-NDCG is None, too, if no test query was served. `sessions` are those of one trial.
    """
    return {
        **{metric: _over_trials(result, metric) for metric in METRICS},
        "sessions": int(result.trials[0].sessions[-1]) if result.trials else None,
    }


def _over_trials(result: Result, metric: str) -> dict[str, Any]:
    values = getattr(result, metric)
    finite = len(values) > 0 and bool(np.isfinite(values).all())
    folds = {"folds": _finite(result.by_fold[metric])} if result.by_fold else {}
    mean = float(values.mean()) if finite else None
    return {"mean": mean, "trials": _finite(values)} | folds


def _finite(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]


def spread(values: npt.NDArray[np.float64]) -> float | None:
    """Return the standard deviation, None for a single value."""
    return float(values.std(ddof=1)) if len(values) > 1 else None


def about_dataset(dataset: Dataset) -> dict[str, Any]:
    """Return a dataset's name, its fold, if any, and its size."""
    return {
        "name": dataset.name,
        "fold": dataset.fold,
        "queries": dataset.n_queries,
        "rows": dataset.n_rows,
        "features": dataset.n_features,
    }


def about_config(config: SimulationConfig) -> dict[str, Any]:
    """Return an experiment's numbers; users as text."""
    return asdict(config) | {"users": str(config.users)}
