"""A store that no server uses, with the methods of a client: verbs take either.

Verbs import this when they run, since it imports the service.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from ebrank.client import AsyncClient
from ebrank.errors import ParameterError
from ebrank.service import api
from ebrank.service.core import deletions, experiments
from ebrank.service.core.agreed_settings import QUERY_NAMES
from ebrank.service.core.catalog import Catalog, load
from ebrank.service.core.feature_changes import change_features, features_view
from ebrank.service.core.queries import naming
from ebrank.service.http.problems import unreadable
from ebrank.service.insight.readout import readout
from ebrank.service.settings import FeaturesSettings
from ebrank.service.store import Store, open, open_existing
from ebrank.service.store.base import SALT

T = TypeVar("T")
Request = TypeVar("Request", bound=msgspec.Struct)
Opening: TypeAlias = Literal["read", "existing", "serve"]
"""To read a store, to change one that is there, or to make one if there is none."""


def is_served(store: str) -> bool:
    """Return whether a store is named by the URL of its server."""
    return store.startswith(("http://", "https://"))


def answer(
    store: str,
    token: str | None,
    work: Callable[[AsyncClient | StoreItself], Awaitable[T]],
    opening: Opening = "read",
) -> T:
    """Return what work gets of a server, if `store` is its URL, or of a store that none uses."""

    async def done() -> T:
        if is_served(store):
            async with AsyncClient(store, token=token) as client:
                return await work(client)
        async with open_existing(store) if opening == "existing" else open(store, opening) as found:
            return await work(StoreItself(found))

    return asyncio.run(done())


def checked(request: Request) -> Request:
    """Return a request that its own type allows: constructors check nothing.

    Raises:
        ParameterError: if a server would refuse it, for the same reason.
    """
    try:
        return msgspec.convert(msgspec.to_builtins(request), type(request))
    except msgspec.ValidationError as problem:
        refusal = unreadable(problem)
        raise ParameterError(f"{refusal.field}: {refusal}") from None


class StoreItself:
    """Does to an opened store what a client has a server do."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def _now(self) -> float:
        """Return the time of a change: not before the end of the log."""
        return max(time.time(), await self._store.log.last_time())

    async def _catalog(self) -> Catalog:
        return await Catalog.open(self._store, FeaturesSettings(missing="mean"))

    # --- the catalog -----------------------------------------------------------------------------

    async def catalog_items(self, *, cursor: str, limit: int) -> api.CatalogResponse:
        """Return a page of the catalog."""
        return await (await self._catalog()).page(checked(api.CatalogRequest(cursor, limit)))

    async def load_catalog_lines(self, lines: Iterable[bytes]) -> api.BulkResponse:
        """Put items into the catalog, given as lines of JSON; they may lack features."""

        async def pieces() -> AsyncIterator[bytes]:
            for line in lines:
                yield line.rstrip(b"\r\n") + b"\n"

        began = await self._now()
        answer = await load(await self._catalog(), pieces(), lambda: max(time.time(), began))
        await self._store.flush()
        return answer

    async def withdraw_from_all(self, item: str) -> api.WithdrawFromAllResponse:
        """Withdraw an item of the catalog from all queries."""
        withdrawn = await (await self._catalog()).withdraw(item, await self._now())
        await self._store.flush()
        return api.WithdrawFromAllResponse(item, withdrawn)

    async def features(self) -> api.FeaturesResponse:
        """Return the features that items have."""
        return await features_view(self._store, (await self._catalog()).schema)

    async def change_features(self, **changes: Any) -> api.FeaturesResponse:  # noqa: ANN401
        """Change features, or return what that would change."""
        added = [api.NewFeature(name) for name in changes.pop("add", ())]
        added += [api.NewFeature(name, shared=True) for name in changes.pop("add_shared", ())]
        request = checked(api.ChangeFeaturesRequest(**changes, add=added))
        catalog, now = await self._catalog(), await self._now()
        view = await change_features(self._store, catalog, request, now)
        await self._store.flush()
        return view

    # --- the log ---------------------------------------------------------------------------------

    async def deletions(self) -> api.DeletionsResponse:
        """Return the proofs of all deletions."""
        proofs = list(map(deletions.proof_out, await self._store.deletions.all()))
        return api.DeletionsResponse(len(proofs), proofs)

    async def delete(self, kind: api.DeletedKind, name: str) -> api.DeletionOut:
        """Delete an item, a query or a user, and rewrite the store's files."""
        request = checked(api.DeletionRequest(kind, name))
        proof, _ = await deletions.delete(self._store, request, *await self._names())
        await self.purge()
        return proof

    async def purge(self) -> None:
        """Rewrite the store's files, so that no trace of what was deleted remains."""
        await self._store.deletions.purge()
        await self._store.flush()

    async def retract(self, **given: Any) -> api.RetractionResponse:  # noqa: ANN401
        """Take back what lists and events added, or return what that would change."""
        request = checked(api.RetractionRequest(**given))
        response, _ = await deletions.retract(self._store, request, *await self._names())
        await self._store.flush()
        return response

    async def _names(self) -> tuple[str, Callable[[str], str], float]:
        """Return the store's salt, how it spells queries, and the time of a change."""
        meta = await self._store.meta.all()
        named = naming(normalize=meta.get(QUERY_NAMES) == "normalized")
        return meta.get(SALT, ""), named, await self._now()

    # --- experiments -----------------------------------------------------------------------------

    async def start_experiment(self, request: api.StartExperimentRequest) -> api.ExperimentOut:
        """Start an experiment."""
        wanted = checked(request)
        return await self._changed(
            request.name, lambda text, now: experiments.started(text, wanted, now)
        )

    async def change_experiment(
        self, name: str, request: api.ChangeExperimentRequest
    ) -> api.ExperimentOut:
        """Change shares or arms of a running experiment."""
        wanted = checked(request)
        return await self._changed(
            name, lambda text, now: experiments.changed(text, name, wanted, now)
        )

    async def stop_experiment(self, name: str) -> api.ExperimentOut:
        """Stop an experiment."""
        return await self._changed(name, lambda text, now: experiments.stopped(text, name, now))

    async def experiment(self, name: str) -> api.ExperimentOut:
        """Return an experiment and its readout."""
        found = experiments.named(
            experiments.read(await self._store.meta.get(experiments.EXPERIMENTS)), name
        )
        return readout(found, await self._store.meta.arm_sums(name), waits=False)

    async def _changed(self, name: str, change: Callable[[str, float], str]) -> api.ExperimentOut:
        now = await self._now()
        await self._store.meta.change(experiments.EXPERIMENTS, lambda text: change(text, now))
        await self._store.flush()
        return await self.experiment(name)
