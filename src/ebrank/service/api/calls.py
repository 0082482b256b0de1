"""Requests and their responses: items, lists, feedback.

Requests reject unknown fields and names that are too long:

>>> import msgspec
>>> msgspec.json.decode(b'{"query": "tea", "k": 3}', type=RankRequest).k
3
>>> msgspec.json.decode(b'{"query": "tea", "top": 3}', type=RankRequest)
Traceback (most recent call last):
msgspec.ValidationError: Object contains unknown field `top`

Events are read one by one, so that a bad one does not spoil its batch (see `read_events`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

LONGEST_NAME = 256  # characters of an item's, a user's, an event's and a ranking's name
LONGEST_QUERY = 512
MOST_ITEMS = 10_000  # in one request
MOST_LISTED = 1_000  # queries, or items of a query, in one answer
MOST_EVENTS = 1_000  # in one transaction, during which nobody else is served
MOST_RANKS = 1_000
MOST_FEATURES = 10_000
UNCOUNTED = "uncounted"
"""The id of every list that was not logged, and the reason why its events are rejected."""

SMALL_BODY = 2**15
"""Bytes that are read at once, in less than a millisecond."""
ITEMS_AT_ONCE = 40
"""Of larger ones: as many as are read, or stored, in about a millisecond."""

_WITHOUT_NUL = r"^[^\x00]*$"  # which PostgreSQL's texts cannot hold
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME, pattern=_WITHOUT_NUL)]
Query: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=LONGEST_QUERY, pattern=_WITHOUT_NUL)
]
Label: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}(?!\n)$")]
"""The name of an experiment or an arm."""
FeatureList: TypeAlias = Annotated[list[float | None], Meta(max_length=MOST_FEATURES)]
FeatureMap: TypeAlias = Annotated[dict[Name, float | None], Meta(max_length=MOST_FEATURES)]
DeletedKind: TypeAlias = Literal["item", "query", "user"]
ProofKind: TypeAlias = Literal["item", "query", "user", "retraction"]
EventStatus: TypeAlias = Literal["accepted", "duplicate", "rejected"]


class ErrorBody(Struct, frozen=True, omit_defaults=True):
    """What went wrong: a code, a sentence, and the part of the request at fault, if it is one."""

    code: str
    message: str
    field: str | None = None


class ErrorResponse(Struct, frozen=True):
    """The response to a request that cannot be served."""

    error: ErrorBody


# --- items -----------------------------------------------------------------------------------


class ItemIn(Struct, forbid_unknown_fields=True, frozen=True):
    """An item with its features, by position or by name; null stands for a missing value.

    An item keeps the features that it leaves out; if it is new, it lacks them.
    """

    id: Name
    features: FeatureList | FeatureMap = msgspec.field(default_factory=dict)


class PutItemsRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """Candidates to add or update."""

    items: Annotated[list[ItemIn], Meta(max_length=MOST_ITEMS)]


class PutItemsResponse(Struct, frozen=True):
    """How many of them were new to the query, and how many candidates it has now."""

    query: str
    added: int
    changed: int
    candidates: int


class QueryOptions(Struct, forbid_unknown_fields=True, frozen=True):
    """Which items of a query to return."""

    cursor: Annotated[int, Meta(ge=0, le=2**31)] = 0
    """where to begin: the `next_cursor` of the previous response."""
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = MOST_LISTED
    """the most to return."""
    density: bool = False
    """whether items up to rank 100 come with the density of their relevance."""


class WithdrawResponse(Struct, frozen=True):
    """Whether the item was a candidate until now."""

    query: str
    item: str
    withdrawn: bool


class PutCatalogResponse(Struct, frozen=True):
    """How many items were given, and how many of them are new or changed."""

    items: int
    changed: int


class LineError(Struct, frozen=True):
    """A rejected line, counted from 1, and why."""

    line: int
    reason: str


class BulkResponse(Struct, frozen=True):
    """The outcome of the lines that hold an item; `errors` are the first hundred."""

    lines: int
    changed: int
    unchanged: int
    rejected: int
    errors: list[LineError]


class CatalogItem(Struct, frozen=True):
    """An item that queries share: its features, null if one is missing; and if it is withdrawn."""

    id: str
    features: dict[str, float | None]
    withdrawn: bool


class CatalogRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """Which items of the catalog to list."""

    cursor: Annotated[str, Meta(max_length=LONGEST_NAME)] = ""
    """where to begin: the `next` of the previous page."""
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = 100
    """the most to list."""


class CatalogResponse(Struct, frozen=True):
    """Items in the order of their names, and where the next page begins, null on the last one."""

    items: list[CatalogItem]
    next: str | None


class WithdrawFromAllResponse(Struct, frozen=True):
    """Whether the item was in the catalog, and not withdrawn, until now."""

    item: str
    withdrawn: bool


# --- features --------------------------------------------------------------------------------


class NewFeature(Struct, forbid_unknown_fields=True, frozen=True):
    """A feature to add."""

    name: Name
    shared: bool = False
    """whether all queries share it; otherwise it is of query and item."""


class ChangeFeaturesRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """How to change features: first name, then rename, remove, add and require."""

    name: Annotated[list[Name], Meta(max_length=MOST_FEATURES)] = []
    """names for features that have only positions."""
    rename: Annotated[dict[Name, Name], Meta(max_length=MOST_FEATURES)] = {}
    """new names by old ones."""
    remove: Annotated[list[Name], Meta(max_length=MOST_FEATURES)] = []
    """names of features to remove."""
    add: Annotated[list[NewFeature], Meta(max_length=MOST_FEATURES)] = []
    """new features, which items may leave out until you `require` them."""
    require: Annotated[list[Name], Meta(max_length=MOST_FEATURES)] = []
    """names of added features that requests may no longer leave out."""
    dry_run: bool = False
    """whether nothing changes, and the response says what would."""


class FeatureOut(Struct, frozen=True):
    """A feature."""

    name: str | None
    """None if it has only a position."""
    shared: bool
    """whether all queries share it."""
    required: bool
    """whether `features.missing` applies to items that lack it; if not, they may."""
    items: int
    """how many rows there are: items of the catalog if shared, else of queries."""
    lacking: int
    """how many of them lack it."""
    weight: float | None
    """in the active model; None if the model does not use it, or has no weights."""


class FeaturesResponse(Struct, frozen=True):
    """The features that items have, or would have, in the order of lists by position."""

    model: int
    features: list[FeatureOut]
    removed: list[FeatureOut]
    """those that the active model still uses, as missing, until the next fit."""
    changes: list[str]
    """what has changed, in words."""
    dry_run: bool


# --- ranking ---------------------------------------------------------------------------------


class RankRequest(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A request for a list."""

    query: Query
    k: Annotated[int, Meta(ge=1, le=MOST_RANKS)] | None = None
    """how many items; default: `ranking.k`."""
    offset: Annotated[int, Meta(ge=0, lt=MOST_RANKS)] = 0
    """how many ranks are above the list: 10 for the second page of ten."""
    items: Annotated[list[Name | ItemIn], Meta(min_length=1, max_length=MOST_ITEMS)] | None = None
    """only these candidates; those given with features are added or updated first. The arm `own` of
    an experiment serves them in this order.
    """
    user: Name | None = None
    """whose list it is, so that it stays the same within `ranking.window`."""
    explore: bool = True
    """false ranks by relevance alone."""
    explain: bool = False
    """whether to explain each score."""
    count: bool = True
    """false neither logs nor counts the list: for bots, previews and monitoring."""


class RankedItem(Struct, frozen=True, omit_defaults=True):
    """An item of a list; the fields after `score` are present if the request has `explain`."""

    id: str
    rank: int
    score: float
    relevance: float | UnsetType = UNSET
    interval: tuple[float, float] | UnsetType = UNSET
    """central 90 % credible interval of the relevance; only a `relevance` by `ips` that is about 1
    or above lies outside.
    """
    prior: float | UnsetType = UNSET
    """the relevance that its features alone predict."""
    elsewhere: float | UnsetType = UNSET
    """how far its clicks in `other_queries` move that, if queries share evidence."""
    other_queries: int | UnsetType = UNSET
    shown: int | UnsetType = UNSET
    clicks: int | UnsetType = UNSET
    exposure: float | UnsetType = UNSET
    bonus: float | UnsetType = UNSET
    explored: bool | UnsetType = UNSET


class RankResponse(Struct, frozen=True, omit_defaults=True):
    """A list."""

    ranking_id: str
    """what feedback cites."""
    model: int
    """the version of the prior that made it."""
    items: list[RankedItem]
    counted: bool = True
    """present, and false, if the list is neither logged nor counted: the request said so, or the
    list was made from memory while the store failed. Events that cite its `ranking_id` are rejected
    as `uncounted`.
    """
    arm: str | UnsetType = UNSET
    """of the running experiment, as `experiment:arm`."""


# --- experiments -----------------------------------------------------------------------------

Arms: TypeAlias = Annotated[dict[Label, str], Meta(min_length=1, max_length=10)]
Shares: TypeAlias = dict[Label, Annotated[float, Meta(gt=0, le=1)]]


class StartExperimentRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """An experiment to start."""

    name: Label
    arms: Arms
    """the policy of each arm, such as `auto`; `own` is the caller's own order, given as `items`.
    The first arm is the control.
    """
    shares: Shares | None = None
    """of the traffic; all of it in equal parts by default."""
    unit: Literal["query", "user"] = "query"
    """what is assigned to arms: each `query`, so that arms keep apart what queries say about items
    that they have in common, or each `user`.
    """


class ChangeExperimentRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """Other shares of a running experiment, or other policies of its arms.

    With shares in the same proportion the readout continues; anything else begins a new one.
    """

    shares: Shares | None = None
    arms: Arms | None = None


class RerankDocument(Struct, frozen=True):
    """A document whose text is the id of an item; other fields are ignored."""

    text: str


class RerankRequest(Struct, frozen=True):
    """Documents to rerank, as Cohere's clients and their imitators send them.

    Fields of the protocol that are not listed here are ignored.
    """

    query: Query
    documents: Annotated[list[str | RerankDocument], Meta(min_length=1, max_length=MOST_RANKS)]
    """ids of items."""
    top_n: Annotated[int, Meta(ge=1)] | None = None
    """how many results to return; all by default."""
    return_documents: bool | None = None
    """whether results come with their documents."""
    model: str | None = None
    """ignored: the server's settings decide."""
    order: Literal["score", "input"] = "score"
    """whether results are sorted by `score` or in the order of the `input`, for callers that deal
    scores out by position.
    """
    user: Name | None = None
    """as in a request for a list."""
    count: bool = True
    """as in a request for a list."""


class RerankResult(Struct, frozen=True, omit_defaults=True):
    """A document and its score."""

    index: int
    """its place in the request, from 0."""
    relevance_score: float
    """decreases strictly with rank, even where a tie or an order that the user has already seen
    decided it: sorting by it gives the list as it was logged.
    """
    document: RerankDocument | UnsetType = UNSET


class RerankResponse(Struct, frozen=True):
    """The reranked documents."""

    id: str
    """the `ranking_id` that feedback cites."""
    results: list[RerankResult]
    meta: dict[str, dict[str, str]]

    @property
    def counted(self) -> bool:
        """Whether the list was logged."""
        return self.id != UNCOUNTED


# --- feedback --------------------------------------------------------------------------------


class EventIn(Struct, forbid_unknown_fields=True, frozen=True):
    """What a user did with an item of a list."""

    event_id: str
    """chosen by the caller: an event sent twice counts once."""
    ranking_id: str
    """of the list."""
    item: str
    type: str
    """a behavior, `impression`, or another type that `events` of the settings names."""
    time: Annotated[float, Meta(ge=0)] | Annotated[datetime, Meta(tz=True)] | None = None
    """in seconds since 1970, or as RFC 3339; now by default."""
    value: float | None = None
    """what the threshold of a behavior is compared with, such as seconds for `dwell>=30`."""


class Malformed(Struct, frozen=True):
    """An event that could not be read, and why."""

    reason: str


class FeedbackRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """A batch of events, as a client sends it."""

    events: Annotated[list[EventIn], Meta(max_length=MOST_EVENTS)]


class EventResult(Struct, frozen=True):
    """The outcome of the event at this index of the batch."""

    index: int
    status: EventStatus
    reason: str | None = None


class FeedbackResponse(Struct, frozen=True):
    """How many events were accepted, duplicate and rejected; and each by its index."""

    accepted: int
    duplicate: int
    rejected: int
    results: list[EventResult]


class _RawItems(Struct, forbid_unknown_fields=True):
    items: Annotated[list[msgspec.Raw], Meta(max_length=MOST_ITEMS)]


_read_items = msgspec.json.Decoder(PutItemsRequest).decode
_read_raw_items = msgspec.json.Decoder(_RawItems).decode
_read_item = msgspec.json.Decoder(ItemIn).decode


def read_items(body: bytes) -> list[ItemIn] | Iterator[list[ItemIn]]:
    """Return the items of a request; if there are many, a portion at a time.

    >>> read_items(b'{"items": [{"id": "a", "features": []}]}')
    [ItemIn(id='a', features=[])]

    Raises:
        msgspec.DecodeError: if the body is not what it should be; for many items, some of these
            errors come only when the portions are taken.
    """
    if len(body) <= SMALL_BODY:
        return _read_items(body).items
    raw = _read_raw_items(body).items
    return (
        [_item(at, raw[at]) for at in range(begin, min(begin + ITEMS_AT_ONCE, len(raw)))]
        for begin in range(0, len(raw), ITEMS_AT_ONCE)
    )


def _item(at: int, raw: msgspec.Raw) -> ItemIn:
    try:
        return _read_item(raw)
    except msgspec.ValidationError as problem:
        place = str(problem).replace("`$", f"`$.items[{at}]")
        raise msgspec.ValidationError(place) from None


# --- deletion, and listing -------------------------------------------------------------------


class DeletionRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """What to delete: an item in all queries, a query, or a user's name."""

    kind: DeletedKind
    name: Query


class DeletionOut(Struct, frozen=True):
    """Proof of a deletion or a retraction."""

    kind: ProofKind
    """of what was deleted; or a retraction."""
    digest: str
    """of its name, or of what to retract, salted by the store; the same request again gives the
    same one.
    """
    time: float
    """when, in seconds since 1970."""
    queries: int
    """how many queries changed."""
    rankings: int
    """lists that were removed with a query, lost their user, or count no longer."""
    events: int
    """events that were removed with a query, or count no longer."""


class RetractionRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """Which lists, with their events, count no longer: those that fit all that is given.

    With a time, events received then count no longer either, even if their lists are older.
    """

    since: float | Annotated[datetime, Meta(tz=True)] | None = None
    """from this time on, in seconds since 1970 or as RFC 3339."""
    until: float | Annotated[datetime, Meta(tz=True)] | None = None
    """before this time."""
    user: Name | None = None
    query: Query | None = None
    ranking_id: Name | None = None
    apply: bool = False
    """if false, nothing changes, and the response says what would."""
    token: Name | None = None
    """the name of the token that asked for a list."""


class RetractionResponse(Struct, frozen=True):
    """What a retraction takes back, or would; what had not counted is not included."""

    applied: bool
    """whether it was done."""
    queries: int
    """how many queries change."""
    rankings: int
    """lists that count no longer."""
    events: int
    """events that count no longer."""
    impressions: int
    """by how many the counters shrink."""
    outcomes: int
    """the same of what users did."""
    log_begins: float | None
    """when the log begins, null if it is empty. Older lists are rolled up."""
    rolled_up: int
    """impressions rolled up, if some may be wanted; they cannot be retracted."""
    proof: DeletionOut | None
    """that it was done; null if it was not, or there was nothing to do."""


class DeletionsResponse(Struct, frozen=True):
    """The latest deletions, oldest first, and the total number."""

    total: int
    deletions: list[DeletionOut]


class QueriesRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """Which queries to list."""

    prefix: Annotated[str, Meta(max_length=LONGEST_QUERY)] = ""
    """only names that begin with it."""
    contains: Annotated[str, Meta(max_length=LONGEST_QUERY)] = ""
    """only names that contain it."""
    cursor: Annotated[str, Meta(max_length=LONGEST_QUERY)] = ""
    """where to begin: the `next` of the previous page."""
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = 100
    """the most to list."""


class ListedQuery(Struct, frozen=True):
    """A query, and how many items it has, withdrawn ones included."""

    query: str
    items: int


class QueriesResponse(Struct, frozen=True):
    """Queries in the order of their names, and where the next page begins, null on the last one."""

    queries: list[ListedQuery]
    next: str | None


class _RawBatch(Struct, forbid_unknown_fields=True):
    events: Annotated[list[msgspec.Raw], Meta(max_length=MOST_EVENTS)]


_read_request = msgspec.json.Decoder(FeedbackRequest).decode
_read_batch = msgspec.json.Decoder(_RawBatch).decode
_read_event = msgspec.json.Decoder(EventIn).decode


def read_events(body: bytes) -> list[EventIn | Malformed]:
    """Return the events of a feedback request; unreadable ones say why.

    >>> read_events(b'{"events": [{"event_id": 7}]}')
    [Malformed(reason='Expected `str`, got `int` - at `$.event_id`')]

    Raises:
        msgspec.DecodeError: if the body is not a batch.
        UnicodeDecodeError: if it is not UTF-8 outside of the events.
        RecursionError: if an event is nested so deeply that its end cannot be found.
    """
    try:
        return list(_read_request(body).events)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return [_event(raw) for raw in _read_batch(body).events]


def _event(raw: msgspec.Raw) -> EventIn | Malformed:
    try:
        return _read_event(raw)
    except msgspec.DecodeError as problem:
        return Malformed(str(problem))
    except UnicodeDecodeError:
        return Malformed(f"it is not UTF-8 at byte {not_utf8(bytes(raw))}")


def not_utf8(text: bytes) -> int:
    """Return the place of the first byte that is not UTF-8, counted from 0.

    >>> not_utf8(b"caf\\xe9")
    3
    """
    try:
        text.decode()
    except UnicodeDecodeError as problem:
        return problem.start
    return len(text)
