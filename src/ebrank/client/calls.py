"""A request to a server, how to read its response, when to send it again, and what it is made of.

>>> call(endpoints.QUERY, "tea", cursor=3).path
'/v1/queries/tea?cursor=3'
"""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from time import time_ns
from typing import TYPE_CHECKING, Generic, TypeAlias
from urllib.parse import quote, urlencode

import msgspec

from ebrank.errors import EBRankError, ParameterError
from ebrank.service import api, endpoints
from ebrank.service.endpoints import Again, Answer, Endpoint

if TYPE_CHECKING:
    import httpx

Features: TypeAlias = Iterable[float | None] | Mapping[str, float | None]
Items: TypeAlias = Mapping[str, Features]
Candidates: TypeAlias = Iterable[str] | Items
Event: TypeAlias = api.EventIn | Mapping[str, object]
Served: TypeAlias = api.RankResponse | str

LINES_AT_ONCE = 5000
FALLS_BACK = (404, 408, 409, 429, 500, 502, 503, 504)
"""Statuses for which the caller's own order is returned; others mean that the request is wrong."""


class ServiceError(EBRankError):
    """The server refused a request, or could not be reached.

    Attributes:
        status: of the response; None if none came.
        code: a short name of the problem; `unreachable` if no response came.
        field: the part of the request at fault, if the server names one.
    """

    def __init__(
        self, message: str, *, status: int | None = None, code: str, field: str | None = None
    ) -> None:
        super().__init__(message if field is None else f"{field}: {message}")
        self.status = status
        self.code = code
        self.field = field


@dataclass(frozen=True)
class Call(Generic[Answer]):
    """A request, and how to read its response."""

    endpoint: Endpoint[Answer]
    path: str
    content: bytes | None
    again: Again

    def result(self, outcome: httpx.Response | Exception, base_url: str) -> Answer:
        """Return the content of a response; raise `ServiceError` if there is none, or an error."""
        if isinstance(outcome, Exception):
            what = str(outcome) or type(outcome).__name__
            if self.endpoint.lasts and not unsent(outcome):
                what += f". It may still be under way: see {self.path} before you repeat it"
            raise ServiceError(f"{base_url} does not answer: {what}", code="unreachable") from None
        if not outcome.is_success:
            raise _refusal(outcome)
        try:
            return msgspec.json.decode(outcome.content, type=self.endpoint.gives)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise ServiceError(
                f"{outcome.url}: not an answer of this service: {problem}",
                status=outcome.status_code,
                code="foreign",
            ) from None


def _refusal(response: httpx.Response) -> ServiceError:
    try:
        error = msgspec.json.decode(response.content, type=api.ErrorResponse).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        what = f"{response.url} answered with status {response.status_code}"
        error = api.ErrorBody("foreign", what)
    status = response.status_code
    return ServiceError(error.message, status=status, code=error.code, field=error.field)


def call(
    endpoint: Endpoint[Answer],
    *names: str | int,
    body: object = None,
    again: Again | None = None,
    **options: str | int | None,
) -> Call[Answer]:
    """Return a request to an endpoint: the names in its path, its body, and what follows `?`.

    >>> call(endpoints.WITHDRAW, "a/b", "..").path
    '/v1/queries/a%2Fb/items/%2E%2E'
    """
    left = map(str, names)
    path = "/".join(
        _quoted(next(left)) if part.startswith("{") else part for part in endpoint.path.split("/")
    )
    given = {name: value for name, value in options.items() if value not in (None, "")}
    content = body if body is None or isinstance(body, bytes) else encoded(body)
    query = f"?{urlencode(given)}" if given else ""
    return Call(endpoint, path + query, content, again or endpoint.sent_again)


def _quoted(part: str) -> str:
    # Dots alone would mean something else in a URL.
    return quote(part, safe="") if part.strip(".") else "%2E" * len(part)


def encoded(body: object) -> bytes:
    """Return a body as JSON."""
    return msgspec.json.encode(body)


def item(name: str, features: Features) -> api.ItemIn:
    """Return an item as it is sent."""
    if isinstance(features, Mapping):
        return api.ItemIn(name, {key: _number(value, name, key) for key, value in features.items()})
    return api.ItemIn(name, [_number(value, name, at) for at, value in enumerate(features)])


def _number(value: float | None, item: str, feature: str | int) -> float | None:
    try:
        number = None if value is None else float(value)  # NumPy's numbers too
    except (TypeError, ValueError):
        raise ParameterError(
            f"item {item!r}, feature {feature!r}: {value!r} is not a number. "
            "Send a number for each category, such as 0 or 1"
        ) from None
    if number is not None and not math.isfinite(number):
        # JSON has no such number; it would become null, which means something else.
        raise ParameterError(
            f"item {item!r}, feature {feature!r}: {number} is no number that can be sent. "
            "Send None for a missing value"
        )
    return number


def put_body(items: Items) -> api.PutItemsRequest:
    """Return the body that adds or changes items."""
    return api.PutItemsRequest([item(*pair) for pair in items.items()])


def candidates(items: Candidates | None) -> list[str | api.ItemIn] | None:
    """Return the items of a rank request: ids, or whole items."""
    if isinstance(items, Mapping):
        return [item(*pair) for pair in items.items()]
    return None if items is None else list(items)


def catalog_lines(items: Items | Iterable[tuple[str, Features]]) -> Iterator[bytes]:
    """Yield items as lines of JSON."""
    pairs = items.items() if isinstance(items, Mapping) else items
    return (encoded(item(*pair)) for pair in pairs)


def bulk(lines: Iterable[bytes]) -> Iterator[Call[api.BulkResponse]]:
    """Yield requests of some thousand lines each, which can all be sent again."""
    left = iter(lines)
    while some := list(islice(left, LINES_AT_ONCE)):
        content = b"\n".join(line.rstrip(b"\r\n") for line in some)
        yield call(endpoints.LOAD_CATALOG, body=content)


def together(answers: Sequence[api.BulkResponse]) -> api.BulkResponse:
    """Return the outcome of all lines, numbered over all requests."""
    errors = [
        api.LineError(part * LINES_AT_ONCE + error.line, error.reason)
        for part, answer in enumerate(answers)
        for error in answer.errors
    ]
    counts = {
        name: sum(getattr(answer, name) for answer in answers)
        for name in ("lines", "changed", "unchanged", "rejected")
    }
    return api.BulkResponse(**counts, errors=errors)


def own_list(
    problem: ServiceError, fallback: Iterable[str] | None, offset: int, k: int | None
) -> api.RankResponse:
    """Return the caller's own order instead of a list that did not come, or raise the problem."""
    if fallback is None or (problem.status is not None and problem.status not in FALLS_BACK):
        raise problem
    order = list(fallback)[offset : None if k is None else offset + k]
    items = [api.RankedItem(name, at, 0.0) for at, name in enumerate(order, start=offset + 1)]
    return api.RankResponse(api.UNCOUNTED, 0, items, counted=False)


def rejection(served: Served, count: int) -> api.FeedbackResponse | None:
    """Return a server's response to events about a list that was not logged; None if it was."""
    if served != api.UNCOUNTED and (isinstance(served, str) or served.counted):
        return None
    reason = f"{api.UNCOUNTED}: the list was not logged"
    results = [api.EventResult(at, "rejected", reason) for at in range(count)]
    return api.FeedbackResponse(0, 0, count, results)


def feedback(events: Iterable[Event]) -> Call[api.FeedbackResponse]:
    """Return the request that reports what users did."""
    body = api.FeedbackRequest([_event(at, given) for at, given in enumerate(events)])
    for sent in body.events:
        for name, number in (("time", sent.time), ("value", sent.value)):
            if isinstance(number, float) and not math.isfinite(number):
                raise ParameterError(f"event {sent.event_id!r}: its {name} is {number}")
    return call(endpoints.FEEDBACK, body=body)


def event(
    served: Served,
    item: str,
    type: str,
    event_id: str | None = None,
    time: float | datetime | None = None,
) -> api.EventIn:
    """Return an event about an item of a list; its id is made here, once."""
    ranking_id = served if isinstance(served, str) else served.ranking_id
    # The id begins with the time, so that a store's index of ids grows at one end: a quarter of the
    # disk traffic of ids that are random throughout.
    own_id = event_id or f"{time_ns():016x}{secrets.token_hex(8)}"
    return api.EventIn(own_id, ranking_id, item, type, time)


def _event(at: int, given: Event) -> api.EventIn:
    try:
        return msgspec.convert(given, api.EventIn)
    except msgspec.ValidationError as problem:
        raise ParameterError(
            f"event {at}: {problem}. An event is an `ebrank.client.EventIn`, or a mapping with "
            "event_id, ranking_id, item, type and, if you like, time and value"
        ) from None


# --- what is sent again --------------------------------------------------------------------------

REFUSED = (409, 429, 503)
"""Statuses of a server that did nothing."""
LOST = (502, 504)
"""Statuses of a proxy that does not know what the server did."""

# Pauses are not part of any result: they need no seed, and two clients must not share one.
_jitter = random.Random()


@dataclass(frozen=True)
class Retries:
    """How often a request is sent if it fails, and after how long.

    Pauses double and are shortened at random, so that clients of a server that comes back do not
    all call at once. What may be sent again depends on the request:

    - `always`: reads, items, withdrawals, and feedback, whose events have an id that is made once.
    - `broken`: a ranking. It is sent again if the connection broke, but not if the response is just
      slow; at worst a list is logged that nobody saw.
    - `unsent`: what must not happen twice. It is sent again only if the server did not get it.

    Attributes:
        attempts: the most requests; 1 never retries.
        first: seconds before the second one.
        longest: the longest pause; if the server asks for more, the error is raised at once.
    """

    attempts: int = 4
    first: float = 0.1
    longest: float = 5.0

    def pause(
        self, again: Again, attempt: int, outcome: httpx.Response | Exception
    ) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is none.

        Args:
            again: what the request allows.
            attempt: how many there have been.
            outcome: of the last one.
        """
        if attempt >= self.attempts or not _allowed(again, outcome):
            return None
        asked = _asked_for(outcome)
        if asked > self.longest:
            return None
        pause = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return max(asked, pause * _jitter.uniform(0.5, 1.0))


ONCE = Retries(attempts=1)
"""For callers with a fallback."""


def _allowed(again: Again, outcome: httpx.Response | Exception) -> bool:
    import httpx

    if isinstance(outcome, httpx.Response):
        return outcome.status_code in REFUSED or (again == "always" and outcome.status_code in LOST)
    if unsent(outcome):
        return True
    if isinstance(outcome, httpx.NetworkError | httpx.RemoteProtocolError):
        return again != "unsent"
    return again == "always" and isinstance(outcome, httpx.TimeoutException)


def unsent(problem: Exception) -> bool:
    """Return whether the server did not get the request."""
    import httpx

    return isinstance(problem, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _asked_for(outcome: httpx.Response | Exception) -> float:
    """Return the seconds that a response asks to wait."""
    text = "" if isinstance(outcome, Exception) else outcome.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else 0.0
