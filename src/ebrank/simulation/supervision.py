"""A learner under supervision: what it hands over is checked before compiled code reads it.

Kernels index a model's arrays without looking at their lengths, so a model with too few scores
would be read beyond its end. A ranker from elsewhere that fails is told of by its name; one of
ebrank's own that fails has a bug, and its error is left as it is.

Every score must be a finite number: NaN is neither above nor below any other. Nobody can try a
formula on every state that an item may come to, so this is checked twice:

- before a formula is first used, for up to 16 rows, those with the lowest and highest `a` and `b`
  among them, on a few states: as they are now, never shown, shown once at each rank without a click
  and with one, shown a thousand times without a click and with one each time (`check_scores`);
- in the sessions themselves and in the measurements, for every score that is used. Kernels raise
  `FloatingPointError`, and `Supervised.watching` says of which formula and item, if it can still
  be found: counts go on changing until a kernel ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ebrank.behavior import BehaviorStats
from ebrank.data.dataset import Dataset
from ebrank.errors import EBRankError, ParameterError
from ebrank.rankers.base import REGISTRY, Learner, Ranker, Trial
from ebrank.rankers.dbgd import DuelModel
from ebrank.rankers.model import PARAMETERS, Formula, Parameters, ScoreModel
from ebrank.rankers.online import LoggingModel, OnlineModel
from ebrank.typing import Floats, Ints

MOST_ROWS = 16
MANY = 1000.0

State = tuple[float, float, float, float]
"""n, c, C and E of an item."""
UNSEEN: State = (0.0, 0.0, 0.0, 0.0)
ITEM_NAMES = ("shown", "clicks", "weighted_clicks", "exposure", "a", "b")


class Supervised:
    """A ranker's learner in one trial; `curve` holds the examination probability of each rank."""

    def __init__(self, ranker: Ranker, trial: Trial, curve: Floats) -> None:
        self._ranker = ranker
        self._dataset = trial.dataset
        self._stats = trial.stats
        self._states = list(reachable(curve))
        self._tried: set[tuple[Formula, Parameters]] = set()
        with _told(ranker):
            self._learner: Learner = ranker.learner(trial)

    def update(self) -> ScoreModel:
        """Return the learner's next model.

        Raises:
            ParameterError: if the learner fails, or its model is none for the dataset.
        """
        with _told(self._ranker):
            model = self._learner.update()
        with self._named():
            check_model(model, self._dataset)
            formulas = {formula[1:] for formula in _formulas(model)}
            if not formulas <= self._tried:
                self._tried |= formulas
                check_scores(model, self._stats, self._states, _telling_rows(model))
        return model

    @contextmanager
    def watching(self, model: ScoreModel) -> Iterator[None]:
        """Say which formula gave a score that is no finite number, while a model is in use."""
        try:
            yield
        except FloatingPointError as problem:
            with self._named():
                check_scores(model, self._stats, [], range(self._dataset.n_rows))
                raise ParameterError(
                    "a formula gave a score that is not a finite number, to an item whose counts "
                    "have changed since"
                ) from problem

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Put the ranker's name before what is wrong with its model."""
        try:
            yield
        except ParameterError as problem:
            raise ParameterError(f"{self._ranker}: {problem}") from problem.__cause__


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
        _Numbers("prior.alpha", "α", model.prior.alpha).check(n)
        _Numbers("prior.beta", "β", model.prior.beta).check(n)
    if model.weights is not None:
        _Numbers("weights", "weights", model.weights).check(np.size(model.weights))
    _check_parameters("serve_parameters", model.serve_parameters)
    _check_parameters("offline_parameters", model.offline_parameters)
    _check_formula("serve", model.serve)
    _check_formula("offline", model.offline)
    if model.cold is not None:
        _check_formula("cold", model.cold)
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


def _check_parameters(name: str, given: object) -> None:
    numbers = isinstance(given, tuple) and all(
        isinstance(one, int | float) and np.isfinite(one) for one in given
    )
    if not (isinstance(given, tuple) and numbers and len(given) == len(PARAMETERS)):
        raise ParameterError(f"{name} must be a tuple of three finite numbers, not {given!r}")


def _check_formula(name: str, formula: object) -> None:
    """Raise where a formula is none, or cannot be compiled."""
    if not isinstance(formula, Formula):
        raise ParameterError(f"{name} must be a Formula, not {type(formula).__name__}")
    try:
        formula.compiled  # noqa: B018 (it is kept)
    except EBRankError:
        raise
    except Exception as problem:
        told = f"its formula {name} cannot be compiled: {_reason(problem)}"
        raise ParameterError(told) from problem


def reachable(curve: Floats) -> Iterator[State]:
    """Yield states that an item may come to, given the examination probability of each rank."""
    yield UNSEEN
    for p in curve[curve > 0.0].tolist():
        yield 1.0, 0.0, 0.0, p
        yield 1.0, 1.0, 1.0 / p, p
        yield MANY, 0.0, 0.0, MANY * p
        yield MANY, MANY, MANY / p, MANY * p


def check_scores(
    model: ScoreModel, stats: BehaviorStats, states: Iterable[State], rows: Iterable[int]
) -> None:
    """Raise where some rows, as they are now or in other states, get scores that are not finite.

    >>> from ebrank.rankers.model import Formula
    >>> rate = Formula(lambda clicks, shown: clicks / shown)
    >>> model = ScoreModel(np.ones(3), np.zeros(1), rate, rate)
    >>> check_scores(model, BehaviorStats.zeros(3), [], [2])
    Traceback (most recent call last):
    ebrank.errors.ParameterError: its formula serve gives nan, not a finite score, to an item with
    shown 0, clicks 0, weighted_clicks 0, exposure 0, a 1, b 0
    """
    columns = stats.shown, stats.clicks, stats.weighted_clicks, stats.exposure
    elsewhere = list(states)
    for name, formula, parameters in _formulas(model):
        score = formula.compiled.ctypes
        for row in rows:
            a, b = float(model.a[row]), float(model.b[min(row, len(model.b) - 1)])
            now = tuple(float(column[row]) for column in columns)
            for state in (UNSEEN,) if name == "cold" else (UNSEEN, now, *elsewhere):
                value = score(a, b, *state, *parameters, row)
                if not math.isfinite(value):
                    raise ParameterError(
                        f"its formula {name} gives {value}, not a finite score, to an item with "
                        + ", ".join(map("{} {:g}".format, ITEM_NAMES, (*state, a, b)))
                    )


def _formulas(model: ScoreModel) -> Iterator[tuple[str, Formula, Parameters]]:
    yield "serve", model.serve, model.serve_parameters
    yield "offline", model.offline, model.offline_parameters
    if model.cold is not None:
        yield "cold", model.cold, model.offline_parameters


def _telling_rows(model: ScoreModel) -> list[int]:
    """Return a few rows: those with extreme numbers, and some in between."""
    extreme = [f(values) for values in (model.a, model.b) for f in (np.argmin, np.argmax)]
    between: Ints = np.linspace(0, len(model.a) - 1, MOST_ROWS - len(extreme)).astype(np.int64)
    return sorted({int(row) for row in (*extreme, *between)})


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
