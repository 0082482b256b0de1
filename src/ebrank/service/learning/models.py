"""The prior in use: a version, and the library's ranker that holds it.

The file of a model says how to scale features and which β and evidence it learned with; those are
followed. What only shapes the list, such as ε, is the server's own setting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebrank import model_file
from ebrank.behavior import BehaviorStats
from ebrank.features import Scaling
from ebrank.priors import LinearPrior
from ebrank.ranker import EBRanker
from ebrank.service.settings import Settings
from ebrank.service.store.base import StoreError, StoreView


@dataclass(frozen=True)
class Model:
    """A version of the prior, ready to rank with.

    Attributes:
        version: 0 before any training, when α is 1 for all.
        ranker: whose prior it is.
        fill_by_mean: whether a missing feature becomes its query's mean rather than 0.
    """

    version: int
    ranker: EBRanker
    fill_by_mean: bool


def untrained(settings: Settings) -> EBRanker:
    """Return the ranker before any training."""
    chosen = settings.ranking
    return EBRanker(beta=chosen.beta, epsilon=chosen.epsilon, estimator=chosen.estimator)


async def load(store: StoreView, version: int, settings: Settings) -> Model:
    """Return a version from the store."""
    ranker = untrained(settings)
    if version:
        document = await store.models.document(version)
        if document is None:
            raise StoreError(f"the store has no model {version}")
        ranker = model_file.from_bytes(document, f"model {version} of the store")
        ranker.set_params(epsilon=settings.ranking.epsilon)
    return Model(version, ranker, settings.features.missing == "mean")


def warm_up() -> None:
    """Compile, or read from the cache, what a request would otherwise wait for."""
    features = np.array([[0.0], [1.0]], np.float32)
    prior = LinearPrior.from_state({"parameters": {}, "weights": [1.0], "intercept": 0.0})
    for threads in (None, 1):
        prior.set_params(threads=threads)
        ranker = EBRanker(prior, scaling=Scaling("query"))
        ranking = ranker.rank(features, BehaviorStats.zeros(2))
        _ = ranking.interval
