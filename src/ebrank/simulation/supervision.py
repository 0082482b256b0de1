"""A learner under supervision: its models are checked before compiled code reads them.

Kernels index a model's arrays without checking their lengths, so they would read beyond the end of
a model with too few scores. If a ranker from elsewhere fails, the error names it. If one of
ebrank's own fails, it has a bug, and its error is left as it is.

Every score must be a finite number: NaN is neither above nor below any other. Nobody can try a
formula on every state that an item may reach, so this is checked twice:

- before a formula is first used, for up to 16 rows, those with the lowest and highest `a` and `b`
  among them, on a few states: as they are now, never shown, shown once at each rank without a click
  and with one, shown a thousand times without a click and with one each time (`check_scores`);
- in the sessions and in the measurements, for every score that is used. Kernels raise
  `FloatingPointError`, and `Supervised.watching` names the formula and the item, if it can still
  be found: counts keep changing until a kernel ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ebrank.data.dataset import Dataset
from ebrank.errors import EBRankError, ParameterError
from ebrank.evidence import BehaviorStats, Examination
from ebrank.evidence.stats import COUNT
from ebrank.policy import scoring
from ebrank.policy.formula import Score
from ebrank.priors.base import ItemPrior
from ebrank.rankers.base import REGISTRY, Ranker, Trial, TrialLearner
from ebrank.rankers.model import ScoreModel, check_numbers
from ebrank.typing import Ints

MOST_ROWS = 16
MANY = 1000


class Supervised:
    """A ranker's learner in one trial."""

    def __init__(self, ranker: Ranker, trial: Trial) -> None:
        self._ranker = ranker
        self._trial = trial
        self._tried: set[Score] = set()
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
            scores = set(_scores(model).values())
            if not scores <= self._tried:
                self._tried |= scores
                rows, states = _telling_rows(model), reachable(self._trial.stats)
                check_scores(model, self._trial.stats, self._trial.examination, rows, states)
        return model

    @contextmanager
    def watching(self, model: ScoreModel) -> Iterator[None]:
        """While a model is in use, name the formula that gives a score that is not finite."""
        try:
            yield
        except FloatingPointError as problem:
            with self._named():
                rows = np.arange(self._trial.dataset.n_rows)
                check_scores(model, self._trial.stats, self._trial.examination, rows)
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
    >>> from ebrank.rankers.bm25 import fixed_model
    >>> check_model(fixed_model(np.ones(3)), ebrank.load("mq2007-like", scale=0.01))
    Traceback (most recent call last):
    ebrank.errors.ParameterError: 3 scores for 679 rows
    """
    if not isinstance(model, ScoreModel):
        raise ParameterError(f"update returns {type(model).__name__}, not a ScoreModel")
    n = dataset.n_rows
    check_numbers("a", "scores", model.a, n)
    check_numbers("b", "second numbers", model.b, n, or_one=True)
    if model.prior is not None:
        check_numbers("prior.a", "first numbers", model.prior.a, n)
        check_numbers("prior.b", "second numbers", model.prior.b, n, or_one=True)
    if model.weights is not None:
        check_numbers("weights", "weights", model.weights, np.size(model.weights))
    for name, score in _scores(model).items():
        _check_score(name, score)
    model.check_sessions(dataset)


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


def reachable(stats: BehaviorStats) -> BehaviorStats:
    """Return behavior states that an item may reach, one per row."""
    outcomes, slots = stats.counts.shape[1:]
    states = [np.zeros((outcomes, slots), COUNT)]
    for slot in range(slots):
        for times in (1, MANY):
            for clicked in (0, times):
                state = np.zeros((outcomes, slots), COUNT)
                state[0, slot], state[-1, slot] = times, clicked
                states.append(state)
    return BehaviorStats(np.array(states), stats.behaviors)


def check_scores(
    model: ScoreModel,
    stats: BehaviorStats,
    examination: Examination,
    rows: Ints,
    states: BehaviorStats | None = None,
) -> None:
    """Raise if some rows, as they are now or in other states, get scores that are not finite.

    >>> from ebrank.policy.formula import Formula
    >>> rate = Formula(lambda clicks, shown: clicks / shown).bind()
    >>> model = ScoreModel(np.ones(3), np.zeros(1), rate, rate)
    >>> check_scores(model, BehaviorStats.zeros(3, slots=5), Examination(), np.array([2]))
    Traceback (most recent call last):
    ebrank.errors.ParameterError: its formula serve gives nan, not a finite score, to an item with
    shown 0, clicks 0, weighted_clicks 0, exposure 0, a 1, b 0
    """
    unseen = BehaviorStats.zeros(1, slots=stats.slots, behaviors=stats.behaviors)
    elsewhere = unseen.counts if states is None else states.counts
    prior = ItemPrior(model.a, model.b)
    for name, score in _scores(model).items():
        others = unseen.counts if name == "cold" else elsewhere
        now = stats.counts[rows[:0] if name == "cold" else rows]
        chosen = np.concatenate([rows[: len(now)], np.repeat(rows, len(others))])
        counts = np.concatenate([now, np.tile(others, (len(rows), 1, 1))])
        behavior, keys = BehaviorStats(counts, stats.behaviors), chosen.astype(np.uint64)
        believed = model.examination or examination
        values = scoring.scores(score, prior.rows(chosen), behavior, believed, keys)
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            place = bad[:1]
            item = {**behavior[place].sums(examination)._asdict()}
            item |= prior.rows(chosen[place])._asdict()
            raise ParameterError(
                f"its formula {name} gives {values[place][0]}, not a finite score, to an item with "
                + ", ".join(f"{what} {number[0]:g}" for what, number in item.items())
            )


def _scores(model: ScoreModel) -> dict[str, Score]:
    """Return the scores that a model defines."""
    scores = {"serve": model.serve, "offline": model.offline}
    return scores if model.cold is None else {**scores, "cold": model.cold}


def _telling_rows(model: ScoreModel) -> Ints:
    """Return a few rows: those with extreme numbers, and some in between."""
    extreme = [f(values) for values in (model.a, model.b) for f in (np.argmin, np.argmax)]
    between: Ints = np.linspace(0, len(model.a) - 1, MOST_ROWS - len(extreme)).astype(np.int64)
    return np.unique(np.array([*extreme, *between], np.int64))
