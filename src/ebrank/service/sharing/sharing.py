"""Which queries share evidence about the items they list, and how it keeps up.

All queries share theirs, unless an experiment draws arms per query: then the queries of each arm
share theirs, and so do those of none. An arm that shares evidence with the others, but has a prior
of its own, does without: messages are derived with the prior of all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial

from ebrank.model.prior.item_effects import Elsewhere
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.models import ActiveModel, Deployment, Model
from ebrank.service.core.queries import MOST_UNPACKED, Queries
from ebrank.service.serving.lists import Draft, Stage
from ebrank.service.sharing.messages import SharedEvidence
from ebrank.service.store.base import Store

ALL = ""
"""The group of queries that are in no arm, or whose arms do not keep their evidence apart."""


class Sharing(Stage):
    """The evidence that queries share, by group.

    Attributes:
        groups: the evidence of each.
    """

    def __init__(
        self, store: Store, active: ActiveModel, queries: Queries, clock: Callable[[], float]
    ) -> None:
        self._store, self._active, self._queries, self._clock = store, active, queries, clock
        self.groups = {ALL: SharedEvidence()}

    @property
    def needed(self) -> bool:
        """Whether any queries share evidence, be it in an arm only."""
        return self.on(self._active.deployment)

    def on(self, deployment: Deployment) -> bool:
        """Return whether any queries share evidence, be it in an arm only."""
        arms = deployment.arms.values() if deployment.apart else ()
        return any(model.item_variance for model in (deployment.model, *arms))

    def shape(self, draft: Draft) -> None:
        """Give a list the evidence of other queries about its candidates."""
        draft.elsewhere = self.elsewhere(draft.live, draft.model, draft.deployment)

    def elsewhere(self, live: LiveQuery, model: Model, deployment: Deployment) -> Elsewhere | None:
        """Return the evidence of other queries about a query's candidates, None if there is none.

        The model, one of those in use, makes a list of the query.
        """
        if not model.item_variance or (model.fit and not deployment.apart):
            return None
        group = _group(live.state.query, deployment)
        speaker = deployment.arms[group] if group else model
        if not speaker.item_variance:
            return None
        return self._evidence(group).elsewhere(live, speaker, live.prior(speaker))

    def forget(self, queries: Iterable[str]) -> None:
        """Take back the messages of queries that have lost something."""
        for query in queries:
            for evidence in self.groups.values():
                evidence.forget(query)

    def clear(self) -> None:
        """Forget everything: it is derived again."""
        for evidence in self.groups.values():
            evidence.clear()

    async def keep_up(self, deletions: int) -> None:
        """Bring messages up to date with lists, feedback, training, and as many deletions."""
        trained = await self._store.models.newest() if self.needed else 0
        recent = dict[str, list[LiveQuery]]()
        for live in self._queries.recent(MOST_UNPACKED):
            group = _group(live.state.query, self._active.deployment)
            recent.setdefault(group, []).append(live)
        for group in _groups(self._active.deployment):
            evidence = self._evidence(group)
            # Asked when their turn comes: follow yields to other requests.
            held = (live for live in recent.get(group, ()) if self._queries.holds(live))
            await evidence.follow(self._model(group), held)
            await evidence.sweep(
                partial(self._model, group),
                (trained, deletions),
                partial(self._versions, group),
                lambda query, version: self._queries.look(query, self._clock(), version),
            )

    def _evidence(self, group: str) -> SharedEvidence:
        return self.groups.setdefault(group, SharedEvidence())

    def _model(self, group: str) -> Model:
        """Return the model whose prior the messages of a group are derived with."""
        deployment = self._active.deployment
        return deployment.arms.get(group, deployment.model)

    async def _versions(self, group: str) -> AsyncIterator[tuple[str, int]]:
        """Yield the queries of a group with their versions."""
        async for query, version in self._store.items.versions():
            if _group(query, self._active.deployment) == group:
                yield query, version


def _groups(deployment: Deployment) -> list[str]:
    return [ALL, *deployment.arms] if deployment.apart else [ALL]


def _group(query: str, deployment: Deployment) -> str:
    assigner = deployment.assigner
    return assigner.of_query(query) if assigner is not None and deployment.apart else ALL
