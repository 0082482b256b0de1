"""`Client` and `AsyncClient`: what both can do is written once, as coroutines.

`AsyncClient` has these methods as they are. `Client` runs each to its end at once: its requests
block instead of suspending, so a coroutine never waits for anybody (`blocking`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from inspect import isawaitable
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Literal, ParamSpec, Self, TypeVar

from ebrank.client import calls
from ebrank.client.calls import ONCE, Call, Retries, ServiceError, call
from ebrank.environment.extras import import_extra
from ebrank.errors import ParameterError
from ebrank.service import api, endpoints
from ebrank.service.endpoints import Again

if TYPE_CHECKING:
    import httpx

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

LONGEST_SECONDS = 3600.0
"""How long a deletion may take, which reads the whole log, or a new arm, which is compiled."""


def blocking(
    method: Callable[Concatenate[Any, Given], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[Any, Given], Answer]:
    """Return a method that does the same, and returns when it is done."""

    @wraps(method)
    def done(self: BaseClient, /, *given: Given.args, **named: Given.kwargs) -> Answer:
        try:
            method(self, *given, **named).send(None)
        except StopIteration as end:
            answer: Answer = end.value
            return answer
        raise RuntimeError("a request of a blocking client did not block; this is a bug")

    return done


async def _done(work: Any) -> Any:  # noqa: ANN401 (a value, or one to await)
    """Return the result of work that may have to be awaited."""
    return await work if isawaitable(work) else work


class BaseClient:
    """Where a server is and how to call it; methods raise `ServiceError`."""

    _transport: ClassVar[str]  # the class of httpx that carries requests
    _sleep: ClassVar[Any]  # a function that waits for some seconds

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        timeout: float = 5.0,
        retries: Retries | None = None,
    ) -> None:
        """Connect on the first call.

        Args:
            base_url: where the server listens.
            token: a bearer token, if the server needs one.
            timeout: seconds to wait for a response; what may take very long, such as a deletion or
                a new arm of an experiment, has an hour.
            retries: what to do if none comes.
        """
        if not base_url.startswith(("http://", "https://")):
            raise ParameterError(
                f"{base_url!r} is not the address of a server: it begins with http:// or https://, "
                f"such as http://{base_url or '127.0.0.1:8000'}"
            )
        httpx = import_extra("httpx", extra="service", purpose="to call a server")
        self._url = base_url.rstrip("/")
        self._retries = retries or Retries()
        self._errors = httpx.TransportError
        self._timeout = httpx.Timeout(timeout)
        self._long_timeout = httpx.Timeout(timeout, read=LONGEST_SECONDS)
        self._http: Any = getattr(httpx, self._transport)(
            headers={} if token is None else {"authorization": f"Bearer {token}"},
            verify=self._url.startswith("https://"),  # certificates take a while to load
        )

    async def _outcome(self, call: Call[Any]) -> httpx.Response:
        """Send a request once; raise one of httpx's errors if no response comes."""
        response: httpx.Response = await _done(
            self._http.request(
                call.endpoint.method,
                self._url + call.path,
                content=call.content,
                headers={"content-type": call.endpoint.accepts},
                timeout=self._long_timeout if call.endpoint.lasts else self._timeout,
            )
        )
        return response

    async def _send(self, call: Call[Answer], retries: Retries | None = None) -> Answer:
        """Send a request, again if that is allowed, and return the content of its response."""
        for attempt in count(1):
            outcome: httpx.Response | Exception
            try:
                outcome = await self._outcome(call)
            except self._errors as problem:
                outcome = problem
            pause = (retries or self._retries).pause(call.again, attempt, outcome)
            if pause is None:
                break
            await _done(self._sleep(pause))
        return call.result(outcome, self._url)

    async def _report(
        self, served: calls.Served, events: Sequence[api.EventIn]
    ) -> api.FeedbackResponse:
        """Report events about a list, unless it was not logged."""
        rejected = calls.rejection(served, len(events))
        return rejected if rejected is not None else await self._send(calls.feedback(events))


class Methods(BaseClient):
    """The methods of both clients; those of `Client` return without `await`."""

    async def put_items(self, query: str, items: calls.Items) -> api.PutItemsResponse:
        """Add candidates of a query, or change their features: a mapping of ids to features."""
        body = calls.put_body(items)
        return await self._send(call(endpoints.PUT_ITEMS, query, body=body))

    async def put_catalog(self, items: calls.Items) -> api.PutCatalogResponse:
        """Add items that queries share, or change their features, all or none."""
        return await self._send(call(endpoints.PUT_CATALOG, body=calls.put_body(items)))

    async def load_catalog(
        self, items: calls.Items | Iterable[tuple[str, calls.Features]]
    ) -> api.BulkResponse:
        """Add or change any number of items that queries share; the response names rejected ones.

        Items are a mapping, or pairs of ids and features, which may come from a generator.
        """
        answers = [await self._send(call) for call in calls.bulk(calls.catalog_lines(items))]
        return calls.together(answers)

    async def load_catalog_lines(self, lines: Iterable[bytes]) -> api.BulkResponse:
        """Do the same with lines of JSON, such as an open file's."""
        return calls.together([await self._send(call) for call in calls.bulk(lines)])

    async def catalog_item(self, item: str) -> api.CatalogItem:
        """Return an item that queries share: its features, and whether it is withdrawn."""
        return await self._send(call(endpoints.CATALOG_ITEM, item))

    async def catalog_items(
        self, *, cursor: str | None = None, limit: int | None = None
    ) -> api.CatalogResponse:
        """Return a page of items that queries share; the next one begins at the `next` of this."""
        return await self._send(call(endpoints.CATALOG_ITEMS, cursor=cursor, limit=limit))

    async def withdraw_from_all(self, item: str) -> api.WithdrawFromAllResponse:
        """Withdraw an item of the catalog from all queries; `put_catalog` brings it back."""
        return await self._send(call(endpoints.WITHDRAW_FROM_ALL, item))

    async def features(self) -> api.FeaturesResponse:
        """Return the features that items have, and how many items lack each."""
        return await self._send(call(endpoints.FEATURES))

    async def change_features(
        self,
        *,
        add: Iterable[str] = (),
        add_shared: Iterable[str] = (),
        remove: Iterable[str] = (),
        rename: Mapping[str, str] | None = None,
        name: Iterable[str] = (),
        require: Iterable[str] = (),
        dry_run: bool = False,
    ) -> api.FeaturesResponse:
        """Add, remove, rename and require features, or return what that would change.

        Args:
            add: names of new features of query and item.
            add_shared: names of new features that queries share.
            remove: names of features to remove.
            rename: new names by old ones.
            name: names for features that have only positions.
            require: names of added features that requests may no longer leave out.
            dry_run: if True, nothing changes.
        """
        added = [api.NewFeature(new) for new in add]
        added += [api.NewFeature(new, shared=True) for new in add_shared]
        body = api.ChangeFeaturesRequest(
            list(name), dict(rename or {}), list(remove), added, list(require), dry_run
        )
        again: Again = "always" if dry_run else "unsent"  # the same change fails the second time
        return await self._send(call(endpoints.CHANGE_FEATURES, body=body, again=again))

    async def withdraw(self, query: str, item: str) -> api.WithdrawResponse:
        """Withdraw a candidate; its history stays."""
        return await self._send(call(endpoints.WITHDRAW, query, item))

    async def rank(
        self,
        query: str,
        *,
        k: int | None = None,
        offset: int = 0,
        items: calls.Candidates | None = None,
        user: str | None = None,
        explore: bool = True,
        explain: bool = False,
        count: bool = True,
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
            explore: False ranks by relevance alone.
            explain: True explains each score.
            count: False neither logs nor counts the list: for bots, previews and monitoring.
            fallback: ids in your own order, which are returned, uncounted, if the server cannot be
                reached, does not know the query, or cannot serve it now.
        """
        listed = calls.candidates(items)
        wanted = api.RankRequest(query, k, offset, listed, user, explore, explain, count)
        try:
            return await self._send(
                call(endpoints.RANK, body=wanted), None if fallback is None else ONCE
            )
        except ServiceError as problem:
            return calls.own_list(problem, fallback, offset, k)

    async def rerank(
        self,
        query: str,
        documents: Sequence[str],
        *,
        top_n: int | None = None,
        order: Literal["score", "input"] = "score",
        user: str | None = None,
        count: bool = True,
    ) -> api.RerankResponse:
        """Return items, given by their ids as `documents`, reranked in the shape of Cohere's API.

        With `order="input"`, results are in the order of the documents instead of by score. Without
        `count`, the list is neither logged nor counted.
        """
        body = api.RerankRequest(query, list(documents), top_n, order=order, user=user, count=count)
        return await self._send(call(endpoints.RERANK, body=body))

    async def feedback(self, events: Iterable[calls.Event]) -> api.FeedbackResponse:
        """Report what users did; the response has the outcome of each event."""
        return await self._send(calls.feedback(events))

    async def click(
        self, served: calls.Served, item: str, *, event_id: str | None = None
    ) -> api.FeedbackResponse:
        """Report a click on an item of a list, given as the list or as its `ranking_id`."""
        events = [calls.event(served, item, "click", event_id)]
        return await self._report(served, events)

    async def impression(self, served: calls.Served, items: Iterable[str]) -> api.FeedbackResponse:
        """Report that a user saw some items of a list."""
        events = [calls.event(served, item, "impression") for item in items]
        return await self._report(served, events)

    async def query(
        self, query: str, *, cursor: int = 0, limit: int | None = None
    ) -> api.QueryResponse:
        """Return the state of a query's items, at most 1,000 or `limit`.

        Pass `next_cursor` of the response as `cursor` to get the next ones.
        """
        wanted = call(endpoints.QUERY, query, cursor=cursor or None, limit=limit)
        return await self._send(wanted)

    async def queries(
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
        wanted = call(
            endpoints.QUERIES, prefix=prefix, contains=contains, cursor=cursor, limit=limit
        )
        return await self._send(wanted)

    async def delete(self, kind: api.DeletedKind, name: str) -> api.DeletionOut:
        """Permanently delete an `item` in all queries, a `query`, or a `user`; return the proof."""
        return await self._send(call(endpoints.DELETE, body=api.DeletionRequest(kind, name)))

    async def retract(
        self,
        *,
        since: float | datetime | None = None,
        until: float | datetime | None = None,
        user: str | None = None,
        query: str | None = None,
        ranking_id: str | None = None,
        apply: bool = False,
        token: str | None = None,
    ) -> api.RetractionResponse:
        """Take back what lists and their events added to the counters, or say what that would be.

        Args:
            since: only lists since this time, in seconds since 1970 or with a time zone.
            until: only those before this time.
            user: only a user's.
            query: only those of a query.
            ranking_id: only this list.
            apply: True takes it back; otherwise nothing changes.
            token: only those that a token asked for, by its name.
        """
        request = api.RetractionRequest(since, until, user, query, ranking_id, apply, token)
        return await self._send(call(endpoints.RETRACT, body=request))

    async def deletions(self) -> api.DeletionsResponse:
        """Return the proofs of the latest deletions."""
        return await self._send(call(endpoints.DELETIONS))

    async def train(self) -> api.TrainResponse:
        """Refit the prior now; returns at once, see `models` for the outcome."""
        return await self._send(call(endpoints.TRAIN))

    async def models(self) -> api.ModelsResponse:
        """Return all versions of the prior."""
        return await self._send(call(endpoints.MODELS))

    async def activate(self, version: int) -> api.ModelsResponse:
        """Activate a version of the prior."""
        return await self._send(call(endpoints.ACTIVATE, version))

    async def start_experiment(self, request: api.StartExperimentRequest) -> api.ExperimentOut:
        """Start an experiment."""
        return await self._send(call(endpoints.START_EXPERIMENT, body=request))

    async def change_experiment(
        self, name: str, request: api.ChangeExperimentRequest
    ) -> api.ExperimentOut:
        """Change shares or arms of a running experiment."""
        return await self._send(call(endpoints.CHANGE_EXPERIMENT, name, body=request))

    async def stop_experiment(self, name: str) -> api.ExperimentOut:
        """Stop an experiment."""
        return await self._send(call(endpoints.STOP_EXPERIMENT, name))

    async def experiment(self, name: str) -> api.ExperimentOut:
        """Return an experiment and its readout."""
        return await self._send(call(endpoints.EXPERIMENT, name))

    async def experiments(self) -> api.ExperimentsResponse:
        """Return all experiments and their readouts."""
        return await self._send(call(endpoints.EXPERIMENTS))

    async def resume_exploration(self) -> api.BudgetOut:
        """Explore again after exploration has stopped by itself."""
        return await self._send(call(endpoints.RESUME_EXPLORATION))

    async def insights(self, hours: int = 1) -> api.Insights:
        """Return what the dashboard shows."""
        return await self._send(call(endpoints.INSIGHTS, hours=hours))


class AsyncClient(Methods):
    """Calls a server. Tasks may share one."""

    _transport = "AsyncClient"
    _sleep = staticmethod(asyncio.sleep)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


class Client(BaseClient):
    """Calls a server, and waits for its responses. Threads may share one."""

    _transport = "Client"
    _sleep = staticmethod(time.sleep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    put_items = blocking(Methods.put_items)
    put_catalog = blocking(Methods.put_catalog)
    load_catalog = blocking(Methods.load_catalog)
    load_catalog_lines = blocking(Methods.load_catalog_lines)
    catalog_item = blocking(Methods.catalog_item)
    catalog_items = blocking(Methods.catalog_items)
    withdraw_from_all = blocking(Methods.withdraw_from_all)
    features = blocking(Methods.features)
    change_features = blocking(Methods.change_features)
    withdraw = blocking(Methods.withdraw)
    rank = blocking(Methods.rank)
    rerank = blocking(Methods.rerank)
    feedback = blocking(Methods.feedback)
    click = blocking(Methods.click)
    impression = blocking(Methods.impression)
    query = blocking(Methods.query)
    queries = blocking(Methods.queries)
    delete = blocking(Methods.delete)
    retract = blocking(Methods.retract)
    deletions = blocking(Methods.deletions)
    train = blocking(Methods.train)
    models = blocking(Methods.models)
    activate = blocking(Methods.activate)
    start_experiment = blocking(Methods.start_experiment)
    change_experiment = blocking(Methods.change_experiment)
    stop_experiment = blocking(Methods.stop_experiment)
    experiment = blocking(Methods.experiment)
    experiments = blocking(Methods.experiments)
    resume_exploration = blocking(Methods.resume_exploration)
    insights = blocking(Methods.insights)
