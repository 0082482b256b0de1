"""All endpoints: what each reads, gives and needs, in one table.

A handler only passes a request to the engine; its documentation is what /docs shows.
"""

from __future__ import annotations

from ebrank.service import api
from ebrank.service.http.route import Request, Route

READERS = ("rank", "admin")
"""Scopes that may look at the state."""


async def put_items(call: Request) -> api.PutItemsResponse:
    """Add candidates of a query or change their features, all or none. Features are given by
    position or by name; the first items decide which, and how many. A withdrawn item comes back.
    """
    return await call.engine.put_items(call.names["query"], call.data.items)


async def withdraw(call: Request) -> api.WithdrawResponse:
    """Withdraw a candidate. Its history stays, and it can come back."""
    return await call.engine.withdraw(call.names["query"], call.names["item"])


async def rank(call: Request) -> api.RankResponse:
    """Rank a query's candidates. The list is logged before the answer leaves; feedback cites its
    `ranking_id`. `items` restricts the list to some candidates, and adds or changes those that
    come with features, but does not bring back withdrawn ones; in shadow mode it is your own
    order, which is served as it is.
    """
    return await call.engine.rank(call.data)


async def feedback(call: Request) -> api.FeedbackResponse:
    """Tell what users did. Each event is accepted, a duplicate, or rejected with a reason, and the
    rest of the batch stands. What was accepted is on disk when the answer leaves. An event
    counts once however often it is sent, so a batch without an answer can be sent again.
    """
    return await call.engine.feedback(call.data)


async def show_query(call: Request) -> api.QueryResponse:
    """Return the state of a query's items, the most promising and the most buried."""
    return await call.engine.query(call.names["query"])


async def train(call: Request) -> api.TrainResponse:
    """Refit the prior now, in a process of its own. It goes live if it is not worse on validation
    queries; see the list of models for the outcome.
    """
    return await call.engine.train()


async def list_models(call: Request) -> api.ModelsResponse:
    """Return all versions of the prior with their validation figures."""
    return await call.engine.models()


async def activate_model(call: Request) -> api.ModelsResponse:
    """Make a version of the prior the active one. Version 0 is the prior before any training."""
    return await call.engine.activate(call.names["version"])


async def insights(call: Request) -> api.Insights:
    """Return what the dashboard shows: traffic, new against old items, waiting times, the buried
    list, what exploration cost and found, calibration, models.
    """
    return await call.engine.insights()


_ITEMS = {
    "items": [
        {"id": "sencha", "features": {"price": 0.4, "rating": 4.6}},
        {"id": "assam", "features": {"price": 0.2, "rating": 4.1}},
    ]
}
_EVENT = {"event_id": "c1", "ranking_id": "as given by /v1/rank", "item": "sencha", "type": "click"}

API = [
    Route(
        "PUT",
        "/v1/queries/{query}/items",
        put_items,
        scopes=("admin",),
        reads=api.PutItemsRequest,
        gives=api.PutItemsResponse,
        example=_ITEMS,
    ),
    Route(
        "DELETE",
        "/v1/queries/{query}/items/{item}",
        withdraw,
        scopes=("admin",),
        gives=api.WithdrawResponse,
        errors=(404,),
    ),
    Route(
        "POST",
        "/v1/rank",
        rank,
        scopes=("rank",),
        reads=api.RankRequest,
        gives=api.RankResponse,
        errors=(404,),
        example={"query": "tea", "k": 10, "explain": True},
    ),
    Route(
        "POST",
        "/v1/feedback",
        feedback,
        scopes=("feedback",),
        reads=api.FeedbackRequest,
        gives=api.FeedbackResponse,
        read=api.read_events,
        example={"events": [_EVENT]},
    ),
    Route(
        "GET",
        "/v1/queries/{query}",
        show_query,
        scopes=READERS,
        gives=api.QueryResponse,
        errors=(404,),
    ),
    Route("POST", "/v1/train", train, scopes=("admin",), gives=api.TrainResponse),
    Route("GET", "/v1/models", list_models, scopes=READERS, gives=api.ModelsResponse),
    Route(
        "POST",
        "/v1/models/{version}/activate",
        activate_model,
        scopes=("admin",),
        gives=api.ModelsResponse,
        errors=(404,),
    ),
    Route("GET", "/v1/insights", insights, scopes=READERS, gives=api.Insights),
]
