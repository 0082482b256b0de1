"""The versions of the prior: which one ranks, how a new one is taken in, and how to go back."""

from __future__ import annotations

from collections.abc import Callable

from ebrank.service import api, models
from ebrank.service.fitting import Fitted, Job
from ebrank.service.models import Model
from ebrank.service.problems import NotFound
from ebrank.service.records import ModelRecord
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store
from ebrank.service.training import in_process, in_thread


class Versions:
    """Follows the store's active version; a swap is one assignment, between two requests.

    Attributes:
        model: the one that ranks.
    """

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._settings = settings
        self._now = clock
        self.model: Model = models.model(store, store.active_model(), settings)

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
        """Make a version the active one; on disk after the next flush."""
        if version and self._store.model(version) is None:
            raise NotFound(f"there is no model {version}", "version")
        model = models.model(self._store, version, self._settings)
        self._store.activate(version, flush=False)
        self.model = model

    async def fitted(self, job: Job) -> Fitted:
        """Return the result of a job: from a process, where another one can read the store."""
        path = getattr(self._store, "path", None)
        return await (in_thread(self._store, job) if path is None else in_process(path, job))

    def adopt(self, fitted: Fitted, against: int) -> str:
        """Keep a new version, go live with it if it is better, and say what became of it.

        It is on disk after the next flush: until then a power cut brings back the last one.
        It does not go live if somebody has replaced the version it was judged against: it would
        undo a decision it knows nothing of.
        """
        if fitted.document is None:
            return f"no new version: {fitted.reason}"
        live, reason = fitted.better, fitted.reason
        if live and against != self.model.version:
            live = False
            reason += f"; but version {self.model.version} was made active during the run"
        version = 1 + max((one.version for one in self._store.models()), default=0)
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
