"""The prior in use: a version, and the library's ranker that holds it.

The file of a model says how to scale features, and which learner and evidence it used; these apply.
The bonus, which only shapes the list, is the server's own setting, and so is the configured
examination curve. A model whose family differs from the settings cannot be used: the server ranks
untrained until the next run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np

from ebrank.errors import EBRankError
from ebrank.evidence import Behaviors, BehaviorStats
from ebrank.model.formula import ItemPrior
from ebrank.model.policy import model_file, policies
from ebrank.model.policy.policies import Policy
from ebrank.model.policy.ranker import EBRanker
from ebrank.model.policy.scaling import Scaling
from ebrank.model.prior.item_effects import messages, variance_of
from ebrank.service.core.experiments import EXPERIMENTS, OWN, Assigner, Experiment, read, running
from ebrank.service.core.feature_schema import matched
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store, StoreError
from ebrank.typing import Features, Floats, State

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
        fit: the parts of an arm's policy that are fitted for it alone; empty if its prior is that
            of all.
    """

    version: int
    ranker: EBRanker
    fill_by_mean: bool
    features: tuple[str, ...] = ()
    unused: str = ""
    fit: str = ""

    @cached_property
    def item_variance(self) -> float:
        """How much items differ beyond their features; 0 if the policy shares no evidence."""
        return variance_of(self.ranker.state_) if self.ranker.policy.prior.shares else 0.0

    @cached_property
    def noisy(self) -> bool:
        """Whether its policy samples new scores for every list."""
        return self.ranker.policy.noisy

    def prior(self, features: Features, keys: Sequence[str]) -> ItemPrior:
        """Return the prior of a query's candidates, given their features and whose they are."""
        return self.ranker.prior(matched(features, keys, self.features))

    def inputs(self, features: Features, keys: Sequence[str]) -> Features:
        """Return the features of a query's candidates as the learner gets them."""
        own, scaling = matched(features, keys, self.features), self.ranker.scaling
        return own if scaling is None else scaling(own)

    def scores(self, inputs: Features) -> Floats:
        """Return what the learner makes of its inputs; 0 for all before any training."""
        return self.ranker.policy.prior.scores(self.ranker.state_, inputs, self.ranker.threads)


@dataclass(frozen=True)
class Deployment:
    """What makes lists: a version of the prior, and the arms of the experiment that runs.

    Attributes:
        model: ranks the lists of no arm.
        experiment: the one that ran when this was loaded.
        arms: its arms; empty if one of them still has to learn its prior.
        assigner: says which arm a list belongs to; None without arms.
    """

    model: Model
    experiment: Experiment | None = None
    arms: Mapping[str, Model] = field(default_factory=dict)
    assigner: Assigner | None = None

    @property
    def apart(self) -> bool:
        """Whether arms keep their evidence apart: each query belongs to one."""
        return self.assigner is not None and self.assigner.experiment.unit == "query"

    @property
    def waits(self) -> bool:
        """Whether the experiment waits for a training run, since an arm has no prior yet."""
        return self.assigner is None and self.experiment is not None


class ActiveModel:
    """Follows the store's active version; a swap is one assignment, between two requests.

    Attributes:
        deployment: what makes lists.
        stored: the version that the latest write found active: another server may have changed it.
        pinned: whether a person chose it over a newer one; then only a person replaces it.
        since: when it was taken into use.
        experiments: all of the store, by name.
    """

    def __init__(
        self, store: Store, settings: Settings, clock: Callable[[], float], model: Model
    ) -> None:
        self.experiments: Mapping[str, Experiment] = {}
        self._experiments_text: str | None = None
        self._following = asyncio.Lock()
        self._store = store
        self._settings = settings
        self._clock = clock
        self.use(Deployment(model))

    @classmethod
    async def open(
        cls, store: Store, settings: Settings, clock: Callable[[], float]
    ) -> ActiveModel:
        """Return the active version of a store."""
        active = cls(
            store, settings, clock, await load(store, await store.models.active(), settings)
        )
        await active.follow()
        await active.follow_experiments()
        return active

    @property
    def model(self) -> Model:
        """The version that ranks the lists of no arm."""
        return self.deployment.model

    def use(self, deployment: Deployment, *, pinned: bool = False) -> None:
        """Rank with a version, which the store has activated."""
        self.deployment, self.stored, self.pinned = deployment, deployment.model.version, pinned
        self.since = self._clock()

    async def load(self, version: int) -> Deployment:
        """Return another version, to `use` it, with the arms of the running experiment."""
        model = await load(self._store, version, self._settings)
        experiment = running(self.experiments)
        if experiment is None:
            return Deployment(model)
        arms = dict[str, Model]()
        documents = await self._store.models.arms(version) if version else {}
        main = await self._store.models.document(version) if version else None
        for name, policy in experiment.stretch.arms.items():
            try:
                arm = self._arm(model, policy, main, documents)
            except EBRankError as problem:  # perhaps of a newer version: no reason not to start
                log.error("arm %s of experiment %s: %s", name, experiment.name, problem)
                arm = None
            if arm is None:
                return Deployment(model, experiment)
            arms[name] = arm
        return Deployment(model, experiment, arms, Assigner(experiment))

    def _arm(
        self, model: Model, policy: str, main: bytes | None, documents: Mapping[str, str]
    ) -> Model | None:
        """Return an arm with its policy, None if its prior has not been learned yet."""
        if policy == OWN:
            return model
        settings = self._settings
        parts, ranker = fitted_parts(policy), untrained(settings, policy)
        fit = "" if parts == fitted_parts(settings.ranking.policy) else parts
        if fit and model.version:
            if fit not in documents:
                return None
            main = documents[fit].encode()
        if main is not None:
            ranker, _ = _served(main, f"model {model.version} of the store", ranker, settings)
        return replace(model, ranker=ranker, fit=fit)

    async def follow_experiments(self) -> bool:
        """Take over the experiments of the store; return whether they have changed.

        Lists are drawn from new arms once all that these need is compiled.
        """
        async with self._following:  # or an earlier change might be taken over last
            text = await self._store.meta.get(EXPERIMENTS)
            if text != self._experiments_text:
                self.experiments = read(text)
            elif self.deployment.experiment is running(self.experiments):
                return False  # else a version that was loaded before a change came after it
            loaded, behaviors = (
                await self.load(self.model.version),
                self._settings.events.declared(),
            )
            for arm in loaded.arms.values():
                await asyncio.to_thread(warm_up, arm, behaviors, whole=False)
            if loaded.model.version == self.model.version:  # else another version came first
                self.deployment = loaded
            self._experiments_text = text
        return True

    async def follow(self) -> Deployment:
        """Take over the version that is active in the store, and return it."""
        active = await self._store.models.active()
        if active != self.model.version:
            self.deployment = await self.load(active)
        self.pinned = await self._store.meta.get(PINNED) == YES
        self.stored = self.model.version
        return self.deployment


def fitted_parts(policy: str) -> str:
    """Return what of a policy is fitted: policies of the same can rank with the same prior.

    >>> fitted_parts("ebrank:epsilon=5") == fitted_parts("ebrank:bonus=none")
    True
    """
    return str(policies.parse(policy).with_parameters(bonus="none", part="both"))


def own_fits(settings: Settings, experiments: Mapping[str, Experiment]) -> tuple[str, ...]:
    """Return a policy for each prior that arms of the running experiment need for themselves."""
    experiment = running(experiments)
    arms, parts = [] if experiment is None else experiment.stretch.arms.values(), dict[str, str]()
    for policy in arms:
        with suppress(EBRankError):  # `own` has none, nor has what this version does not know
            parts[fitted_parts(policy)] = policy
    parts.pop(fitted_parts(settings.ranking.policy), None)
    return tuple(parts.values())


def untrained(settings: Settings, policy: str | None = None) -> EBRanker:
    """Return the ranker before any training, of a policy other than that of the settings."""
    chosen, curve = policy or settings.ranking.policy, settings.examination.examination()
    return EBRanker(chosen, examination=curve, threads=1)  # other cores have other requests


async def load(store: Store, version: int, settings: Settings) -> Model:
    """Return a version from the store."""
    ranker, features, unused = untrained(settings), tuple[str, ...](), ""
    if version:
        document = await store.models.document(version)
        if document is None:
            raise StoreError(f"the store has no model {version}")
        ranker, unused = _served(document, f"model {version} of the store", ranker, settings)
        if unused:
            log.warning("%s", unused)
        features = await features_of(store, version)
    return Model(version, ranker, settings.features.fills_by_mean, features, unused)


async def features_of(store: Store, version: int) -> tuple[str, ...]:
    """Return the keys of the features that a version learned from."""
    records = await store.models.all()
    return next((record.features for record in records if record.version == version), ())


def _served(
    document: bytes, name: str, untrained: EBRanker, settings: Settings
) -> tuple[EBRanker, str]:
    """Return the ranker in a file, with the server's settings for lists, or an arm's.

    If the settings do not allow it, return the untrained one and why.
    """
    own, allowed = untrained.policy, own_parts(policies.parse(settings.ranking.policy))
    replaced = "its prior is not used, and the next training replaces it"
    try:
        learned = model_file.from_bytes(document, name, allow=allowed)
    except model_file.ForeignPart:
        return untrained, f"{name} has parts that ranking.policy does not name: {replaced}"
    theirs, ours = learned.policy.choices.family, own.choices.family
    if theirs != ours:
        family = f"{name} is of the family {theirs}, ranking.policy of the family {ours}"
        return untrained, f"{family}: {replaced}"
    bonus = {each.name: getattr(own.bonus, each.name) for each in fields(own.bonus)}  # type: ignore[arg-type]
    ranker = EBRanker(
        learned.policy.with_parameters(
            bonus=own.choices.bonus, part=own.choices.part, shared=own.choices.shared, **bonus
        ),
        examination=untrained.examination,
        scaling=learned.scaling,
        threads=untrained.threads,
    )
    ranker.state_ = learned.state_
    return ranker, ""


def own_parts(policy: Policy) -> list[str]:
    """Return the custom parts of a policy, each as `module:Class`."""
    chosen = (policy.choices.family, policy.choices.learner, policy.choices.bonus)
    return [part for part in chosen if ":" in part]


def warm_up(model: Model, behaviors: Behaviors, *, whole: bool = True) -> None:
    """Compile, or load from the cache, what a request would otherwise wait for.

    Unless `whole`, this is only what the next list needs.
    """
    served, nothing = model.ranker, BehaviorStats.zeros(2, behaviors=behaviors)
    scaling = Scaling("query")
    ranker = EBRanker(served.policy, examination=served.examination, scaling=scaling, threads=1)
    states: tuple[State | None, ...] = (None, ranker.policy.learner.example_state(1))
    for ranker.state_ in states if whole else states[served.state_ is not None :][:1]:
        _ = ranker.scores(nothing).both.compiled
        ranking = ranker.rank(_FEATURES, nothing)
        if whole:
            _ = ranking.interval, ranking.candidates.prior_beta  # of explanations and reports
    if whole and ranker.policy.prior.shares:
        messages(*np.full((3, 1), 0.5))


_FEATURES = np.array([[0.0], [1.0]], np.float32)
