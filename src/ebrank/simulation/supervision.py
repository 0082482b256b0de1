"""A learner under supervision: what it hands over is checked before compiled code reads it.

Kernels index a model's arrays without looking at their lengths, so a model with too few scores
would be read beyond its end. A ranker from elsewhere that fails is told of by its name; one of
ebrank's own that fails has a bug, and its error is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ebrank.data.dataset import Dataset
from ebrank.errors import EBRankError, ParameterError
from ebrank.formula import Score
from ebrank.rankers.base import REGISTRY, Ranker, Trial, TrialLearner
from ebrank.rankers.dbgd import DuelModel
from ebrank.rankers.model import ScoreModel
from ebrank.rankers.online import LoggingModel, OnlineModel


class Supervised:
    """A ranker's learner in one trial."""

    def __init__(self, ranker: Ranker, trial: Trial) -> None:
        self._ranker = ranker
        self._dataset = trial.dataset
        with _told(ranker):
            self._learner: TrialLearner = ranker.learner(trial)

    def update(self) -> ScoreModel:
        """Return the learner's next model.

        Raises:
            ParameterError: if the learner fails, or its model is none for the dataset.
        """
        with _told(self._ranker):
            model = self._learner.update()
        try:
            check_model(model, self._dataset)
        except ParameterError as problem:
            raise ParameterError(f"{self._ranker}: {problem}") from problem.__cause__
        return model


@contextmanager
def _told(ranker: Ranker) -> Iterator[None]:
    """Say which ranker from elsewhere failed, and how."""
    try:
        yield
    except EBRankError:
        raise
    except Exception as problem:
        if type(ranker) in REGISTRY.values():
            raise
        told = f"{ranker} failed while learning: {type(problem).__name__}: {problem}"
        raise ParameterError(told) from problem


def check_model(model: object, dataset: Dataset) -> None:
    """Raise where a model is none for a dataset.

    >>> import ebrank
    >>> from ebrank.rankers.bm25 import fixed_model
    >>> check_model(fixed_model(np.ones(3)), ebrank.load("mq2007-like", scale=0.01))
    Traceback (most recent call last):
    ebrank.errors.ParameterError: 3 scores for 679 rows
    """
    if not isinstance(model, ScoreModel):
        raise ParameterError(f"update returns {type(model).__name__}, not a ScoreModel")
    n = dataset.n_rows
    _Numbers("a", "scores", model.a).check(n)
    _Numbers("b", "second numbers", model.b).check(n, or_one=True)
    if model.prior is not None:
        _Numbers("prior.a", "first numbers", model.prior.a).check(n)
        _Numbers("prior.b", "second numbers", model.prior.b).check(n, or_one=True)
    if model.weights is not None:
        _Numbers("weights", "weights", model.weights).check(np.size(model.weights))
    _check_score("serve", model.serve)
    _check_score("offline", model.offline)
    if model.cold is not None:
        _check_score("cold", model.cold)
    if isinstance(model, OnlineModel):
        _check_logging_model(model.linear, dataset)
    if isinstance(model, DuelModel) and model.candidates < 1:
        raise ParameterError("candidates must be 1 or more")


@dataclass(frozen=True)
class _Numbers:
    """What should be finite numbers: where they stand, and what they are called."""

    name: str
    called: str
    values: object

    def check(self, rows: int, *, or_one: bool = False) -> None:
        """Raise where there is not one for each row, or, if that will do, one for all."""
        values = self.values
        if not (isinstance(values, np.ndarray) and values.dtype == np.float64 and values.ndim == 1):
            raise ParameterError(f"{self.name} must be a NumPy array of float64, with one axis")
        if len(values) != rows and not (or_one and len(values) == 1):
            raise ParameterError(f"{len(values)} {self.called} for {rows} rows")
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise ParameterError(f"{self.name}[{row}] is {values[row]}, not a finite number")


def _check_score(name: str, score: object) -> None:
    """Raise where a score is none, has parameters that are not finite, or cannot be compiled."""
    if not isinstance(score, Score):
        raise ParameterError(
            f"{name} must be a Score, as Formula.bind returns, not {type(score).__name__}"
        )
    if not np.isfinite(score.parameters).all():
        raise ParameterError(f"the parameters of {name} must be finite numbers")
    try:
        score.compiled  # noqa: B018 (it is kept)
    except EBRankError:
        raise
    except Exception as problem:
        told = f"its formula {name} cannot be compiled: {_reason(problem)}"
        raise ParameterError(told) from problem


def _reason(problem: Exception) -> str:
    """Return in a line why something cannot be compiled; Numba's innermost reason comes last."""
    said = str(problem).rpartition("(step: nopython frontend)")[2].strip()
    return said.partition("\n")[0] or type(problem).__name__


def _check_logging_model(linear: LoggingModel, dataset: Dataset) -> None:
    _Numbers("linear.scores", "scores of the logging model", linear.scores).check(dataset.n_rows)
    if linear.features.ndim != 2 or len(linear.features) != dataset.n_rows:
        raise ParameterError(
            f"linear.features has shape {linear.features.shape} for {dataset.n_rows} rows"
        )
    if linear.learns.shape != (dataset.n_queries,):
        raise ParameterError(
            f"linear.learns has shape {linear.learns.shape} for {dataset.n_queries} queries"
        )
