"""Lists: each is made, logged, added to the counters in memory, and remembered for feedback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import UNSET, structs

from ebrank.service import api
from ebrank.service.core import lists
from ebrank.service.core.bots import Bots
from ebrank.service.core.catalog import Catalog
from ebrank.service.core.chooser import Choice, Chooser, ids_of, unknown_names
from ebrank.service.core.exploration import ListKey
from ebrank.service.core.feedback import RecentLists, Served
from ebrank.service.core.items import Items
from ebrank.service.core.queries.cache import Queries
from ebrank.service.core.queries.live import LiveQuery
from ebrank.service.core.queries.pace import Pace
from ebrank.service.core.ranking_ids import RankingIds
from ebrank.service.insight.activity import Activity
from ebrank.service.learning.models import Model
from ebrank.service.learning.versions import ModelVersions
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store, UnknownQuery
from ebrank.service.store.records import RankingEntry


class Serving:
    """Serves lists."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        items: Items,
        queries: Queries,
        catalog: Catalog,
        versions: ModelVersions,
        pace: Pace,
        chooser: Chooser,
        recent: RecentLists,
        activity: Activity,
        bots: Bots,
        ids: RankingIds,
        clock: Callable[[], float],
        timer: Callable[[], float],
    ) -> None:
        self._store = store
        self._settings = settings
        self._items = items
        self._queries = queries
        self._catalog = catalog
        self._versions = versions
        self._pace = pace
        self._chooser = chooser
        self._recent = recent
        self._activity = activity
        self._bots = bots
        self._ids = ids
        self._clock = clock
        self._timer = timer
        self._making: dict[ListKey, asyncio.Future[None]] = {}  # lists on their way to the log

    async def logged_list(
        self, name: str, request: api.RankRequest, now: float, epoch: int
    ) -> api.RankResponse:
        """Return a list of the query with this name; it is on disk after the next flush.

        The epoch is that in which memory read its queries.
        """
        while True:
            model = await self._versions.current()
            live = await self._live(name, request, now)  # last: from here to the log nothing waits
            expected = self._pace.planned(live, model, now)
            choice = self._chooser.choose(request, live, model, self._timer(), expected)
            page = choice.first_of
            making = None if page is None else self._making.get(page)
            if making is None:
                break
            await asyncio.wait([making])  # then this one is a refresh, or the next page
        visitor = self._bots.visitor(request, choice.user) if self._bots.on else None
        if page is not None:
            self._making[page] = asyncio.get_running_loop().create_future()
        try:
            return await self._served(live, model, choice, visitor, epoch, explain=request.explain)
        finally:
            if page is not None:
                self._making.pop(page).set_result(None)

    async def _live(self, name: str, request: api.RankRequest, now: float) -> LiveQuery:
        """Return the query of a request, with its new items added if the others are known."""
        if request.items is not None:
            live = await self._queries.get(name, now)
            new = [item for item in request.items if isinstance(item, api.ItemIn)]
            unknown = unknown_names(live, request.items)
            if unknown:
                await self._items.check_in_catalog(unknown)
                new += map(api.ItemIn, unknown)
            await self._items.put(name, new, now, skip_known=True)
        return await self._items.query(name, now)

    async def _served(
        self,
        live: LiveQuery,
        model: Model,
        choice: Choice,
        visitor: str | None,
        epoch: int,
        *,
        explain: bool,
    ) -> api.RankResponse:
        """Log a list, add it to the counters, and return it as in the response."""
        served, would = choice.served, choice.would
        rows = served.rows.tolist()
        others = [] if would is None else would.rows.tolist()
        names, would_rank = live.ids.at(rows), live.ids.at(others)
        bot = visitor is not None and self._bots.suspects(visitor, self._timer(), lists=1)
        now = self._clock()  # after all that may take time: the log's times never go back
        entry = RankingEntry(
            id=self._ids.new(now),
            query=live.state.query,
            time=now,
            model=model.version,
            items=tuple(names),
            counted=not bot and self._settings.events.impressions == "served",
            explored=tuple(served.explored.tolist()),
            relevance=tuple(served.relevance.tolist()),
            cost=served.cost,
            user=choice.user,
            would_rank=tuple(would_rank),
            offset=served.offset,
            continues=choice.continues,
            seen=choice.seen,
            bot=bot,
            epoch=self._queries.epoch(now),
            contexts=choice.contexts,
            hint=live.hint(rows + others),
        )
        # As it was known when the list was made, not as this list changes it.
        items = lists.ranked_items(names, served, explain=explain)
        try:
            with self._queries.following([entry.query]):
                commit = await self._store.log.write(
                    [entry], epoch=epoch, known=self._queries.version
                )
        except UnknownQuery:  # the same request is served again
            if visitor is not None:
                self._bots.take_back(visitor, self._timer(), lists=1)
            raise
        self._versions.found(commit.model)
        self._catalog.found = commit.catalog
        self._activity.ranking(live, served, entry)
        if would is not None:
            self._activity.shadow(live, served, would, entry)
        query = entry.query
        changed = self._queries.wrote(query, commit.versions[query], commit.news.get(query))
        if changed is not None:
            changed.add(entry, rows)
        self._chooser.remember(choice, None if bot else entry.id, self._timer())
        self._recent.add(entry.id, Served.of(entry, rows, live.life, visitor))
        if bot:
            self._bots.on_bot("list")
        shadow = UNSET if would is None else would_rank
        return api.RankResponse(entry.id, entry.model, items, shadow)

    def list_from_memory(self, name: str, request: api.RankRequest) -> api.RankResponse | None:
        """Return a list that is neither logged nor counted; None if memory does not suffice.

        Items of the request that memory does not know are left out.
        """
        live = self._queries.in_memory(name)
        if live is None or not self._settings.ranking.degraded:
            return None
        if request.items is not None:
            named = ids_of(request.items)
            rows = live.rows_of(named)
            known = [one for one, row in zip(named, rows, strict=True) if live.lists_row(row)]
            if not known or (len(known) < len(named) and self._settings.ranking.mode == "shadow"):
                return None
            request = structs.replace(request, items=known)
        model, now = self._versions.model, self._timer()
        expected = self._pace.planned(live, model, self._clock())
        choice = self._chooser.choose(request, live, model, now, expected)
        names = live.ids.at(choice.served.rows.tolist())
        items = lists.ranked_items(names, choice.served, explain=request.explain)
        would = choice.would
        shadow = UNSET if would is None else live.ids.at(would.rows.tolist())
        return api.RankResponse(api.UNCOUNTED, model.version, items, shadow, degraded=True)
