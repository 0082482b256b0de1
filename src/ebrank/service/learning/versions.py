"""The versions of the prior: which one ranks, how a new one is taken in, and how to go back."""

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


class ModelVersions:
    """Follows the store's active version; a swap is one assignment, between two requests.

    Attributes:
        model: the one that ranks.
        pinned: whether somebody chose it over a newer one; then only somebody replaces it.
    """

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._settings = settings
        self._now = clock
        self.model: Model = models.model(store, store.active_model(), settings)
        self.pinned = store.meta(PINNED) == YES

    def out(self) -> list[api.ModelOut]:
        """Return all versions, oldest first."""
        return [
            api.ModelOut(
                version=one.version,
                created=one.created,
                rows=one.rows,
                validation_loss=one.validation_loss,
                previous_loss=one.previous_loss,
                activated=one.activated,
                active=one.version == self.model.version,
                reason=one.reason,
            )
            for one in self._store.models()
        ]

    def activate(self, version: int) -> None:
        """Make a version the active one; on disk after the next flush.

        Whoever goes back has a reason that no validation loss knows, so the version is pinned.
        """
        if version and self._store.model(version) is None:
            raise NotFound(f"there is no model {version}", "version")
        model = models.model(self._store, version, self._settings)
        pinned = version < self._newest()
        self._store.activate(version, meta={PINNED: YES if pinned else NO}, flush=False)
        self.model, self.pinned = model, pinned

    def unpin(self) -> None:
        """Let runs replace the active version again; on disk after the next flush."""
        if self.pinned:
            self._store.activate(self.model.version, meta={PINNED: NO}, flush=False)
            self.pinned = False

    async def fitted(self, job: TrainingJob) -> TrainingResult:
        """Return the result of a job: from a process, where another one can read the store."""
        path = getattr(self._store, "path", None)
        return await (in_thread(self._store, job) if path is None else in_process(path, job))

    def adopt(self, fitted: TrainingResult, against: int) -> str:
        """Keep a new version, go live with it if it is better, and say what became of it.

        It is on disk after the next flush: until then a power cut brings back the last one.
        It does not go live if somebody has replaced the version it was judged against, or has
        pinned it: it would undo a decision it knows nothing of.
        """
        if fitted.document is None:
            return f"no new version: {fitted.reason}"
        live, reason = fitted.better, fitted.reason
        if live and against != self.model.version:
            live = False
            reason += f"; but version {self.model.version} was made active during the run"
        elif live and self.pinned:
            live = False
            reason += f"; but version {self.model.version} was made active by hand and is pinned"
        version = 1 + self._newest()
        record = ModelRecord(
            version=version,
            created=self._now(),
            rows=fitted.rows,
            validation_loss=fitted.validation_loss,
            previous_loss=fitted.previous_loss,
            activated=live,
            reason=reason,
        )
        self._store.add_model(record, fitted.document.encode(), flush=False)
        if live:
            self.model = models.model(self._store, version, self._settings)
        return f"version {version} {'went live' if live else 'stays off'}: {reason}"

    def _newest(self) -> int:
        return max((one.version for one in self._store.models()), default=0)
