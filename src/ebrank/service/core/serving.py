"""Lists: each is made, logged, added to the counters in memory, and remembered for feedback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash
from msgspec import UNSET, structs

from ebrank.service import api
from ebrank.service.core.contract import new_token
from ebrank.service.core.experiments import OWN, Assignment
from ebrank.service.core.feedback import RankingIds, Served, remember
from ebrank.service.core.items import Items, reject_withdrawn
from ebrank.service.core.lists import (
    Listing,
    first_places,
    listing,
    ranked_items,
    scored,
)
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.models import Deployment
from ebrank.service.core.problems import Problem, not_candidates, unknown_query
from ebrank.service.core.resources import Resources, Watcher
from ebrank.service.core.windows import ListKey, hashed
from ebrank.service.store.base import SALT
from ebrank.service.store.records import RankingEntry
from ebrank.typing import Ints


@dataclass(slots=True)
class Choice:
    """The list to serve, and how it relates to those the user has seen.

    Attributes:
        served: the list.
        entry: as it will be logged; its id, and what depends on the time, is set then.
        order: the places of all ranks down to its last.
        page: whose list it is, if its order must be kept.
        arm: of the running experiment.
        token: the random digits of its id, if they were drawn already.
    """

    served: Listing
    entry: RankingEntry
    order: Ints
    page: ListKey | None
    arm: Assignment | None
    token: str | None

    @property
    def first_of(self) -> ListKey | None:
        """Whose list it is, if it shows something for the first time within the window."""
        return None if self.entry.seen and all(self.entry.seen) else self.page


class Serving:
    """Serves lists, as the settings say.

    Attributes:
        examination: p of the ranks.
    """

    def __init__(self, resources: Resources, items: Items, watcher: Watcher) -> None:
        self._resources, self._settings = resources, resources.settings.ranking
        self._items = items
        self._watcher = watcher
        curve = resources.settings.examination.examination()
        self.examination = curve(np.arange(1, api.MOST_RANKS + 1))
        self._draws = np.random.PCG64()
        self._ids = RankingIds(after=resources.clock.last)
        self._making: dict[ListKey, asyncio.Future[None]] = {}  # lists on their way to the log

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
        active, queries = self._resources.active, self._resources.queries
        while True:
            deployment = active.deployment
            if active.stored != deployment.model.version:
                deployment = await active.follow()
            if request.items is not None:
                await self._put_new(name, request.items, now, admit)
            live = await queries.get(name, now)  # last: from here to the log nothing waits
            if live is None:
                raise unknown_query(name)
            if not request.count:
                return self._uncounted(request, live, deployment, now)
            choice = self._choose(request, live, deployment, now)
            page = choice.first_of
            if page is None:
                return await self._served(live, choice, request, basis, caller)
            making = self._making.get(page)
            if making is None:
                break
            await asyncio.wait([making])  # then this one is a refresh, or the next page
        self._making[page] = asyncio.get_running_loop().create_future()
        try:
            return await self._served(live, choice, request, basis, caller)
        finally:
            self._making.pop(page).set_result(None)

    async def _put_new(
        self, name: str, items: Sequence[str | api.ItemIn], now: float, admit: Callable[[], None]
    ) -> None:
        """Add new items of a request to its query, if the others are there or in the catalog."""
        live = await self._resources.queries.get(name, now)
        new = [item for item in items if isinstance(item, api.ItemIn)]
        named, given = ids_of(items), {item.id for item in new}
        rows = [None] * len(named) if live is None else live.rows_of(named)
        if live is not None:
            reject_withdrawn(live, named, rows)
        pairs = zip(named, rows, strict=True)
        unknown = [item for item, row in pairs if row is None and item not in given]
        if unknown:
            catalog = self._resources.catalog
            if self._settings.unknown == "reject":
                in_catalog = await catalog.read(unknown)
                strangers = [item for item in unknown if item not in in_catalog]
                if strangers:
                    raise not_candidates(strangers)
            features: list[float | None] = [] if catalog.schema.features else [1.0]  # the first
            new += [api.ItemIn(item, features or {}) for item in unknown]
        await self._items.enter(name, new, now, admit)

    def _choose(
        self, request: api.RankRequest, live: LiveQuery, deployment: Deployment, now: float
    ) -> Choice:
        """Return the list for a request."""
        settings, offset, k = self._settings, request.offset, request.k or self._settings.k
        if offset + k > api.MOST_RANKS:
            raise Problem(f"offset and k must not exceed {api.MOST_RANKS} together", "offset")
        only = None if request.items is None else _rows(live, request.items)
        user = page = kept = arm = token = None
        if request.user is not None:
            user = hashed(request.user, self._resources.meta[SALT])
        if deployment.assigner is not None:
            arm = deployment.assigner.assigned(request, live.state.query, user)
        if user is not None and settings.window:
            among, label = None if only is None else _hash(only), "" if arm is None else arm.label
            page = ListKey(live.state.query, user, among, request.explore, live.life, label)
            kept = self._resources.windows.get(page, self._resources.timer())
        ranking = deployment.model if arm is None else deployment.arms[arm.arm]
        candidates = scored(
            live,
            ranking,
            only,
            draws=self._draws,
            lists=self._resources.pace.planned(live, ranking, now),
            elsewhere=self._resources.sharing.elsewhere(live, ranking, deployment),
        )
        contract = self._resources.contract
        explores = request.explore and (request.count or not contract.on)  # or who would pay for it
        callers = arm is not None and arm.policy == OWN
        if callers:
            order = np.arange(len(candidates.rows))[: offset + k]
        else:
            order = first_places(candidates, offset + k, explore=explores, kept=kept)
        served = listing(candidates, order, self.examination, offset)
        if contract.on and not callers:
            token = new_token()
            drawn = token if kept is None else kept.view
            if explores and not contract.allows(drawn, served, self.examination, now):
                explores = False
                order = first_places(candidates, offset + k, explore=False, kept=kept)
                served = listing(candidates, order, self.examination, offset)
        if callers:  # the caller's order is not our exploration, whatever it costs
            served.explored, served.cost = np.zeros(len(served.places), np.bool_), 0.0
        rows = served.rows.tolist()
        entry = RankingEntry(
            id="",
            query=live.state.query,
            time=now,
            model=deployment.model.version,
            items=tuple(live.ids.at(rows)),
            explored=tuple(served.explored.tolist()),
            relevance=tuple(served.relevance.tolist()),
            cost=served.cost,
            user=user,
            offset=offset,
            hint=live.hint(rows),
        )
        if arm is not None:
            entry.arm, entry.cell = arm.label, arm.cell
        if kept is not None:
            seen = kept.ranks_of(served.rows)
            entry.continues, entry.seen = kept.view, seen if any(seen) else ()
        return Choice(served, entry, order, page, arm, token)

    async def _served(
        self,
        live: LiveQuery,
        choice: Choice,
        request: api.RankRequest,
        basis: int,
        caller: str | None,
    ) -> api.RankResponse:
        """Log a list, add it to the counters, and return it as in the response."""
        own, served, entry = self._resources, choice.served, choice.entry
        entry.counted = own.settings.events.impressions == "served"
        entry.time = now = own.clock()  # after all that may take time: the log never goes back
        entry.id, entry.epoch = self._ids.new(now, choice.token), own.queries.epoch(now)
        entry.token = caller
        # As it was when the list was made, not as this list changes it.
        items = ranked_items(live, entry.items, served, explain=request.explain)
        commit, changed = await own.queries.write([entry], basis)
        own.active.stored = commit.model
        self._watcher.ranking(live, served, entry)
        if choice.token is not None:
            own.contract.ranking(served, entry, self.examination)
        rows, current = served.rows.tolist(), changed[entry.query]
        if current is not None:
            current.add(entry, rows)
        if choice.page is not None:
            kept = served.candidates.rows[choice.order]
            own.windows.keep(choice.page, kept, served.offset, entry.id, own.timer())
        compared = choice.token is not None
        remember(own, entry.id, Served.of(entry, rows, live.life, compared=compared))
        arm = UNSET if choice.arm is None else f"{choice.arm.experiment}:{choice.arm.arm}"
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
        deployment, now = self._resources.active.deployment, self._resources.clock()
        return self._uncounted(request, live, deployment, now)

    def _uncounted(
        self, request: api.RankRequest, live: LiveQuery, deployment: Deployment, now: float
    ) -> api.RankResponse:
        """Return a list that is neither logged nor counted."""
        request = structs.replace(request, count=False)
        choice = self._choose(request, live, deployment, now)
        items = ranked_items(live, choice.entry.items, choice.served, explain=request.explain)
        return api.RankResponse(api.UNCOUNTED, deployment.model.version, items, counted=False)


def ids_of(items: Sequence[str | api.ItemIn]) -> list[str]:
    """Return the names in a request, each once."""
    return list(dict.fromkeys(item if isinstance(item, str) else item.id for item in items))


def _hash(rows: Ints) -> int:
    """Return a number for a set of rows, in any order."""
    return xxhash.xxh3_64_intdigest(np.sort(rows).tobytes())


def _rows(live: LiveQuery, items: Sequence[str | api.ItemIn]) -> Ints:
    """Return the rows of items in the order given; raise if some are no longer candidates.

    They were when the request came, but it may have waited since.
    """
    names = ids_of(items)
    rows = live.rows_of(names)
    if None in rows:
        raise not_candidates([name for name, row in zip(names, rows, strict=True) if row is None])
    reject_withdrawn(live, names, rows)
    return np.array(rows, np.int64)
