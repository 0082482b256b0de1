"""Every endpoint of the service, declared once.

The server finds and reads requests by these declarations, and makes the OpenAPI document of them;
the client calls them. The text below an endpoint says what it does. What serves it has its name in
lower case: a method of the engine, or of `http.pages`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from ebrank.service import api
from ebrank.service.meanings import meanings

JSON, NDJSON = "application/json", "application/x-ndjson"
Answer = TypeVar("Answer")
Again: TypeAlias = Literal["always", "broken", "unsent"]
Scope: TypeAlias = Literal["rank", "feedback", "admin"]

PARTS: Mapping[str, Any] = {
    "query": api.Query,
    "item": api.Name,
    "version": Annotated[int, msgspec.Meta(ge=0, le=2**31)],
    "file": api.Name,
    "name": api.Label,
}
"""Types of the variable parts of URLs, by name."""


@dataclass(frozen=True, eq=False)
class Endpoint(Generic[Answer]):
    """An endpoint."""

    method: str
    """of HTTP."""
    path: str
    """with its variable parts in braces, see `PARTS`."""
    gives: type[Answer]
    """the type of the response; bytes are a page."""
    scopes: tuple[Scope, ...] = ()
    """a token with any of these opens it; without any, it is open to everybody."""
    reads: Any = None
    """the type of the body."""
    takes: Any = None
    """a struct of what may follow `?` in the URL."""
    accepts: str = JSON
    """the media type of the body; lines are read piece by piece, as they arrive."""
    errors: tuple[int, ...] = ()
    """statuses it returns, besides those of every endpoint, and 404 of what a path names."""
    example: Any = None
    """a body to try, instead of that for its type in `EXAMPLES`."""
    again: Again | None = None
    """when the client may send it again, see `client.Retries`; by default as its method says."""
    lasts: bool = False
    """whether it may take very long."""
    waits: bool = True
    """whether it can only be served once the engine has started."""
    hidden: bool = False
    """whether the documentation leaves it out."""

    @property
    def sent_again(self) -> Again:
        """When the client may send it again."""
        return self.again or ("always" if self.method in ("GET", "PUT", "DELETE") else "unsent")

    @property
    def sample(self) -> object:
        """A body to try."""
        return self.example or EXAMPLES.get(self.reads)


_ADMIN: tuple[Scope, ...] = ("admin",)
_READ: tuple[Scope, ...] = ("rank", "admin")

_CATALOG = [
    {"id": "sencha", "features": {"stock": 12, "weight": 0.1}},
    {"id": "assam", "features": {"stock": 3, "weight": 0.25}},
]
_LINES = "".join(f"{msgspec.json.encode(item).decode()}\n" for item in _CATALOG)
_EVENT = {"event_id": "c1", "ranking_id": "as given by /v1/rank", "item": "sencha", "type": "click"}
_RERANK = {"query": "tea", "documents": ["assam", "sencha"], "model": "auto", "top_n": 2}
EXAMPLES: Mapping[Any, object] = {
    api.PutItemsRequest: {"items": [{"id": "sencha", "features": {"price": 0.4, "rating": 4.6}}]},
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

PUT_ITEMS = Endpoint(
    "PUT", "/v1/queries/{query}/items", api.PutItemsResponse, _ADMIN, api.PutItemsRequest
)
"""Add candidates to a query or update their features. If one item is rejected, none is stored. Give
features by position or by name; the first items determine which, and how many. A withdrawn item
comes back.
"""
WITHDRAW = Endpoint("DELETE", "/v1/queries/{query}/items/{item}", api.WithdrawResponse, _ADMIN)
"""Withdraw a candidate. Its history stays, and it can come back."""
PUT_CATALOG = Endpoint(
    "PUT",
    "/v1/items",
    api.PutCatalogResponse,
    _ADMIN,
    api.PutItemsRequest,
    example={"items": _CATALOG},
)
"""Add items that all queries share, or update their features, all or none. The next list of each
query reflects the change. The first item determines which features are shared.
"""
LOAD_CATALOG = Endpoint(
    "POST",
    "/v1/items:bulk",
    api.BulkResponse,
    _ADMIN,
    str,
    accepts=NDJSON,
    example=_LINES,
    again="always",
)
"""Add or update any number of items that queries share, one line of JSON per item, as in `PUT
/v1/items`. Each line is validated separately. Unchanged items cost little, so you can send a whole
catalog every night.
"""
CATALOG_ITEM = Endpoint("GET", "/v1/items/{item}", api.CatalogItem, _READ)
"""Return an item that queries share: its features, and whether it is withdrawn."""
CATALOG_ITEMS = Endpoint("GET", "/v1/items", api.CatalogResponse, _READ, takes=api.CatalogRequest)
"""List the items that queries share, by name. For the next page, send the response's `next` as
`cursor`.
"""
WITHDRAW_FROM_ALL = Endpoint("DELETE", "/v1/items/{item}", api.WithdrawFromAllResponse, _ADMIN)
"""Withdraw an item of the catalog from the lists of all queries. Its features and its history stay;
the next `PUT /v1/items` with it brings it back.
"""
FEATURES = Endpoint("GET", "/v1/features", api.FeaturesResponse, _ADMIN)
"""Return the features of items, with the number of items that lack each one and its weight in the
active model.
"""
CHANGE_FEATURES = Endpoint(
    "PATCH", "/v1/features", api.FeaturesResponse, _ADMIN, api.ChangeFeaturesRequest
)
"""Add, remove, rename and require features. Serving continues: features that items lack count as
missing, and the active model uses the features it knows until the next fit. Requests may leave out
an added feature until you require it, and may still send a removed one. With `dry_run`, nothing
changes, and the response says what would.
"""
RANK = Endpoint(
    "POST", "/v1/rank", api.RankResponse, ("rank",), api.RankRequest, errors=(404,), again="broken"
)
"""Rank a query's candidates. The server logs the list before it responds; feedback refers to it by
its `ranking_id`. `items` restricts the list to some candidates, and adds or updates those that come
with features, but does not bring back withdrawn ones; the arm `own` of an experiment serves them in
your order.
"""
RERANK = Endpoint(
    "POST",
    "/v2/rerank",
    api.RerankResponse,
    ("rank",),
    api.RerankRequest,
    errors=(404,),
    again="broken",
)
"""Rerank documents, in the shape of Cohere's API, for search engines and libraries that call it. A
document is the id of an item. The list is logged like any other, with all results as shown; `id` is
the `ranking_id` that feedback cites. `order: "input"` returns results in the order of the
documents. `ranking.unknown` says what happens to unknown ids.
"""
FEEDBACK = Endpoint(
    "POST", "/v1/feedback", api.FeedbackResponse, ("feedback",), api.FeedbackRequest, again="always"
)
"""Report what users did. Each event is accepted, a duplicate, or rejected with a reason,
independently of the others. Accepted events are on disk before the server responds. An event counts
once, however often it is sent, so you can safely resend a batch that got no response.
"""
QUERY = Endpoint("GET", "/v1/queries/{query}", api.QueryResponse, _READ, takes=api.QueryOptions)
"""Return the state of a query's items, and the most buried. A response holds at most 1,000 items:
send its `next_cursor` as `cursor` to get the next ones.
"""
QUERIES = Endpoint("GET", "/v1/queries", api.QueriesResponse, _READ, takes=api.QueriesRequest)
"""List queries by name: those that begin with `prefix` and contain `contains`. For the next page,
send the response's `next` as `cursor`.
"""
DELETE = Endpoint(
    "POST", "/v1/deletions", api.DeletionOut, _ADMIN, api.DeletionRequest, errors=(404,), lasts=True
)
"""Permanently delete an item in all queries, a query with its history, or a user's name in the log.
Lists of a deleted user still count, but belong to nobody. The response is a proof that the store
keeps, with a digest instead of the name.
"""
RETRACT = Endpoint(
    "POST", "/v1/retractions", api.RetractionResponse, _ADMIN, api.RetractionRequest, lasts=True
)
"""Take back what lists and their events added to the counters: of a time, a user, a query, or one
list. They stay in the log, but do not count. Without `apply`, nothing changes, and the response
says what would. What was rolled up cannot be taken back. The proof is listed with those of
deletions.
"""
DELETIONS = Endpoint("GET", "/v1/deletions", api.DeletionsResponse, _ADMIN)
"""List the proofs of the latest deletions."""
TRAIN = Endpoint("POST", "/v1/train", api.TrainResponse, _ADMIN)
"""Refit the prior now, in a separate process. It goes live unless held-out queries show that it is
clearly worse; see the list of models for the result.
"""
MODELS = Endpoint("GET", "/v1/models", api.ModelsResponse, _READ)
"""Return all versions of the prior with their validation figures."""
ACTIVATE = Endpoint(
    "POST", "/v1/models/{version}/activate", api.ModelsResponse, _ADMIN, again="always"
)
"""Activate a version of the prior. Version 0 is the prior before any training."""
START_EXPERIMENT = Endpoint(
    "POST", "/v1/experiments", api.ExperimentOut, _ADMIN, api.StartExperimentRequest, lasts=True
)
"""Start an experiment. Arms are policies, or `own`: the order in which a request names its `items`.
One runs at a time; other servers of the store follow within seconds.
"""
CHANGE_EXPERIMENT = Endpoint(
    "PATCH",
    "/v1/experiments/{name}",
    api.ExperimentOut,
    _ADMIN,
    api.ChangeExperimentRequest,
    lasts=True,
)
"""Change shares or policies of a running experiment. Queries or users stay in their arms as far as
the shares allow.
"""
STOP_EXPERIMENT = Endpoint("POST", "/v1/experiments/{name}/stop", api.ExperimentOut, _ADMIN)
"""Stop an experiment. Its readout stays; events that come later no longer count for it."""
EXPERIMENT = Endpoint("GET", "/v1/experiments/{name}", api.ExperimentOut, _READ)
"""Return an experiment and its readout: clicks, weighted outcome and new items found per list, of
each arm and as differences from the first, with intervals that you may look at every day.
"""
EXPERIMENTS = Endpoint("GET", "/v1/experiments", api.ExperimentsResponse, _READ)
"""List all experiments with their readouts."""
RESUME_EXPLORATION = Endpoint(
    "POST", "/v1/exploration/resume", api.BudgetOut, _ADMIN, errors=(404,), again="always"
)
"""Explore again after exploration has stopped by itself, because it cost more than
`ranking.exploration_budget`. Clicks are compared from now on.
"""
INSIGHTS = Endpoint("GET", "/v1/insights", api.Insights, _READ, takes=api.InsightsRequest)
"""Return what the dashboard shows: how the newest items do, traffic, errors, new and old items,
waiting times, buried items, what exploration cost and found, calibration, the weight of features,
models. Sums cover the last `hours`.
"""
HEALTHZ = Endpoint("GET", "/healthz", api.Health, waits=False)
"""Respond if the process is alive. Restart it if it does not respond."""
READYZ = Endpoint("GET", "/readyz", api.Health, errors=(503,), waits=False)
"""Say whether requests can be served: 503 while starting, while closing, and while the store fails.
It is tried once a second, and the outcome of requests counts too.
"""
METRICS = Endpoint("GET", "/metrics", bytes, ("rank", "feedback", "admin"), waits=False)
"""Return counters and latencies in the text format of Prometheus."""
OPENAPI = Endpoint("GET", "/openapi.json", bytes, waits=False, hidden=True)
DOCS = Endpoint("GET", "/docs", bytes, waits=False, hidden=True)
DOCS_STYLE = Endpoint("GET", "/docs.css", bytes, waits=False, hidden=True)
DASHBOARD = Endpoint("GET", "/", bytes, waits=False, hidden=True)
DASHBOARD_FILE = Endpoint("GET", "/dashboard/{file}", bytes, waits=False, hidden=True)

ENDPOINTS: Mapping[str, Endpoint[Any]] = {
    name.lower(): value for name, value in list(globals().items()) if isinstance(value, Endpoint)
}
"""Every endpoint, by its name."""


def about(name: str) -> str:
    """Return what an endpoint does."""
    return meanings(sys.modules[__name__])[name.upper()]
