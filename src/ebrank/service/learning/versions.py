"""The versions of the prior: which one ranks, how to add one, and how to go back."""

from __future__ import annotations

from collections.abc import Callable

from ebrank.service import api
from ebrank.service.core.problems import NotFound
from ebrank.service.learning import models
from ebrank.service.learning.fitting import TrainingJob, TrainingResult
from ebrank.service.learning.models import Model
from ebrank.service.learning.trainer import in_process, in_thread
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store
from ebrank.service.store.records import ModelRecord

PINNED, YES, NO = "pinned", "yes", "no"
"""The setting of the store that says whether the active version is pinned."""
REFUSED = "refused_since"
"""The setting that says since when the newest version is off; empty if it is live."""


class ModelVersions:
    """Follows the store's active version; a swap is one assignment, between two requests.

    Attributes:
        model: the one that ranks.
        pinned: whether a person chose it over a newer one; then only a person replaces it.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Callable[[], float],
        model: Model,
        pinned: bool,
    ) -> None:
        self._store = store
        self._settings = settings
        self._now = clock
        self._found = model.version
        self._since = clock()
        self.model = model
        self.pinned = pinned

    @classmethod
    async def open(
        cls, store: Store, settings: Settings, clock: Callable[[], float]
    ) -> ModelVersions:
        """Return the versions of a store, with the active one loaded."""
        model = await models.load(store, await store.models.active(), settings)
        pinned = await store.meta.get(PINNED) == YES
        versions = cls(store, settings, clock, model, pinned)
        await versions._prune()
        return versions

    def found(self, version: int) -> None:
        """Record the version that a write found active: another server may have changed it."""
        self._found = version

    async def current(self) -> Model:
        """Return the model that ranks; the one of the store, if another server changed it."""
        if self._found != self.model.version:
            await self._follow()
        return self.model

    async def _follow(self) -> None:
        """Take over the state of the store."""
        active = await self._store.models.active()
        if active != self.model.version:
            self.model = await models.load(self._store, active, self._settings)
        self.pinned = await self._store.meta.get(PINNED) == YES
        self._found = self.model.version

    async def out(self, most: int | None = None) -> list[api.ModelOut]:
        """Return the versions that are kept, or the newest and the active one, oldest first."""
        active, records = self.model.version, await self._store.models.all()
        if most is not None:
            older = [record for record in records[:-most] if record.version == active]
            records = older + records[-most:]
        return [
            api.ModelOut(
                version=record.version,
                created=record.created,
                rows=record.rows,
                validation_loss=record.validation_loss,
                previous_loss=record.previous_loss,
                activated=record.activated,
                active=record.version == active,
                reason=record.reason,
            )
            for record in records
        ]

    async def prior(self, training: api.TrainingOut, failing_since: float | None) -> api.PriorOut:
        """Return whether lists use what was learned last, and if not, why."""
        if self.model.unused:
            return api.PriorOut("unused", self.model.unused, self._since)
        if failing_since is not None:
            return api.PriorOut("failing", training.outcome, failing_since)
        newest = (await self._store.models.all())[-1:]
        reason = newest[0].reason if newest else ""
        refused = await self._store.meta.get(REFUSED)
        if refused:
            if newest and newest[0].activated:  # it was live
                reason = f"version {self.model.version} was made active by hand instead"
            return api.PriorOut("refused", reason, float(refused))
        if self.model.version == 0:
            return api.PriorOut("untrained", training.outcome or "no run yet", training.finished)
        return api.PriorOut("live", reason, self._since)

    async def activate(self, version: int) -> None:
        """Activate a version; on disk after the next flush.

        Going back has a reason that no validation loss shows, so the version is pinned.
        """
        if version and await self._store.models.document(version) is None:
            raise NotFound(f"there is no model {version}", "version")
        model = await models.load(self._store, version, self._settings)
        pinned = version < await self._newest()
        refused = await self._refused_since(self._now()) if pinned else ""
        meta = {PINNED: YES if pinned else NO, REFUSED: refused}
        await self._store.models.activate(version, meta=meta)
        self._use(model, pinned)

    async def unpin(self) -> None:
        """Let runs replace the active version again; on disk after the next flush."""
        if self.pinned:
            await self._store.models.activate(self.model.version, meta={PINNED: NO})
            self.pinned = False

    async def fitted(self, job: TrainingJob) -> TrainingResult:
        """Return the result of a job: from a process, if it can read the store."""
        url = self._store.url
        if url is None:
            return await in_thread(self._store, job)
        return await in_process(url, job, self._settings.training.max_seconds)

    async def adopt(self, fitted: TrainingResult, against: int) -> str:
        """Keep a new version, go live with it if it is better, and return the outcome.

        It is on disk after the next flush: until then a power cut brings back the last one. It does
        not go live if the version it was judged against has been replaced or pinned: that would
        undo a decision made meanwhile.
        """
        if fitted.document is None:
            return f"no new version: {fitted.reason}"
        await self._follow()  # other servers decide too
        live, reason = fitted.better, fitted.reason
        if live and against != self.model.version:
            live = False
            reason += f"; but version {self.model.version} was made active during the run"
        elif live and self.pinned:
            live = False
            reason += f"; but version {self.model.version} was made active by hand and is pinned"
        version = 1 + await self._newest()
        record = ModelRecord(
            version=version,
            created=self._now(),
            rows=fitted.rows,
            validation_loss=fitted.validation_loss,
            previous_loss=fitted.previous_loss,
            activated=live,
            reason=reason,
            features=fitted.features,
        )
        live = await self._store.models.add(
            record, fitted.document.encode(), instead_of=against, unless={PINNED: YES}
        )
        refused = "" if live else await self._refused_since(record.created)
        await self._store.meta.set({REFUSED: refused})
        if live:
            self._use(await models.load(self._store, version, self._settings), pinned=False)
        await self._prune()
        return f"version {version} {'went live' if live else 'stays off'}: {reason}"

    async def _refused_since(self, now: float) -> str:
        return await self._store.meta.get(REFUSED) or repr(now)

    def _use(self, model: Model, pinned: bool) -> None:
        self.model, self.pinned, self._found = model, pinned, model.version
        self._since = self._now()

    async def _prune(self) -> None:
        """Remove old versions, but keep the active one and the last one live before it."""
        records, active = await self._store.models.all(), self.model.version
        before = [one.version for one in records if one.activated and one.version < active]
        staying = {active, *before[-1:]}
        old = [one.version for one in records[: -self._settings.models.keep]]
        forgotten = [version for version in old if version not in staying]
        if forgotten:
            await self._store.models.remove(forgotten)

    async def _newest(self) -> int:
        return max((record.version for record in await self._store.models.all()), default=0)
