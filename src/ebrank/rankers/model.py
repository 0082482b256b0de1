"""What lists are made from: two numbers per item, and a formula.

Between two updates of a model an item's score depends on the two numbers the model gave it and on
the behavior of users towards it; `ebrank.formula` says how.
"""

from __future__ import annotations

from dataclasses import dataclass

from ebrank.evidence import Examination
from ebrank.formula import Score
from ebrank.priors.base import ItemPrior
from ebrank.typing import Floats


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """A model that ranks by a formula.

    Attributes:
        a, b: the model's two numbers for each row of the dataset; b may hold one for all rows.
        serve: score that orders lists, exploration included.
        offline: score of the learned model alone, which Cold- and Warm-NDCG use.
        cold: score that Cold-NDCG uses, if not `offline`.
        noisy: whether `serve` uses its key, so that every candidate has a new score every session.
        weights: the linear model's weights; x^b, if used, is last; None for other models.
        examination: how far down it believes users look, if that is not the trial's belief.
        prior: α and β of each row's relevance before any behavior; None if it has no Beta prior.
    """

    a: Floats
    b: Floats
    serve: Score
    offline: Score
    cold: Score | None = None
    noisy: bool = False
    weights: Floats | None = None
    examination: Examination | None = None
    prior: ItemPrior | None = None
