"""A learner under supervision: its models are checked before compiled code reads them.

Kernels index a model's arrays without checking their lengths, so they would read beyond the end of
a model with too few scores. If a ranker from elsewhere fails, the error names it. If one of
ebrank's own fails, it has a bug, and its error is left as it is.

Every score must be a finite number: NaN is neither above nor below any other. Nobody can try a
formula on every state that an item may reach, so every score that sessions and measurements use is
checked. Kernels raise `FloatingPointError`, and `Supervised.watching` names the formula and the
item, if it can still be found: counts keep changing until a kernel ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ebrank.errors import EBRankError, ParameterError
from ebrank.evidence import BehaviorStats, Examination
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers.base import REGISTRY, Ranker, ScoreModel, Trial, TrialLearner
from ebrank.model import scoring
from ebrank.model.formula import ItemPrior, Score


class Supervised:
    """A ranker's learner in one trial."""

    def __init__(self, ranker: Ranker, trial: Trial) -> None:
        self._ranker = ranker
        self._trial = trial
        with _blamed(ranker):
            self._learner: TrialLearner = ranker.learner(trial)

    def update(self) -> ScoreModel:
        """Return the learner's next model.

        Raises:
            ParameterError: if the learner fails, or its model does not fit the dataset.
        """
        with _blamed(self._ranker):
            model = self._learner.update()
        with self._named():
            check_model(model, self._trial.dataset)
        return model

    @contextmanager
    def watching(self, model: ScoreModel) -> Iterator[None]:
        """While a model is in use, name the formula that gives a score that is not finite."""
        try:
            yield
        except FloatingPointError as problem:
            with self._named():
                check_scores(model, self._trial.stats, self._trial.examination)
                raise ParameterError(
                    "a formula gave a score that is not a finite number; the counts of the item "
                    "have changed since"
                ) from problem

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Put the ranker's name before an error about its model."""
        try:
            yield
        except ParameterError as problem:
            raise ParameterError(f"{self._ranker}: {problem}") from problem.__cause__


@contextmanager
def _blamed(ranker: Ranker) -> Iterator[None]:
    """Turn an error in a third-party ranker into one that names it."""
    try:
        yield
    except EBRankError:
        raise
    except Exception as problem:
        if type(ranker) in REGISTRY.values():
            raise
        message = f"{ranker} failed while learning: {type(problem).__name__}: {problem}"
        raise ParameterError(message) from problem


def check_model(model: object, dataset: Dataset) -> None:
    """Raise if a model does not fit a dataset.

    >>> import ebrank
    >>> from ebrank.lab.rankers.base import fixed_model
    >>> check_model(fixed_model(np.ones(3)), ebrank.load("mq2007-like", scale=0.01))
    Traceback (most recent call last):
    ebrank.errors.ParameterError: 3 scores for 679 rows
    """
    if not isinstance(model, ScoreModel):
        raise ParameterError(f"update returns {type(model).__name__}, not a ScoreModel")
    n = dataset.n_rows
    _check_numbers("a", "scores", model.a, n)
    _check_numbers("b", "second numbers", model.b, n, or_one=True)
    if model.prior is not None:
        _check_numbers("prior.a", "first numbers", model.prior.a, n)
        _check_numbers("prior.b", "second numbers", model.prior.b, n, or_one=True)
    if model.weights is not None:
        _check_numbers("weights", "weights", model.weights, np.size(model.weights))
    for name, score in _scores(model).items():
        _check_score(name, score)


def _check_numbers(
    name: str, called: str, values: object, rows: int, *, or_one: bool = False
) -> None:
    """Raise unless an array has a finite number for each row, or, with `or_one`, one for all.

    `called` is what messages call the numbers.
    """
    if not (isinstance(values, np.ndarray) and values.dtype == np.float64 and values.ndim == 1):
        raise ParameterError(f"{name} must be a NumPy array of float64, with one axis")
    if len(values) != rows and not (or_one and len(values) == 1):
        raise ParameterError(f"{len(values)} {called} for {rows} rows")
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise ParameterError(f"{name}[{row}] is {values[row]}, not a finite number")


def _check_score(name: str, score: object) -> None:
    """Raise if this is not a score, has parameters that are not finite, or cannot be compiled."""
    if not isinstance(score, Score):
        raise ParameterError(
            f"{name} must be a Score, as Formula.bind returns, not {type(score).__name__}"
        )
    if not np.isfinite(score.parameters).all():
        raise ParameterError(f"the parameters of {name} must be finite numbers")
    try:
        score.compiled  # noqa: B018 (it is kept)
    except ParameterError as problem:
        raise ParameterError(f"{name}: {problem}") from problem.__cause__


def check_scores(model: ScoreModel, stats: BehaviorStats, examination: Examination) -> None:
    """Raise if an item, as it is now or if nobody had seen it, gets a score that is not finite.

    >>> from ebrank.model.formula import Formula
    >>> rate = Formula(lambda clicks, shown: clicks / shown).bind()
    >>> model = ScoreModel(np.ones(3), np.zeros(1), rate, rate)
    >>> check_scores(model, BehaviorStats.zeros(3, slots=5), Examination())
    Traceback (most recent call last):
    ebrank.errors.ParameterError: its formula serve gives nan, not a finite score, to an item with
    shown 0, clicks 0, weighted_clicks 0, exposure 0, a 1, b 0
    """
    rows, prior = np.arange(len(stats)), ItemPrior(model.a, model.b)
    unseen = BehaviorStats.zeros(len(stats), slots=stats.slots, behaviors=stats.behaviors)
    assumed = model.examination or examination
    for name, score in _scores(model).items():
        for behavior in (unseen,) if name == "cold" else (stats, unseen):
            values = scoring.scores(score, prior, behavior, assumed, rows.astype(np.uint64))
            bad = np.flatnonzero(~np.isfinite(values))[:1]
            if len(bad):
                item = behavior[bad].sums(examination)._asdict() | prior.rows(bad)._asdict()
                raise ParameterError(
                    f"its formula {name} gives {values[bad][0]}, not a finite score, to an item "
                    "with " + ", ".join(f"{what} {own[0]:g}" for what, own in item.items())
                )


def _scores(model: ScoreModel) -> dict[str, Score]:
    """Return the scores that a model defines."""
    scores = {"serve": model.serve, "offline": model.offline}
    return scores if model.cold is None else {**scores, "cold": model.cold}
