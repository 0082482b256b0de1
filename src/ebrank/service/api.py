"""What goes over the wire: one struct for each request and each answer.

The engine takes and gives these values and the HTTP layer passes them through, so a call in a test
and a call from afar are the same call. Requests refuse unknown fields and too long names:

>>> import msgspec
>>> msgspec.json.decode(b'{"query": "tea", "k": 3}', type=RankRequest).k
3
>>> msgspec.json.decode(b'{"query": "tea", "top": 3}', type=RankRequest)
Traceback (most recent call last):
msgspec.ValidationError: Object contains unknown field `top`

Events are read one by one, since a bad one must not spoil its batch (see `read_events`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

LONGEST_NAME = 256  # characters of an item's, a user's, an event's and a ranking's name
LONGEST_QUERY = 512
MOST_ITEMS = 10_000  # in one request
MOST_EVENTS = 10_000
MOST_RANKS = 1_000
MOST_FEATURES = 10_000

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Query: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_QUERY)]
FeatureList: TypeAlias = Annotated[list[float | None], Meta(max_length=MOST_FEATURES)]
FeatureMap: TypeAlias = Annotated[dict[Name, float | None], Meta(max_length=MOST_FEATURES)]
EventStatus: TypeAlias = Literal["accepted", "duplicate", "rejected"]


# --- items -----------------------------------------------------------------------------------


class ItemIn(Struct, forbid_unknown_fields=True, frozen=True):
    """A candidate with its features, by position or by name; null stands for a missing value."""

    id: Name
    features: FeatureList | FeatureMap


class PutItemsRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """Candidates to add or to change."""

    items: Annotated[list[ItemIn], Meta(max_length=MOST_ITEMS)]


class PutItemsResponse(Struct, frozen=True):
    """How many of them were new to the query, and how many candidates it has now."""

    query: str
    added: int
    changed: int
    candidates: int


class WithdrawResponse(Struct, frozen=True):
    """Whether the item was a candidate until now."""

    query: str
    item: str
    withdrawn: bool


# --- ranking ---------------------------------------------------------------------------------


class RankRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """A list is wanted.

    `items` restricts it to these candidates; those given with features are added or changed first.
    In shadow mode they are the caller's own order, and are served as they are.
    """

    query: Query
    k: Annotated[int, Meta(ge=1, le=MOST_RANKS)] = 10
    items: Annotated[list[Name | ItemIn], Meta(min_length=1, max_length=MOST_ITEMS)] | None = None
    user: Name | None = None
    explore: bool = True
    explain: bool = False


class RankedItem(Struct, frozen=True, omit_defaults=True):
    """An item of a list; what follows `score` is there if the request says `explain`."""

    id: str
    rank: int
    score: float
    relevance: float | UnsetType = UNSET
    interval: tuple[float, float] | UnsetType = UNSET
    prior: float | UnsetType = UNSET
    shown: int | UnsetType = UNSET
    clicks: int | UnsetType = UNSET
    exposure: float | UnsetType = UNSET
    bonus: float | UnsetType = UNSET
    explored: bool | UnsetType = UNSET


class RankResponse(Struct, frozen=True, omit_defaults=True):
    """The list, the name that feedback cites, and the version of the prior that made it.

    `would_rank` is there in shadow mode: the order EBRank would have served.
    """

    ranking_id: str
    model: int
    items: list[RankedItem]
    would_rank: list[str] | UnsetType = UNSET


# --- feedback --------------------------------------------------------------------------------


class EventIn(Struct, forbid_unknown_fields=True, frozen=True):
    """What a user did with an item of a list; `time` in seconds since 1970 or as RFC 3339."""

    event_id: str
    ranking_id: str
    item: str
    type: str
    time: float | Annotated[datetime, Meta(tz=True)] | None = None


class Malformed(Struct, frozen=True):
    """An event that could not be read, and why."""

    reason: str


class FeedbackRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """A batch of events, as a client sends it."""

    events: Annotated[list[EventIn], Meta(max_length=MOST_EVENTS)]


class EventResult(Struct, frozen=True):
    """What became of the event at this index of the batch."""

    index: int
    status: EventStatus
    reason: str | None = None


class FeedbackResponse(Struct, frozen=True):
    """How many events were counted, seen before, refused; and each by its index."""

    accepted: int
    duplicate: int
    rejected: int
    results: list[EventResult]


class _Batch(Struct, forbid_unknown_fields=True):
    events: Annotated[list[msgspec.Raw], Meta(max_length=MOST_EVENTS)]


_read_request = msgspec.json.Decoder(FeedbackRequest).decode
_read_batch = msgspec.json.Decoder(_Batch).decode
_read_event = msgspec.json.Decoder(EventIn).decode


def read_events(body: bytes) -> list[EventIn | Malformed]:
    """Return the events of a feedback request; those that cannot be read say why.

    >>> read_events(b'{"events": [{"event_id": 7}]}')
    [Malformed(reason='Expected `str`, got `int` - at `$.event_id`')]

    Raises:
        msgspec.DecodeError: if the body is no batch at all.
    """
    try:
        return list(_read_request(body).events)
    except msgspec.ValidationError:
        return [_event(raw) for raw in _read_batch(body).events]


def _event(raw: msgspec.Raw) -> EventIn | Malformed:
    try:
        return _read_event(raw)
    except msgspec.DecodeError as problem:
        return Malformed(str(problem))


# --- the state of a query --------------------------------------------------------------------


class ItemState(Struct, frozen=True):
    """What is known of an item of a query.

    Attributes:
        weighted_clicks: C, clicks divided by the examination of their rank.
        prior: α/(α + β), what its features promise.
        alpha: α of its prior.
        beta: β of its prior.
        interval: central 90 % credible interval of its relevance.
        bonus: ε·MC, what showing it would teach.
        score: relevance plus bonus, the key of the list.
        rank: its place in the list that would be served now; None if withdrawn.
        rank_by_relevance: its place by relevance alone; None if withdrawn.
        entered: when it became a candidate, in seconds since 1970.
        first_shown: when it was first in a list, or None.
    """

    id: str
    shown: int
    clicks: int
    exposure: float
    relevance: float
    weighted_clicks: float
    prior: float
    alpha: float
    beta: float
    interval: tuple[float, float]
    bonus: float
    score: float
    rank: int | None
    rank_by_relevance: int | None
    entered: float
    first_shown: float | None


class QueryResponse(Struct, frozen=True):
    """A query's candidates in the order in which they entered, and those that were withdrawn.

    `most_promising` are the ids with the highest upper end of their interval, `most_buried` those
    whose prior promises most for how little they were exposed; best first, ten at most.
    """

    query: str
    model: int
    items: list[ItemState]
    withdrawn: list[ItemState]
    most_promising: list[str]
    most_buried: list[str]


# --- models ----------------------------------------------------------------------------------


class ModelOut(Struct, frozen=True):
    """A version of the prior; losses are means over the same validation rows."""

    version: int
    created: float
    rows: int
    validation_loss: float | None
    previous_loss: float | None
    activated: bool
    active: bool
    reason: str


class TrainingOut(Struct, frozen=True):
    """The state of training: whether it runs now, and how the last run ended.

    Attributes:
        running: whether a trainer is at work.
        started: when it, or the last one, began; None if there was none yet.
        finished: when the last one ended; None while the first one runs.
        outcome: one sentence about the last one; empty if there was none.
        next_events: how many more events start one; None if events do not.
        next_time: when the schedule starts one; None if there is no schedule.
    """

    running: bool
    started: float | None
    finished: float | None
    outcome: str
    next_events: int | None
    next_time: float | None


class TrainResponse(Struct, frozen=True):
    """Whether this request started a run; if not, one was running already."""

    started: bool
    training: TrainingOut


class ModelsResponse(Struct, frozen=True):
    """All versions, oldest first; version 0 is the prior before any training."""

    active: int
    models: list[ModelOut]
    training: TrainingOut


# --- insights --------------------------------------------------------------------------------


class Totals(Struct, frozen=True):
    """Since the store was made."""

    rankings: int
    events: int
    clicks: int
    items: int
    queries: int


class MinuteOut(Struct, frozen=True):
    """One minute; `new` items entered less than `insights.new_seconds` ago."""

    start: float
    rankings: int
    clicks: int
    exposure_new: float
    exposure_old: float
    clicks_new: int
    clicks_old: int
    exploration_cost: float
    explored: int
    latency_p50_ms: float | None
    latency_p99_ms: float | None


class Waiting(Struct, frozen=True):
    """How long items wait for something, those still waiting counted as such (Kaplan-Meier).

    Attributes:
        items: how many are looked at.
        happened: for how many of them it happened.
        median: seconds after which it has happened for half of them; None if not yet.
        seconds: times at which the curve falls.
        still_waiting: share still waiting after each.
    """

    items: int
    happened: int
    median: float | None
    seconds: list[float]
    still_waiting: list[float]


class WaitingTimes(Struct, frozen=True):
    """From entering to the first impression, and to the first place within the top k."""

    first_shown: Waiting
    top_k: Waiting


class BuriedItem(Struct, frozen=True):
    """An item that its prior calls promising and that was little shown."""

    query: str
    item: str
    prior: float
    relevance: float
    shown: int
    exposure: float
    rank_by_relevance: int


class ExplorationOut(Struct, frozen=True):
    """What exploration cost and brought.

    Attributes:
        cost: expected clicks lost against the order by relevance alone.
        explored: slots that exploration filled.
        found: items that exploration showed first and that now stand in the top k by relevance.
    """

    cost: float
    explored: int
    found: int


class CalibrationBin(Struct, frozen=True):
    """Items whose prior predicts about the same, and how relevant users found them."""

    predicted: float
    observed: float
    rows: int


class ShadowOut(Struct, frozen=True):
    """What EBRank would have done in place of the caller's order.

    Attributes:
        rankings: lists that were compared.
        different: share of them with another order.
        overlap: mean share of the served list that EBRank would have served too.
        gain: expected clicks per list of EBRank's order minus those of the caller's.
        new_items: share of EBRank's slots that new items would have had.
        served_new_items: share of slots that new items had.
    """

    rankings: int
    different: float
    overlap: float
    gain: float
    new_items: float
    served_new_items: float


class Insights(Struct, frozen=True):
    """All that the dashboard shows, but for the view of one query."""

    now: float
    model: int
    mode: str
    k: int
    new_seconds: float
    totals: Totals
    minutes: list[MinuteOut]
    waiting: WaitingTimes
    buried: list[BuriedItem]
    exploration: ExplorationOut
    calibration: list[CalibrationBin]
    models: list[ModelOut]
    training: TrainingOut
    shadow: ShadowOut | None
