"""The endpoints: what one is, which one a URL means, and all of the engine's.

Names in a URL may hold anything, even a slash, if it is percent-encoded; so a URL is first split at
its slashes and then decoded.

>>> async def show(call: Request) -> object: ...
>>> router = Router([Route("GET", "/v1/queries/{query}", show)])
>>> route, parts = router.find("GET", b"/v1/queries/tea%2Fgreen")
>>> route.names(parts)
{'query': 'tea/green'}
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints
from urllib.parse import parse_qsl, unquote

import msgspec

from ebrank.service import api
from ebrank.service.http.problems import HttpProblem, unreadable

if TYPE_CHECKING:
    from ebrank.service.engine import Engine

JSON, NDJSON = "application/json", "application/x-ndjson"

SAFE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every response; a page may have its own policy."""

PARTS: Mapping[str, Any] = {
    "query": api.Query,
    "item": api.Name,
    "version": Annotated[int, msgspec.Meta(ge=0, le=2**31)],
    "file": api.Name,
    "name": api.Label,
}
"""Types of the variable parts of URLs, by name."""
READERS: Mapping[Any, Callable[[bytes], Any]] = {
    api.PutItemsRequest: api.read_items,
    api.FeedbackRequest: api.read_events,
}
"""What decodes a body, by its type; others become one value of their type."""


@dataclass(frozen=True, slots=True)
class Request:
    """An admitted request.

    Attributes:
        engine: serves it.
        names: the variable parts of the URL, in their types.
        data: the body, as the route reads it.
        options: what follows `?` in the URL, as the route declares it.
        host: the server's name in the request.
        admit_query: called before the request creates a query; raises if there were too many.
        token: the name of the caller's token, None without.
    """

    engine: Engine
    names: Mapping[str, Any]
    data: Any
    admit_query: Callable[[], None]
    host: str = ""
    options: Any = None
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A response that is not JSON of a struct."""

    content: bytes
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> list[tuple[bytes, bytes]]:
        """Return all its headers."""
        own = {"content-type": self.media_type, "content-length": str(len(self.content))}
        headers = {**SAFE, **own, **self.headers}
        return [(key.encode("latin-1"), value.encode("latin-1")) for key, value in headers.items()]


@dataclass(frozen=True)
class Route:
    """An endpoint; the documentation is generated from it.

    Attributes:
        method: of HTTP.
        path: with its variable parts in braces, see `PARTS`.
        handle: returns the response: a struct of the type that its annotation says, or a `Page`.
        scopes: a token with any of these opens it; without any, it is open to everybody.
        reads: the type of the body.
        takes: a struct of what may follow `?` in the URL.
        accepts: the media type of the body.
        streams: whether `handle` gets the body piece by piece, as it arrives.
        errors: statuses it returns, besides those of every route.
        example: a body to try.
        waits: whether it can only be served once the engine has started.
        hidden: whether the documentation leaves it out.
    """

    method: str
    path: str
    handle: Callable[[Request], Awaitable[object]]
    scopes: tuple[str, ...] = ()
    reads: Any = None
    takes: Any = None
    accepts: str = JSON
    streams: bool = False
    errors: tuple[int, ...] = ()
    example: Any = None
    waits: bool = True
    hidden: bool = False

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The path, split at its slashes."""
        return tuple(self.path[1:].split("/"))

    @cached_property
    def decode(self) -> Callable[[bytes], Any]:
        """Turns a body into what `handle` gets; raises `msgspec.DecodeError`."""
        return READERS.get(self.reads) or msgspec.json.Decoder(self.reads).decode

    @cached_property
    def gives(self) -> Any:  # noqa: ANN401 (any type)
        """The type of the response; None for a page."""
        kind = get_type_hints(self.handle)["return"]
        return None if kind is Page else kind

    @property
    def name(self) -> str:
        """Its name in the documentation."""
        return str(getattr(self.handle, "__name__", self.path))

    @property
    def about(self) -> str:
        """What it does, in the words of its function."""
        return " ".join((self.handle.__doc__ or "").split())

    def names(self, parts: Sequence[str]) -> dict[str, Any]:
        """Return the variable parts of a URL that matched, decoded.

        Raises:
            HttpProblem: 400 if one is not UTF-8.
            HttpProblem: 422 if one is not what its type says.
        """
        return {
            pattern[1:-1]: _name(pattern[1:-1], part)
            for pattern, part in zip(self.parts, parts, strict=True)
            if pattern.startswith("{")
        }

    def options(self, query_string: bytes) -> Any:  # noqa: ANN401 (as the route declares it)
        """Return what follows `?` in a URL, as `handle` gets it.

        Raises:
            HttpProblem: 400 if it is not UTF-8.
            HttpProblem: 422 if it is not what the type says.
        """
        if self.takes is None:
            return None
        try:
            pairs = parse_qsl(query_string.decode(), keep_blank_values=True, errors="strict")
            return msgspec.convert(dict(pairs), self.takes, strict=False)
        except UnicodeDecodeError:
            raise HttpProblem(400, "the query string is not UTF-8") from None
        except msgspec.ValidationError as problem:
            raise unreadable(problem) from None

    def data(self, body: bytes) -> Any:  # noqa: ANN401 (as the route reads it)
        """Return the body as `handle` gets it.

        Raises:
            HttpProblem: 400 if it is not JSON, not UTF-8, or too deep.
            HttpProblem: 422 if it is not what the type says.
        """
        if self.reads is None:
            return None
        try:
            return self.decode(body)
        except msgspec.DecodeError as problem:
            raise unreadable(problem) from None
        except UnicodeDecodeError:
            place = api.not_utf8(body)
            raise HttpProblem(
                400, f"the body is not UTF-8 at byte {place:,}, counted from 0"
            ) from None
        except RecursionError:
            raise HttpProblem(400, "the body is nested too deeply to be read") from None


class Router:
    """Finds the route of a URL."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = list(routes)
        self._fixed = {
            (route.method, route.path): route for route in self.routes if "{" not in route.path
        }

    def find(self, method: str, raw_path: bytes) -> tuple[Route, tuple[str, ...]]:
        """Return the route and the parts of the URL, as they were sent.

        Raises:
            HttpProblem: 404 if there is none.
            HttpProblem: 405 if there is one for other methods.
            HttpProblem: 400 if the URL is not UTF-8.
        """
        try:
            path = raw_path.decode()
        except UnicodeDecodeError:
            raise HttpProblem(400, "the URL is not UTF-8") from None
        wanted = "GET" if method == "HEAD" else method
        parts = tuple(path[1:].split("/"))
        route = self._fixed.get((wanted, path))
        if route is not None:
            return route, parts
        near = [route for route in self.routes if _matches(route.parts, parts)]
        for route in near:
            if route.method == wanted:
                return route, parts
        if not near:
            raise HttpProblem(404, "nothing found at this URL; /docs lists all endpoints")
        allowed = ", ".join(sorted({route.method for route in near}))
        raise HttpProblem(405, f"this URL accepts only {allowed}", headers={"allow": allowed})


def _matches(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    return len(pattern) == len(parts) and all(
        part != "" if fixed.startswith("{") else fixed == part
        for fixed, part in zip(pattern, parts, strict=True)
    )


def _name(kind: str, part: str) -> Any:  # noqa: ANN401 (as `PARTS` says)
    try:
        return msgspec.convert(unquote(part, errors="strict"), PARTS[kind], strict=False)
    except UnicodeDecodeError:
        raise HttpProblem(400, "the URL is not UTF-8 after percent-decoding", kind) from None
    except msgspec.ValidationError as problem:
        raise HttpProblem(422, str(problem), kind) from None


# --- the engine's endpoints, in the order of the documentation ---
# A handler only passes a request to the engine; /docs shows its docstring.

Handler: TypeAlias = Callable[[Request], Awaitable[object]]

API: list[Route] = []


def endpoint(
    method: str,
    path: str,
    *scopes: str,
    among: list[Route] = API,
    **declared: Any,  # noqa: ANN401 (of `Route`)
) -> Callable[[Handler], Handler]:
    """Declare what a handler serves, and for tokens of which scopes; see `Route`."""

    def declare(handle: Handler) -> Handler:
        declared.setdefault("example", EXAMPLES.get(declared.get("reads")))
        among.append(Route(method, path, handle, scopes, **declared))
        return handle

    return declare


_ITEMS = [
    {"id": "sencha", "features": {"price": 0.4, "rating": 4.6}},
    {"id": "assam", "features": {"price": 0.2, "rating": 4.1}},
]
_EVENT = {"event_id": "c1", "ranking_id": "as given by /v1/rank", "item": "sencha", "type": "click"}
_RERANK = {"query": "tea", "documents": ["assam", "sencha"], "model": "auto", "top_n": 2}
EXAMPLES: Mapping[Any, object] = {
    api.PutItemsRequest: {"items": _ITEMS},
    api.ChangeFeaturesRequest: {"add": [{"name": "age", "shared": True}], "dry_run": True},
    api.RankRequest: {"query": "tea", "k": 10, "explain": True},
    api.RerankRequest: _RERANK,
    api.FeedbackRequest: {"events": [_EVENT]},
    api.DeletionRequest: {"kind": "user", "name": "ann"},
    api.RetractionRequest: {"user": "robot"},
    api.StartExperimentRequest: {"name": "prices", "arms": {"control": "own", "treatment": "auto"}},
    api.ChangeExperimentRequest: {"shares": {"control": 0.5, "treatment": 0.5}},
}
"""A body to try, by its type."""
_CATALOG = [
    {"id": "sencha", "features": {"stock": 12, "weight": 0.1}},
    {"id": "assam", "features": {"stock": 3, "weight": 0.25}},
]
_LINES = "".join(f"{msgspec.json.encode(item).decode()}\n" for item in _CATALOG)


@endpoint("PUT", "/v1/queries/{query}/items", "admin", reads=api.PutItemsRequest)
async def put_items(call: Request) -> api.PutItemsResponse:
    """Add candidates to a query or update their features. If one item is rejected, none is stored.
    Give features by position or by name; the first items determine which, and how many. A withdrawn
    item comes back.
    """
    return await call.engine.put_items(call.names["query"], await _items(call))


async def _items(call: Request) -> list[api.ItemIn]:
    """Return the items of a request; those of a large one take a while to read."""
    if isinstance(call.data, list):
        return call.data
    items: list[api.ItemIn] = []
    async with call.engine.turns as turns:
        try:
            for portion in call.data:
                items += portion
                await turns.next()
        except msgspec.DecodeError as problem:
            raise unreadable(problem) from None
    return items


@endpoint("DELETE", "/v1/queries/{query}/items/{item}", "admin", errors=(404,))
async def withdraw(call: Request) -> api.WithdrawResponse:
    """Withdraw a candidate. Its history stays, and it can come back."""
    return await call.engine.withdraw(call.names["query"], call.names["item"])


@endpoint("PUT", "/v1/items", "admin", reads=api.PutItemsRequest, example={"items": _CATALOG})
async def put_catalog(call: Request) -> api.PutCatalogResponse:
    """Add items that all queries share, or update their features, all or none. The next list of
    each query reflects the change. The first item determines which features are shared.
    """
    return await call.engine.put_catalog(await _items(call))


@endpoint(
    "POST", "/v1/items:bulk", "admin", reads=str, accepts=NDJSON, streams=True, example=_LINES
)
async def load_catalog(call: Request) -> api.BulkResponse:
    """Add or update any number of items that queries share, one line of JSON per item, as in `PUT
    /v1/items`. Each line is validated separately. Unchanged items cost little, so you can send a
    whole catalog every night.
    """
    return await call.engine.load_catalog(call.data)


@endpoint("GET", "/v1/items/{item}", "rank", "admin", errors=(404,))
async def show_catalog_item(call: Request) -> api.CatalogItem:
    """Return an item that queries share: its features, and whether it is withdrawn."""
    return await call.engine.catalog_item(call.names["item"])


@endpoint("GET", "/v1/items", "rank", "admin", takes=api.CatalogRequest)
async def list_catalog(call: Request) -> api.CatalogResponse:
    """List the items that queries share, by name. For the next page, send the response's `next` as
    `cursor`.
    """
    return await call.engine.catalog_items(call.options)


@endpoint("DELETE", "/v1/items/{item}", "admin", errors=(404,))
async def withdraw_from_all(call: Request) -> api.WithdrawFromAllResponse:
    """Withdraw an item of the catalog from the lists of all queries. Its features and its history
    stay; the next `PUT /v1/items` with it brings it back.
    """
    return await call.engine.withdraw_from_all(call.names["item"])


@endpoint("GET", "/v1/features", "admin")
async def show_features(call: Request) -> api.FeaturesResponse:
    """Return the features of items, with the number of items that lack each one and its weight in
    the active model.
    """
    return await call.engine.features()


@endpoint("PATCH", "/v1/features", "admin", reads=api.ChangeFeaturesRequest)
async def change_features(call: Request) -> api.FeaturesResponse:
    """Add, remove, rename and require features. Serving continues: features that items lack count
    as missing, and the active model uses the features it knows until the next fit. Requests may
    leave out an added feature until you require it, and may still send a removed one. With
    `dry_run`, nothing changes, and the response says what would.
    """
    return await call.engine.change_features(call.data)


@endpoint("POST", "/v1/rank", "rank", reads=api.RankRequest, errors=(404,))
async def rank(call: Request) -> api.RankResponse:
    """Rank a query's candidates. The server logs the list before it responds; feedback refers to it
    by its `ranking_id`. `items` restricts the list to some candidates, and adds or updates those
    that come with features, but does not bring back withdrawn ones; the arm `own` of an experiment
    serves them in your order.
    """
    return await call.engine.rank(call.data, call.admit_query, call.token)


@endpoint("POST", "/v2/rerank", "rank", reads=api.RerankRequest, errors=(404,))
async def rerank(call: Request) -> api.RerankResponse:
    """Rerank documents, in the shape of Cohere's API, for search engines and libraries that call
    it. A document is the id of an item. The list is logged like any other, with all results as
    shown; `id` is the `ranking_id` that feedback cites. `order: "input"` returns results in the
    order of the documents. `ranking.unknown` says what happens to unknown ids.
    """
    return await call.engine.rerank(call.data, call.admit_query, call.token)


@endpoint("POST", "/v1/feedback", "feedback", reads=api.FeedbackRequest)
async def feedback(call: Request) -> api.FeedbackResponse:
    """Report what users did. Each event is accepted, a duplicate, or rejected with a reason,
    independently of the others. Accepted events are on disk before the server responds. An event
    counts once, however often it is sent, so you can safely resend a batch that got no response.
    """
    return await call.engine.feedback(call.data)


@endpoint("GET", "/v1/queries/{query}", "rank", "admin", takes=api.QueryOptions, errors=(404,))
async def show_query(call: Request) -> api.QueryResponse:
    """Return the state of a query's items, and the most buried. A response holds at most 1,000
    items: send its `next_cursor` as `cursor` to get the next ones.
    """
    return await call.engine.query(call.names["query"], call.options)


@endpoint("GET", "/v1/queries", "rank", "admin", takes=api.QueriesRequest)
async def list_queries(call: Request) -> api.QueriesResponse:
    """List queries by name: those that begin with `prefix` and contain `contains`. For the next
    page, send the response's `next` as `cursor`.
    """
    return await call.engine.queries(call.options)


@endpoint("POST", "/v1/deletions", "admin", reads=api.DeletionRequest, errors=(404,))
async def delete(call: Request) -> api.DeletionOut:
    """Permanently delete an item in all queries, a query with its history, or a user's name in the
    log. Lists of a deleted user still count, but belong to nobody. The response is a proof that the
    store keeps, with a digest instead of the name.
    """
    return await call.engine.delete(call.data)


@endpoint("POST", "/v1/retractions", "admin", reads=api.RetractionRequest)
async def retract(call: Request) -> api.RetractionResponse:
    """Take back what lists and their events added to the counters: of a time, a user, a query, or
    one list. They stay in the log, but do not count. Without `apply`, nothing
    changes, and the response says what would. What was rolled up cannot be taken back. The proof is
    listed with those of deletions.
    """
    return await call.engine.retract(call.data)


@endpoint("GET", "/v1/deletions", "admin")
async def list_deletions(call: Request) -> api.DeletionsResponse:
    """List the proofs of the latest deletions."""
    return await call.engine.deletions()


@endpoint("POST", "/v1/train", "admin")
async def train(call: Request) -> api.TrainResponse:
    """Refit the prior now, in a separate process. It goes live unless held-out queries show
    that it is clearly worse; see the list of models for the result.
    """
    return await call.engine.train()


@endpoint("GET", "/v1/models", "rank", "admin")
async def list_models(call: Request) -> api.ModelsResponse:
    """Return all versions of the prior with their validation figures."""
    return await call.engine.models()


@endpoint("POST", "/v1/models/{version}/activate", "admin", errors=(404,))
async def activate_model(call: Request) -> api.ModelsResponse:
    """Activate a version of the prior. Version 0 is the prior before any training."""
    return await call.engine.activate(call.names["version"])


@endpoint("POST", "/v1/experiments", "admin", reads=api.StartExperimentRequest)
async def start_experiment(call: Request) -> api.ExperimentOut:
    """Start an experiment. Arms are policies, or `own`: the order in which a request names its
    `items`. One runs at a time; other servers of the store follow within seconds.
    """
    return await call.engine.start_experiment(call.data)


@endpoint(
    "PATCH",
    "/v1/experiments/{name}",
    "admin",
    reads=api.ChangeExperimentRequest,
    errors=(404,),
)
async def change_experiment(call: Request) -> api.ExperimentOut:
    """Change shares or policies of a running experiment. Queries or users stay in their arms as far
    as the shares allow.
    """
    return await call.engine.change_experiment(call.names["name"], call.data)


@endpoint("POST", "/v1/experiments/{name}/stop", "admin", errors=(404,))
async def stop_experiment(call: Request) -> api.ExperimentOut:
    """Stop an experiment. Its readout stays; events that come later no longer count for it."""
    return await call.engine.stop_experiment(call.names["name"])


@endpoint("GET", "/v1/experiments/{name}", "rank", "admin", errors=(404,))
async def show_experiment(call: Request) -> api.ExperimentOut:
    """Return an experiment and its readout: clicks, weighted outcome and new items found per list,
    of each arm and as differences from the first, with intervals that you may look at every day.
    """
    return await call.engine.experiment(call.names["name"])


@endpoint("GET", "/v1/experiments", "rank", "admin")
async def list_experiments(call: Request) -> api.ExperimentsResponse:
    """List all experiments with their readouts."""
    return await call.engine.experiments()


@endpoint("POST", "/v1/exploration/resume", "admin", errors=(404,))
async def resume_exploration(call: Request) -> api.BudgetOut:
    """Explore again after exploration has stopped by itself, because it cost more than
    `ranking.exploration_budget`. Clicks are compared from now on.
    """
    return await call.engine.resume()


@endpoint("GET", "/v1/insights", "rank", "admin", takes=api.InsightsRequest)
async def insights(call: Request) -> api.Insights:
    """Return what the dashboard shows: how the newest items do, traffic, errors, new and old items,
    waiting times, buried items, what exploration cost and found, calibration, how far features are
    trusted, models. Sums cover the last `hours`.
    """
    return await call.engine.insights(call.options.hours)
