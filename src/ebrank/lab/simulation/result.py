"""What a simulation measured, trial by trial, and the same as plain objects, for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ebrank.lab.data.dataset import Dataset
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.typing import Floats, Ints


@dataclass(frozen=True, eq=False)
class TrialResult:
    """One trial. Rows of the checkpoint arrays are model updates, columns the config's cutoffs.

    Attributes:
        sessions: served sessions at each checkpoint, shape (updates,).
        cold_ndcg: mean NDCG of test queries as if nobody had clicked, shape (updates, cutoffs).
        warm_ndcg: the same with the behavior so far.
        cum_ndcg: discounted sum of the NDCG of the lists served to test queries, shape (updates,).
        run_ndcg: mean NDCG of all lists served to test queries so far, NaN before the first one,
            shape (updates,).
        cold_ndcg_labels, warm_ndcg_labels, run_ndcg_labels: Cold-, Warm- and Run-NDCG at the last
            checkpoint with standard gains, 2^label − 1, instead of the relevance R.
        cold_by_query, warm_by_query: NDCG of each test query, first cutoff, last checkpoint.
        cum_by_query, run_by_query: what each test query adds to Cum- and Run-NDCG at the last
            checkpoint.
        test_queries: query served at each session on a test query, in order of time.
        test_ndcg: NDCG of the list it was served.
        validation_ndcg: mean NDCG of the lists of validation queries in the second half of the run;
            NaN if there were none.
        wait_shown, wait_top, watched: ages of each test query's most relevant items (those with the
            dataset's highest grade) that entered while serving, in sessions of the query since the
            item entered: at its first impression; at the first model update that ranks it, without
            exploration, among the best `list_length` (there is no check between updates, so even a
            ranker that never learns seems to wait); and at the end. −1 for what never happened.
            Shape (items,).
        calibration: what the model's Beta prior predicted halfway through for test queries' items
            that nobody had seen by then but somebody saw later, and what happened: α, β, clicks,
            exposure and true click probability, shape (items, 5); None without such a prior.
        cold_lists, warm_lists: rows of the dataset that the last model ranks first for each test
            query, without and with behavior; −1 where there are no more. Shape (queries, ranks).
        weights: the last linear model's weights; x^b, if used, is last; None for other models. For
            pooled folds, a row for each.
        shares: where queries share the items of a catalog, the parts of all achievable clicks that
            lists got, in the order of `SHARES`; None elsewhere. Shape (5,).
        seconds: run time without compilation.
        serving_seconds: of these, for the served sessions alone.
        learning_seconds: of these, for fitting models and scoring items with them.
    """

    sessions: Ints
    cold_ndcg: Floats
    warm_ndcg: Floats
    cum_ndcg: Floats
    run_ndcg: Floats
    cold_ndcg_labels: float
    warm_ndcg_labels: float
    run_ndcg_labels: float
    cold_by_query: Floats
    warm_by_query: Floats
    cum_by_query: Floats
    run_by_query: Floats
    test_queries: Ints
    test_ndcg: Floats
    validation_ndcg: float
    wait_shown: Ints
    wait_top: Ints
    watched: Ints
    calibration: Floats | None
    cold_lists: Ints
    warm_lists: Ints
    weights: Floats | None
    seconds: float
    serving_seconds: float
    learning_seconds: float
    shares: Floats | None = None


@dataclass(frozen=True, eq=False)
class Result:
    """Several trials of one ranker on one dataset.

    Attributes:
        config: the simulation, as `about_config` returns it.
        by_fold: if folds are pooled, the mean over trials in each fold, by measure; else empty.
    """

    dataset: str
    ranker: str
    config: Mapping[str, Any]
    seed: int
    trials: tuple[TrialResult, ...]
    by_fold: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def cold_ndcg(self) -> Floats:
        """Cold-NDCG of each trial at the last checkpoint."""
        return np.array([trial.cold_ndcg[-1, 0] for trial in self.trials])

    @property
    def warm_ndcg(self) -> Floats:
        """Warm-NDCG of each trial at the last checkpoint."""
        return np.array([trial.warm_ndcg[-1, 0] for trial in self.trials])

    @property
    def cum_ndcg(self) -> Floats:
        """Cum-NDCG of each trial at the last checkpoint."""
        return np.array([trial.cum_ndcg[-1] for trial in self.trials])

    @property
    def run_ndcg(self) -> Floats:
        """Run-NDCG of each trial at the last checkpoint."""
        return np.array([trial.run_ndcg[-1] for trial in self.trials])

    @property
    def cold_ndcg_labels(self) -> Floats:
        """Cold-NDCG by labels of each trial."""
        return np.array([trial.cold_ndcg_labels for trial in self.trials])

    @property
    def warm_ndcg_labels(self) -> Floats:
        """Warm-NDCG by labels of each trial."""
        return np.array([trial.warm_ndcg_labels for trial in self.trials])

    @property
    def run_ndcg_labels(self) -> Floats:
        """Run-NDCG by labels of each trial."""
        return np.array([trial.run_ndcg_labels for trial in self.trials])

    @property
    def shares(self) -> Floats | None:
        """Shares of all achievable clicks, shape (trials, 5); None without a catalog."""
        each = [trial.shares for trial in self.trials if trial.shares is not None]
        return np.array(each) if each else None

    @property
    def unserved(self) -> int:
        """Trials that served no test query, in one of their folds if there are several."""
        return int(np.isnan(self.run_ndcg).sum())

    @property
    def seconds(self) -> float:
        """Run time of all trials without compilation."""
        return sum(trial.seconds for trial in self.trials)


# --- plain objects -------------------------------------------------------------------------------

LABELS = ("cold_ndcg_labels", "warm_ndcg_labels", "run_ndcg_labels")
"""The measures with standard gains, 2^label − 1."""
SHARES = ("all", "rare", "head", "first", "late")
"""Of which lists: all; those of rare queries, with fewer than 30 lists in the run; of head queries,
with more than 150; the first 20 of every query; of all lists, what goes to items that came later.
"""
METRICS = ("cold_ndcg", "warm_ndcg", "cum_ndcg", "run_ndcg", *LABELS)


def summary(result: Result) -> dict[str, Any]:
    """Return the measures of a simulation, and the run time of all trials without compilation."""
    return measured(result) | {"seconds": result.seconds}


def measured(result: Result) -> dict[str, Any]:
    """Return the measures of a simulation, the same on every machine; None without a trial.

    Run-NDCG is None, too, if no test query was served. `sessions` are those of one trial. Shares
    of all achievable clicks, by name, are there where queries share a catalog.
    """
    measures = {
        **{metric: _over_trials(result, metric) for metric in METRICS},
        "sessions": int(result.trials[0].sessions[-1]) if result.trials else None,
    }
    if result.shares is not None:
        measures["shares"] = dict(zip(SHARES, map(_finite, result.shares.T), strict=True))
    return measures


def _over_trials(result: Result, metric: str) -> dict[str, Any]:
    values = getattr(result, metric)
    finite = len(values) > 0 and bool(np.isfinite(values).all())
    folds = {"folds": _finite(result.by_fold[metric])} if result.by_fold else {}
    mean = float(values.mean()) if finite else None
    return {"mean": mean, "trials": _finite(values)} | folds


def _finite(values: Floats) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]


def spread(values: Floats) -> float | None:
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
