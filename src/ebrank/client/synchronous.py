"""A client that waits for responses."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from ebrank.client import calls
from ebrank.client.connection import Connection
from ebrank.client.errors import ServiceError
from ebrank.client.retries import ONCE, Retries

if TYPE_CHECKING:
    from ebrank.service import api

Answer = TypeVar("Answer")


class Client(Connection):
    """Calls a server. Threads may share one."""

    _transport = "Client"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def put_items(self, query: str, items: calls.Items) -> api.PutItemsResponse:
        """Add candidates of a query, or change their features: a mapping of ids to features."""
        return self._send(calls.put_items(query, items))

    def put_catalog(self, items: calls.Items) -> api.PutCatalogResponse:
        """Add items that queries share, or change their features, all or none."""
        return self._send(calls.put_catalog(items))

    def load_catalog(
        self, items: calls.Items | Iterable[tuple[str, calls.Features]]
    ) -> api.BulkResponse:
        """Add or change any number of items that queries share; the response names rejected ones.

        Items are a mapping, or pairs of ids and features, which may come from a generator.
        """
        return self.load_catalog_lines(calls.catalog_lines(items))

    def load_catalog_lines(self, lines: Iterable[bytes]) -> api.BulkResponse:
        """Do the same with lines of JSON, such as an open file's."""
        answers = [self._send(call) for call in calls.load_catalog(lines)]
        return calls.together(answers)

    def catalog_item(self, item: str) -> api.CatalogItem:
        """Return the features of an item that queries share."""
        return self._send(calls.catalog_item(item))

    def features(self) -> api.FeaturesResponse:
        """Return the features that items have, and how many items lack each."""
        return self._send(calls.features())

    def change_features(
        self,
        *,
        add: Iterable[str] = (),
        add_shared: Iterable[str] = (),
        remove: Iterable[str] = (),
        rename: Mapping[str, str] | None = None,
        name: Iterable[str] = (),
        dry_run: bool = False,
    ) -> api.FeaturesResponse:
        """Add, remove and rename features, or return what that would change.

        Args:
            add: names of new features of query and item.
            add_shared: names of new features that queries share.
            remove: names of features to remove.
            rename: new names by old ones.
            name: names for features that have only positions.
            dry_run: if True, nothing changes.
        """
        return self._send(calls.change_features(add, add_shared, remove, rename, name, dry_run))

    def withdraw(self, query: str, item: str) -> api.WithdrawResponse:
        """Withdraw a candidate; its history stays."""
        return self._send(calls.withdraw(query, item))

    def rank(
        self,
        query: str,
        *,
        k: int | None = None,
        offset: int | None = None,
        items: calls.Candidates | None = None,
        user: str | None = None,
        session: str | None = None,
        context: Mapping[str, str] | None = None,
        explore: bool | None = None,
        explain: bool | None = None,
        fallback: Iterable[str] | None = None,
    ) -> api.RankResponse:
        """Return a list of a query's candidates.

        With a `fallback` the client calls the server once, without retries.

        Args:
            query: its name.
            k: how many items.
            offset: how many ranks are above the list: 10 for a second page of ten.
            items: only these: ids, or a mapping of ids to features, which are stored first.
            user: whose list it is, so that it stays the same within the window.
            session: whose request it is, if the server recognizes bots by their sessions.
            context: describes the user or the situation, such as `{"device": "mobile"}`.
            explore: False ranks by relevance alone.
            explain: True explains each score.
            fallback: ids in your own order, which are returned, `degraded`, if the server cannot
                be reached, does not know the query, or cannot serve it now.
        """
        wanted = {"k": k, "offset": offset, "items": items, "user": user, "session": session}
        wanted |= {"context": context, "explore": explore, "explain": explain}
        if fallback is None:
            return self._send(calls.rank(query, **wanted))
        try:
            return self._send(calls.rank(query, **wanted), ONCE)
        except ServiceError as problem:
            return calls.own_list(problem, fallback, offset, k)

    def feedback(self, events: Iterable[calls.Event]) -> api.FeedbackResponse:
        """Report what users did; the response has the outcome of each event."""
        return self._send(calls.feedback(events))

    def click(
        self, served: calls.Served, item: str, *, event_id: str | None = None
    ) -> api.FeedbackResponse:
        """Report a click on an item of a list, given as the list or as its `ranking_id`."""
        events = [calls.event(served, item, "click", event_id)]
        return calls.rejection(served, 1) or self.feedback(events)

    def impression(self, served: calls.Served, items: Iterable[str]) -> api.FeedbackResponse:
        """Report that a user saw some items of a list."""
        events = [calls.event(served, item, "impression") for item in items]
        return calls.rejection(served, len(events)) or self.feedback(events)

    def query(self, query: str, *, cursor: int = 0, limit: int | None = None) -> api.QueryResponse:
        """Return the state of a query's items, at most 1,000 or `limit`.

        Pass `next_cursor` of the response as `cursor` to get the next ones.
        """
        return self._send(calls.query(query, cursor, limit))

    def queries(
        self,
        *,
        prefix: str = "",
        contains: str = "",
        cursor: str | None = None,
        limit: int | None = None,
    ) -> api.QueriesResponse:
        """Return a page of queries by name; the next one begins at the `next` of this one.

        Args:
            prefix: only names that begin with it.
            contains: only names that contain it.
            cursor: the `next` of the page before.
            limit: the most to return.
        """
        asked = {"prefix": prefix, "contains": contains, "cursor": cursor, "limit": limit}
        return self._send(calls.queries(**asked))

    def delete(self, kind: api.DeletedKind, name: str) -> api.DeletionOut:
        """Permanently delete an `item` in all queries, a `query`, or a `user`; return the proof."""
        return self._send(calls.delete(kind, name))

    def deletions(self) -> api.DeletionsResponse:
        """Return the proofs of the latest deletions."""
        return self._send(calls.deletions())

    def train(self) -> api.TrainResponse:
        """Refit the prior now; returns at once, see `models` for the outcome."""
        return self._send(calls.train())

    def models(self) -> api.ModelsResponse:
        """Return all versions of the prior."""
        return self._send(calls.models())

    def activate(self, version: int) -> api.ModelsResponse:
        """Activate a version of the prior."""
        return self._send(calls.activate(version))

    def insights(self, hours: int = 1) -> api.Insights:
        """Return what the dashboard shows."""
        return self._send(calls.insights(hours))

    def _send(self, call: calls.Call[Answer], retries: Retries | None = None) -> Answer:
        attempt = 0
        while True:
            attempt += 1
            try:
                outcome = self._http.request(
                    call.method,
                    self._url + call.path,
                    content=call.content,
                    headers=call.headers,
                    timeout=self._long_timeout if call.lasts else self._timeout,
                )
            except self._errors as problem:
                outcome = problem
            pause = (retries or self._retries).pause(call.again, attempt, outcome)
            if pause is None:
                return call.result(outcome, self._url)
            time.sleep(pause)
