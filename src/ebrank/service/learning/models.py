"""The prior in use: a version, and the library's ranker that holds it.

The file of a model says how to scale features, and which learner and evidence it used; these apply.
The bonus, which only shapes the list, is the server's own setting, and so is the configured
examination curve. A model whose family differs from the settings cannot be used: the server ranks
untrained until the next run.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ebrank import model_file
from ebrank import policy as policies
from ebrank.evidence import Behaviors, BehaviorStats
from ebrank.features import Scaling
from ebrank.policy import Policy
from ebrank.priors.base import ItemPrior, State
from ebrank.ranker import EBRanker
from ebrank.service.core.feature_schema import matched
from ebrank.service.settings import Settings
from ebrank.service.store.base import StoreError, StoreView
from ebrank.typing import Features, Floats

log = logging.getLogger("ebrank.service")


@dataclass(frozen=True)
class Model:
    """A version of the prior, ready to rank with.

    Attributes:
        version: 0 before any training, when α is 1 for all.
        ranker: holds the prior.
        fill_by_mean: whether a missing feature becomes its query's mean rather than 0.
        features: keys of its features, in order.
        unused: why lists are made as before any training; empty if they are not.
    """

    version: int
    ranker: EBRanker
    fill_by_mean: bool
    features: tuple[str, ...] = ()
    unused: str = ""

    def prior(self, features: Features, keys: Sequence[str]) -> ItemPrior:
        """Return the prior of a query's candidates, given their features and whose they are."""
        return self.ranker.prior(matched(features, keys, self.features))

    def shifts(
        self, features: Features, keys: Sequence[str], contexts: Sequence[int]
    ) -> Floats | None:
        """Return how far contexts move the logits of a query's candidates."""
        return self.ranker.shifts(matched(features, keys, self.features), contexts)


def untrained(settings: Settings) -> EBRanker:
    """Return the ranker before any training."""
    policy, curve = policies.parse(settings.ranking.policy), settings.examination.examination()
    return EBRanker(policy, examination=curve, threads=1)  # other cores have other requests


async def load(store: StoreView, version: int, settings: Settings) -> Model:
    """Return a version from the store."""
    ranker, features, unused = untrained(settings), tuple[str, ...](), ""
    if version:
        document = await store.models.document(version)
        if document is None:
            raise StoreError(f"the store has no model {version}")
        ranker, unused = _served(document, f"model {version} of the store", ranker)
        features = await features_of(store, version)
    return Model(version, ranker, settings.features.fills_by_mean, features, unused)


async def features_of(store: StoreView, version: int) -> tuple[str, ...]:
    """Return the keys of the features that a version learned from."""
    for record in await store.models.all():
        if record.version == version:
            return record.features
    return ()


def _served(document: bytes, name: str, untrained: EBRanker) -> tuple[EBRanker, str]:
    """Return the ranker in a file, with the server's settings for lists.

    If the settings do not allow it, return the untrained one and why.
    """
    own = untrained.policy
    learned = model_file.from_bytes(document, name, allow=own_parts(own))
    theirs, ours = learned.policy.choices.family, own.choices.family
    if theirs != ours:
        unused = (
            f"{name} is of the family {theirs}, ranking.policy of the family {ours}: its prior is "
            "not used, and the next training replaces it"
        )
        log.warning("%s", unused)
        return untrained, unused
    bonus = {field.name: getattr(own.bonus, field.name) for field in fields(own.bonus)}  # type: ignore[arg-type]
    ranker = EBRanker(
        learned.policy.with_parameters(bonus=own.choices.bonus, part=own.choices.part, **bonus),
        examination=untrained.examination,
        scaling=learned.scaling,
        threads=untrained.threads,
    )
    ranker.state_, ranker.contexts_ = learned.state_, learned.contexts_
    return ranker, ""


def own_parts(policy: Policy) -> list[str]:
    """Return the user's own parts of a policy, which a server's settings allow."""
    chosen = (policy.choices.family, policy.choices.learner, policy.choices.bonus)
    return [part for part in chosen if ":" in part]


def warm_up(model: Model, behaviors: Behaviors) -> None:
    """Compile, or load from the cache, what a request would otherwise wait for."""
    ranker = EBRanker(
        model.ranker.policy,
        examination=model.ranker.examination,
        scaling=Scaling("query"),
        threads=1,
    )
    features = np.array([[0.0], [1.0]], np.float32)
    states: tuple[State | None, ...] = (None, ranker.policy.learner.example_state(1))
    for ranker.state_ in states:
        _ = ranker.rank(features, BehaviorStats.zeros(2, behaviors=behaviors)).interval
