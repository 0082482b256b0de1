"""Lists: each is made, logged, added to the counters in memory, and remembered for feedback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import UNSET, structs

from ebrank.service import api
from ebrank.service.core.items import Items, ids_of
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.models import Deployment
from ebrank.service.core.problems import unknown_query
from ebrank.service.core.resources import Resources
from ebrank.service.serving.described import described
from ebrank.service.serving.lists import Draft, Logged, RankingIds, Served
from ebrank.service.serving.stages import Stages
from ebrank.service.store import counting
from ebrank.service.store.base import SALT, hashed
from ebrank.service.store.records import RankingEntry


class Serving:
    """Serves lists, as the settings say."""

    def __init__(self, resources: Resources, items: Items, stages: Stages) -> None:
        self._resources, self._settings = resources, resources.settings.ranking
        self._items, self._stages = items, stages
        self._ids = RankingIds(after=resources.clock.last)

    async def made_list(
        self,
        name: str,
        request: api.RankRequest,
        now: float,
        basis: int,
        admit: Callable[[], None],
        caller: str | None = None,
    ) -> api.RankResponse:
        """Return a list of the query with this name; if counted, on disk after the next flush.

        `basis` is the incarnation of the store that the queries in memory were read in. `admit` is
        called before a query is created; `caller` is the name of the token of the request.
        """
        active, windows = self._resources.active, self._stages.windows
        while True:
            deployment = active.deployment
            if active.stored != deployment.model.version:
                deployment = await active.follow()
            if request.items is not None:
                await self._items.enter(name, request.items, now, admit)
            live = await self._resources.queries.get(name, now)
            if live is None:
                raise unknown_query(name)
            draft = self._drafted(request, live, deployment, now)  # from here on nothing waits
            if not request.count:
                return self._uncounted(draft)
            page = draft.first_of
            if page is None:
                return await self._logged(draft, basis, caller)
            under_way = windows.under_way(page)
            if under_way is None:
                break
            await asyncio.wait([under_way])  # then this one is a refresh, or the next page
        with windows.making(page):
            return await self._logged(draft, basis, caller)

    def _drafted(
        self, request: api.RankRequest, live: LiveQuery, deployment: Deployment, now: float
    ) -> Draft:
        """Return the list for a request: all stages shape it."""
        query, model = live.state.query, deployment.model
        entry = RankingEntry("", query, now, model.version, (), offset=request.offset)
        if request.user is not None:
            entry.user = hashed(request.user, self._resources.meta[SALT])
        depth = request.offset + (request.k or self._settings.k)
        p = self._resources.examination
        draft = Draft(request, live, deployment, model, entry, p, depth, request.explore)
        self._stages.shape(draft)
        return draft

    async def _logged(self, draft: Draft, basis: int, caller: str | None) -> api.RankResponse:
        """Log a list, add it to the counters, and return it as in the response."""
        resources, live, entry = self._resources, draft.live, draft.entry
        entry.counted = resources.settings.events.impressions == "served"
        entry.time = now = resources.clock()  # after all that may wait: the log never goes back
        entry.id, entry.epoch = self._ids.new(now, draft.token), resources.queries.epoch(now)
        entry.token = caller
        # As it was when the list was made, not as this list changes it.
        items = _ranked(draft)
        commit, changed = await resources.queries.write([entry], basis)
        resources.active.stored = commit.model
        rows, current = draft.served.rows.tolist(), changed[entry.query]
        change = counting.change_of(entry, counting.ACCEPTED, rows, ())
        self._stages.logged(Logged(change, live, draft), draft.deployment)
        if current is not None:
            current.add(change)
        served = Served.of(entry, rows, live.life, compared=not draft.callers)
        resources.recent.put(entry.id, served.packed())
        arm = UNSET if draft.arm is None else f"{draft.arm.experiment}:{draft.arm.arm}"
        return api.RankResponse(entry.id, entry.model, items, arm=arm)

    def list_from_memory(self, name: str, request: api.RankRequest) -> api.RankResponse | None:
        """Return an uncounted list made without the store; None if memory does not suffice.

        Items of the request that memory does not have are left out.
        """
        live = self._resources.queries.in_memory(name)
        if live is None or not self._settings.degraded:
            return None
        if request.items is not None:
            named = ids_of(request.items)
            pairs = zip(named, live.rows_of(named), strict=True)
            listed = [item for item, row in pairs if live.lists_row(row)]
            if not listed:
                return None
            request = structs.replace(request, items=listed)
        request, now = structs.replace(request, count=False), self._resources.clock()
        return self._uncounted(self._drafted(request, live, self._resources.active.deployment, now))

    def _uncounted(self, draft: Draft) -> api.RankResponse:
        """Return a list that is neither logged nor counted, as in the response."""
        return api.RankResponse(api.UNCOUNTED, draft.entry.model, _ranked(draft), counted=False)


def _ranked(draft: Draft) -> list[api.RankedItem]:
    """Return the items of a list as in a response."""
    names, served = draft.entry.items, draft.served
    ranks = range(served.offset + 1, served.offset + len(names) + 1)
    if not draft.request.explain:
        scores = served.candidates.details.scores[served.places].tolist()
        return list(map(api.RankedItem, names, ranks, scores))
    columns = {"rank": ranks, "explored": served.explored.tolist()}
    return described(api.RankedItem, draft.live, served.candidates, served.places, **columns)
