"""Scores of a model as the engine computes them, checked against the plain formula."""

from __future__ import annotations

import numpy as np

from ebrank.policy.formula import Score
from ebrank.policy.scoring import scores
from ebrank.priors import ItemPrior
from ebrank.rankers.base import Trial
from ebrank.rankers.model import ScoreModel

KEY = np.uint64(3)


def values(score: Score, model: ScoreModel, trial: Trial, key: np.uint64 = KEY) -> list[float]:
    """Return the score of every row; plain and compiled must agree."""
    sums = trial.sums()
    b = np.broadcast_to(model.b, model.a.shape)
    parameters = dict(zip(score.formula.parameters, score.parameters.tolist(), strict=False))
    plain = []
    for i in range(len(b)):
        behavior = {name: float(column[i]) for name, column in sums._asdict().items()}
        known = {"a": model.a[i], "b": b[i], **behavior, **parameters, "key": key}
        plain.append(float(score.formula(**known)))
    compiled = scores(
        score, ItemPrior(model.a, model.b), trial.stats, trial.examination, np.full(len(b), key)
    )
    np.testing.assert_array_equal(compiled, plain)
    return plain
