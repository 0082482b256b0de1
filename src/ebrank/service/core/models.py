"""The prior in use: a version, and the library's ranker that holds it.

The file of a model says how to scale features, and which learner and evidence it used; these apply.
The bonus, which only shapes the list, is the server's own setting, and so is the configured
examination curve. A model whose family differs from the settings cannot be used: the server ranks
untrained until the next run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from ebrank.evidence import Behaviors, BehaviorStats
from ebrank.policy import model_file, policies
from ebrank.policy.policies import Policy
from ebrank.policy.ranker import EBRanker
from ebrank.policy.scaling import Scaling
from ebrank.priors.base import ItemPrior, State
from ebrank.service.core.feature_schema import matched
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store, StoreError, StoreView
from ebrank.typing import Features, Floats

PINNED, YES, NO = "pinned", "yes", "no"
"""The setting of the store that says whether the active version is pinned."""
UNKNOWN = -1
"""No version of anything."""

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

    @cached_property
    def noisy(self) -> bool:
        """Whether its policy samples new scores for every list."""
        return self.ranker.policy.noisy

    @cached_property
    def plans(self) -> bool:
        """Whether its scores depend on how many lists of a query to plan for."""
        return self.ranker.policy.plans

    def prior(self, features: Features, keys: Sequence[str]) -> ItemPrior:
        """Return the prior of a query's candidates, given their features and whose they are."""
        return self.ranker.prior(matched(features, keys, self.features))

    def shifts(
        self, features: Features, keys: Sequence[str], contexts: Sequence[int]
    ) -> Floats | None:
        """Return how far contexts move the logits of a query's candidates."""
        return self.ranker.shifts(matched(features, keys, self.features), contexts)


class ActiveModel:
    """Follows the store's active version; a swap is one assignment, between two requests.

    Attributes:
        model: the one that ranks.
        stored: the version that the latest write found active: another server may have changed it.
        pinned: whether a person chose it over a newer one; then only a person replaces it.
        since: when it was taken into use.
    """

    def __init__(
        self, store: Store, settings: Settings, clock: Callable[[], float], model: Model
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self.use(model)

    @classmethod
    async def open(
        cls, store: Store, settings: Settings, clock: Callable[[], float]
    ) -> ActiveModel:
        """Return the active version of a store."""
        active = cls(
            store, settings, clock, await load(store, await store.models.active(), settings)
        )
        await active.follow()
        return active

    def use(self, model: Model, *, pinned: bool = False) -> None:
        """Rank with a version, which the store has activated."""
        self.model, self.stored, self.pinned = model, model.version, pinned
        self.since = self._clock()

    async def load(self, version: int) -> Model:
        """Return another version, to `use` it."""
        return await load(self._store, version, self._settings)

    async def follow(self) -> Model:
        """Take over the version that is active in the store, and return it."""
        active = await self._store.models.active()
        if active != self.model.version:
            self.model = await self.load(active)
        self.pinned = await self._store.meta.get(PINNED) == YES
        self.stored = self.model.version
        return self.model


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
    """Return the custom parts of a policy, each as `module:Class`."""
    chosen = (policy.choices.family, policy.choices.learner, policy.choices.bonus)
    return [part for part in chosen if ":" in part]


def warm_up(model: Model, behaviors: Behaviors, *, whole: bool = True) -> None:
    """Compile, or load from the cache, what a request would otherwise wait for.

    Unless `whole`, this is only what the next list needs.
    """
    ranker, nothing = _copy(model.ranker), BehaviorStats.zeros(2, behaviors=behaviors)
    states: tuple[State | None, ...] = (None, ranker.policy.learner.example_state(1))
    for ranker.state_ in states if whole else states[model.ranker.state_ is not None :][:1]:
        _ = ranker.scores(nothing).both.compiled
        ranking = ranker.rank(_FEATURES, nothing)
        if whole:
            _ = ranking.interval, ranking.candidates.prior_beta  # of explanations and reports


_FEATURES = np.array([[0.0], [1.0]], np.float32)


def _copy(ranker: EBRanker) -> EBRanker:
    return EBRanker(
        ranker.policy, examination=ranker.examination, scaling=Scaling("query"), threads=1
    )
