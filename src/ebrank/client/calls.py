"""What each method of a client sends and receives; the clients only transport it.

>>> rank("tea", k=3).content
b'{"query":"tea","k":3}'
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from time import time_ns
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from ebrank.client.errors import ServiceError
from ebrank.client.retries import Again, unsent
from ebrank.errors import ParameterError
from ebrank.service import api

if TYPE_CHECKING:
    import httpx

Answer = TypeVar("Answer")
Features: TypeAlias = Iterable[float | None] | Mapping[str, float | None]
Items: TypeAlias = Mapping[str, Features]
Candidates: TypeAlias = Iterable[str] | Items
Event: TypeAlias = api.EventIn | Mapping[str, object]
LINES_AT_ONCE = 5000
Served: TypeAlias = api.RankResponse | str


@dataclass(frozen=True)
class Call(Generic[Answer]):
    """A request, and how to read its response; `lasts` if that may take very long."""

    method: str
    path: str
    gives: type[Answer]
    again: Again = "always"
    content: bytes | None = None
    media_type: str = "application/json"
    lasts: bool = False

    @property
    def headers(self) -> dict[str, str]:
        """The headers that only this request has."""
        return {"content-type": self.media_type}

    def result(self, outcome: httpx.Response | Exception, base_url: str) -> Answer:
        """Return the content of a response; raise `ServiceError` if there is none, or an error."""
        if isinstance(outcome, Exception):
            what = str(outcome) or type(outcome).__name__
            if self.lasts and not unsent(outcome):
                what += f". It may still be under way: see {self.path} before you repeat it"
            raise ServiceError(f"{base_url} does not answer: {what}", code="unreachable") from None
        if not outcome.is_success:
            raise _refusal(outcome)
        try:
            return msgspec.json.decode(outcome.content, type=self.gives)
        except msgspec.DecodeError as problem:
            raise ServiceError(
                f"{outcome.url}: not an answer of this service: {problem}",
                status=outcome.status_code,
                code="foreign",
            ) from None


def put_items(query: str, items: Items) -> Call[api.PutItemsResponse]:
    """Add candidates or change their features."""
    body = api.PutItemsRequest([_item(name, features) for name, features in items.items()])
    path = f"/v1/queries/{_part(query)}/items"
    return Call("PUT", path, api.PutItemsResponse, content=_json(body))


def put_catalog(items: Items) -> Call[api.PutCatalogResponse]:
    """Add items that queries share, or change their features."""
    body = api.PutItemsRequest([_item(name, features) for name, features in items.items()])
    return Call("PUT", "/v1/items", api.PutCatalogResponse, content=_json(body))


def catalog_lines(items: Items | Iterable[tuple[str, Features]]) -> Iterator[bytes]:
    """Yield items as lines of JSON."""
    pairs = items.items() if isinstance(items, Mapping) else items
    return (_json(_item(name, features)) for name, features in pairs)


def load_catalog(lines: Iterable[bytes]) -> Iterator[Call[api.BulkResponse]]:
    """Yield requests of some thousand lines each, which can all be sent again."""
    left = iter(lines)
    while some := list(islice(left, LINES_AT_ONCE)):
        content = b"\n".join(line.rstrip(b"\r\n") for line in some)
        yield Call(
            "POST",
            "/v1/items:bulk",
            api.BulkResponse,
            content=content,
            media_type="application/x-ndjson",
        )


def together(answers: Sequence[api.BulkResponse]) -> api.BulkResponse:
    """Return the outcome of all lines, numbered over all requests."""
    errors = [
        api.LineError(part * LINES_AT_ONCE + error.line, error.reason)
        for part, answer in enumerate(answers)
        for error in answer.errors
    ]
    return api.BulkResponse(
        lines=sum(answer.lines for answer in answers),
        changed=sum(answer.changed for answer in answers),
        unchanged=sum(answer.unchanged for answer in answers),
        rejected=sum(answer.rejected for answer in answers),
        errors=errors,
    )


def catalog_item(item: str) -> Call[api.CatalogItem]:
    """Ask for the features of an item that queries share."""
    return Call("GET", f"/v1/items/{_part(item)}", api.CatalogItem)


def features() -> Call[api.FeaturesResponse]:
    """Ask which features items have."""
    return Call("GET", "/v1/features", api.FeaturesResponse)


def change_features(
    add: Iterable[str],
    add_shared: Iterable[str],
    remove: Iterable[str],
    rename: Mapping[str, str] | None,
    name: Iterable[str],
    dry_run: bool,
) -> Call[api.FeaturesResponse]:
    """Change the features that items have."""
    added = [api.NewFeature(name) for name in add]
    added += [api.NewFeature(name, shared=True) for name in add_shared]
    body = api.ChangeFeaturesRequest(list(name), dict(rename or {}), list(remove), added, dry_run)
    again: Again = "always" if dry_run else "unsent"  # the same change fails the second time
    return Call("PATCH", "/v1/features", api.FeaturesResponse, again, _json(body))


def withdraw(query: str, item: str) -> Call[api.WithdrawResponse]:
    """Withdraw a candidate."""
    path = f"/v1/queries/{_part(query)}/items/{_part(item)}"
    return Call("DELETE", path, api.WithdrawResponse)


def rank(query: str, **wanted: Any) -> Call[api.RankResponse]:  # noqa: ANN401 (see `Client.rank`)
    """Ask for a list; the server decides whatever is None."""
    body = {"query": query} | {key: value for key, value in wanted.items() if value is not None}
    if "items" in body:
        body["items"] = _candidates(body["items"])
    if "context" in body:
        body["context"] = dict(body["context"])
    return Call("POST", "/v1/rank", api.RankResponse, "broken", _json(body))


FALLS_BACK = (404, 408, 429, 500, 502, 503, 504)
"""Statuses for which the caller's own order is returned; others mean that the request is wrong."""


def own_list(
    problem: ServiceError, fallback: Iterable[str] | None, offset: int | None, k: int | None
) -> api.RankResponse:
    """Return the caller's own order instead of a list that did not come, or raise the problem."""
    if fallback is None or (problem.status is not None and problem.status not in FALLS_BACK):
        raise problem
    order, above = list(fallback), offset or 0
    order = order[above:] if k is None else order[above : above + k]
    items = [api.RankedItem(name, above + at, 0.0) for at, name in enumerate(order, start=1)]
    return api.RankResponse(api.UNCOUNTED, 0, items, degraded=True)


def rejection(served: Served, count: int) -> api.FeedbackResponse | None:
    """Return a server's response to events about a list that was not logged; None if it was."""
    if served != api.UNCOUNTED and (isinstance(served, str) or not served.degraded):
        return None
    reason = f"{api.UNCOUNTED}: the list was not logged"
    results = [api.EventResult(at, "rejected", reason) for at in range(count)]
    return api.FeedbackResponse(0, 0, count, results)


def feedback(events: Iterable[Event]) -> Call[api.FeedbackResponse]:
    """Report what users did."""
    body = api.FeedbackRequest([_event(at, one) for at, one in enumerate(events)])
    for one in body.events:
        for name, number in (("time", one.time), ("value", one.value)):
            if isinstance(number, float) and not math.isfinite(number):
                raise ParameterError(f"event {one.event_id!r}: its {name} is {number}")
    return Call("POST", "/v1/feedback", api.FeedbackResponse, content=_json(body))


def event(
    served: Served,
    item: str,
    type: str,
    event_id: str | None = None,
    time: float | datetime | None = None,
) -> api.EventIn:
    """Return an event about an item of a list; its id is made here, once."""
    ranking_id = served if isinstance(served, str) else served.ranking_id
    return api.EventIn(event_id or _event_id(), ranking_id, item, type, time)


def _event(at: int, given: Event) -> api.EventIn:
    try:
        return msgspec.convert(given, api.EventIn)
    except msgspec.ValidationError as problem:
        raise ParameterError(
            f"event {at}: {problem}. An event is an `ebrank.client.EventIn`, or a mapping with "
            "event_id, ranking_id, item, type and, if you like, time and value"
        ) from None


def _event_id() -> str:
    # It begins with the time, so that a store's index of ids grows at one end: a quarter of the
    # disk traffic of ids that are random throughout.
    return f"{time_ns():016x}{secrets.token_hex(8)}"


def query(name: str, cursor: int = 0, limit: int | None = None) -> Call[api.QueryResponse]:
    """Ask for the state of a query, or of a part of it."""
    options = {"cursor": cursor or None, "limit": limit}
    given = urlencode({key: value for key, value in options.items() if value is not None})
    path = f"/v1/queries/{_part(name)}"
    return Call("GET", f"{path}?{given}" if given else path, api.QueryResponse)


def queries(**asked: str | int | None) -> Call[api.QueriesResponse]:
    """List queries; the server decides whatever is None."""
    given = {name: value for name, value in asked.items() if value not in (None, "")}
    end = f"?{urlencode(given)}" if given else ""
    return Call("GET", f"/v1/queries{end}", api.QueriesResponse)


def delete(kind: api.DeletedKind, name: str) -> Call[api.DeletionOut]:
    """Permanently delete one thing."""
    body = api.DeletionRequest(kind, name)
    return Call("POST", "/v1/deletions", api.DeletionOut, "unsent", _json(body), lasts=True)


def deletions() -> Call[api.DeletionsResponse]:
    """List the proofs of deletions."""
    return Call("GET", "/v1/deletions", api.DeletionsResponse)


def train() -> Call[api.TrainResponse]:
    """Refit the prior."""
    return Call("POST", "/v1/train", api.TrainResponse, "unsent")


def models() -> Call[api.ModelsResponse]:
    """List the versions of the prior."""
    return Call("GET", "/v1/models", api.ModelsResponse)


def activate(version: int) -> Call[api.ModelsResponse]:
    """Activate a version."""
    return Call("POST", f"/v1/models/{version}/activate", api.ModelsResponse)


def insights(hours: int) -> Call[api.Insights]:
    """Ask for what the dashboard shows."""
    return Call("GET", f"/v1/insights?hours={hours}", api.Insights)


def headers(token: str | None) -> dict[str, str]:
    """Return the headers of every request."""
    return {} if token is None else {"authorization": f"Bearer {token}"}


def _refusal(response: httpx.Response) -> ServiceError:
    try:
        told = msgspec.json.decode(response.content, type=_Refusal).error
    except msgspec.DecodeError:
        told = _Told("foreign", f"{response.url} answered with status {response.status_code}")
    return ServiceError(told.message, status=response.status_code, code=told.code, field=told.field)


class _Told(msgspec.Struct):
    code: str
    message: str
    field: str | None = None


class _Refusal(msgspec.Struct):
    error: _Told


def _part(name: str) -> str:
    """Return a name as one part of a URL; dots alone would mean something else there."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _candidates(items: Candidates) -> list[str | api.ItemIn]:
    if isinstance(items, Mapping):
        return [_item(name, features) for name, features in items.items()]
    return list(items)


def _item(name: str, features: Features) -> api.ItemIn:
    if isinstance(features, Mapping):
        return api.ItemIn(name, {key: _number(value, name, key) for key, value in features.items()})
    return api.ItemIn(name, [_number(value, name, at) for at, value in enumerate(features)])


def _number(value: float | None, item: str, feature: str | int) -> float | None:
    number = None if value is None else float(value)  # NumPy's numbers too
    if number is not None and not math.isfinite(number):
        # JSON has no such number; it would become null, which means something else.
        raise ParameterError(
            f"item {item!r}, feature {feature!r}: {number} is no number that can be sent. "
            "Send None for a missing value"
        )
    return number


def _json(body: object) -> bytes:
    return msgspec.json.encode(body)
