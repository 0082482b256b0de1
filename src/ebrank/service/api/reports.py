"""Responses that only report: the state of a query, the models, and what the dashboard shows."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType


class Health(Struct, frozen=True):
    """How the server is."""

    status: str
    store: str | UnsetType = UNSET
    """the database of its store."""


# --- the state of a query --------------------------------------------------------------------


class ItemDensity(Struct, frozen=True):
    """The belief about an item's relevance: points (relevance, density), relevances rising.

    The prior is before its clicks, the posterior is that of the policy in use.
    """

    prior: list[tuple[float, float]]
    posterior: list[tuple[float, float]]


class ItemState(Struct, frozen=True):
    """What is known about a candidate of a query."""

    id: str
    shown: int
    clicks: int
    exposure: float
    relevance: float
    weighted_clicks: float
    """C, clicks divided by the examination of their rank."""
    prior: float
    """the relevance that its features alone predict."""
    alpha: float
    """α of the prior with both; α/(α + β) is its mean."""
    beta: float
    """β of the same."""
    interval: tuple[float, float]
    """central 90 % credible interval of its relevance under the policy's posterior; only an
    estimate by `ips` that is about 1 or above lies outside.
    """
    bonus: float
    """ε·MC, what showing it would teach."""
    score: float
    """relevance plus bonus, the key of the list."""
    rank: int
    """its place in the order that would be served now."""
    rank_by_relevance: int
    """its place by relevance alone."""
    entered: float
    """when it became a candidate, in seconds since 1970."""
    first_shown: float | None
    """when it was first in a list, or None."""
    density: ItemDensity | None = None
    """of its relevance, if the request asks for it and the rank is at most 100."""
    elsewhere: float | UnsetType = UNSET
    """how far its evidence in `other_queries` moves that, if queries share evidence."""
    other_queries: int | UnsetType = UNSET


class WithdrawnItem(Struct, frozen=True):
    """A withdrawn item: its history."""

    id: str
    shown: int
    clicks: int
    exposure: float
    weighted_clicks: float
    entered: float
    first_shown: float | None


class QueryResponse(Struct, frozen=True):
    """A query's candidates in the order in which they entered; a large query comes in parts."""

    query: str
    model: int
    k: int
    """the length of a list, if a request does not say."""
    items: list[ItemState]
    withdrawn: list[WithdrawnItem]
    most_buried: list[str]
    """at most ten ids that do not make the list although their features predict a lot for how
    little they were exposed, the highest prior/(1 + E) first; in the first part only.
    """
    next_cursor: int | None = None
    """the `cursor` of the next part; null in the last."""


# --- experiments -----------------------------------------------------------------------------


class MetricOut(Struct, frozen=True):
    """A figure of an arm, or a difference: the estimate, and the ends of its 95 % interval.

    The interval may be read at any time. It has no ends, null, while little is known.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


class ArmOut(Struct, frozen=True):
    """An arm of an experiment."""

    name: str
    policy: str
    """its policy, or `own`."""
    share: float
    """its share of the traffic."""
    units: int
    """cells of queries or users that it has had lists of."""
    lists: int
    """a list and the pages that continue it count once."""
    clicks: MetricOut
    """per list: outcomes of impressions."""
    outcome: MetricOut
    """per list: what these are worth."""
    found: MetricOut
    """per list: new items that got their first click."""
    difference: dict[str, MetricOut]
    """from the first arm, of the same three figures; empty for the first."""


class ExperimentOut(Struct, frozen=True):
    """An experiment and its readout."""

    name: str
    unit: Literal["query", "user"]
    """what is assigned to arms."""
    state: Literal["running", "waiting", "ended"]
    """`running`, `waiting` for a training run that fits an arm's own prior, or `ended`."""
    started: float
    """when, in seconds since 1970."""
    since: float
    """when the first of the stretches began that the readout covers."""
    ended: float | None
    """when; null if it has not."""
    stretches: int
    """how many there were: each change of shares or arms begins another."""
    left_out: int
    """how many of these cannot be compared with the latest."""
    sample_ratio_p: float | None
    """a p-value of "arms got their planned shares of units and lists"; below 0.01, do not trust the
    readout. Null with one arm.
    """
    arms: list[ArmOut]
    notes: list[str]
    """what to know before reading it, in words."""


class ExperimentsResponse(Struct, frozen=True):
    """All experiments with their readouts, in the order in which they began."""

    experiments: list[ExperimentOut]


# --- models ----------------------------------------------------------------------------------


class ModelOut(Struct, frozen=True):
    """A version of the prior; losses are means over the same held-out items."""

    version: int
    created: float
    rows: int
    validation_loss: float | None
    previous_loss: float | None
    activated: bool
    active: bool
    reason: str


PriorState: TypeAlias = Literal["live", "untrained", "refused", "unused", "failing"]


class PriorOut(Struct, frozen=True):
    """Whether lists use what was learned last, and if not, why."""

    state: PriorState
    """`live` if so; `untrained` before the first version; `refused` if newer versions are off;
    `unused` if the active version does not fit the settings; `failing` if the last run failed.
    """
    reason: str
    """why, in a sentence."""
    since: float | None
    """since when, in seconds since 1970; None if there was no run yet."""


class TrainingOut(Struct, frozen=True):
    """The state of training: whether it runs now, and how the last run ended."""

    running: bool
    """whether a trainer is at work."""
    started: float | None
    """when it, or the last one, began; None if there was none yet."""
    finished: float | None
    """when the last one ended; None while the first one runs."""
    outcome: str
    """one sentence about the last one; empty if there was none."""
    next_events: int | None
    """how many more events start one; None if events do not."""
    next_time: float | None
    """when the schedule starts one; None if there is no schedule."""


class TrainResponse(Struct, frozen=True):
    """Whether this request started a run; if not, one was running already."""

    started: bool
    training: TrainingOut


class ModelsResponse(Struct, frozen=True):
    """The versions that are kept, oldest first; version 0 is the prior before any training."""

    active: int
    pinned: bool
    """whether a person chose the active one over a newer one: runs that start by themselves do not
    replace it.
    """
    models: list[ModelOut]
    training: TrainingOut
    prior: PriorOut


# --- insights --------------------------------------------------------------------------------


class InsightsRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """How many hours figures go back."""

    hours: Annotated[int, Meta(ge=1, le=168)] = 1


class Totals(Struct, frozen=True):
    """Since the store was made; `found` are items as in `ExplorationOut`."""

    rankings: int
    events: int
    clicks: int
    items: int
    queries: int
    found: int


class BucketOut(Struct, frozen=True):
    """What happened in `bucket_seconds`; `new` items entered less than `new_seconds` before."""

    start: float
    rankings: int
    shown: int
    """impressions that count."""
    clicks: int
    events: int
    """feedback that was accepted; `duplicate` and `rejected` feedback was not."""
    duplicate: int
    rejected: int
    refused: int
    """responses with a status of 4xx."""
    failed: int
    """responses with a status of 5xx."""
    starts: int
    """how often a server started."""
    found: int
    exposure_new: float
    exposure_old: float
    clicks_new: int
    clicks_old: int
    exploration_cost: float
    explored: int
    latency_p50_ms: float | None
    latency_p99_ms: float | None


class WaitingCurve(Struct, frozen=True):
    """How long items wait for something, those still waiting counted as such (Kaplan-Meier)."""

    items: int
    """how many items are included."""
    happened: int
    """for how many of them it happened."""
    median: float | None
    """seconds after which it has happened for half of them; None if not yet."""
    seconds: list[float]
    """times at which the curve falls."""
    still_waiting: list[float]
    """share still waiting after each."""


class WaitingTimes(Struct, frozen=True):
    """From entering to the first impression, and to the first place within the top k."""

    first_shown: WaitingCurve
    top_k: WaitingCurve


class BuriedItem(Struct, frozen=True):
    """An item with a promising prior that was shown little."""

    query: str
    item: str
    prior: float
    relevance: float
    shown: int
    exposure: float
    rank_by_relevance: int


class Arrival(Struct, frozen=True):
    """An item that entered a query which users had seen, and its ranks at some ages."""

    query: str
    item: str
    entered: float
    """when, in seconds since 1970."""
    seconds: list[float]
    """its ages."""
    ranks: list[int]
    """its rank in the served order, at each age."""
    ranks_by_clicks: list[int]
    """its rank by clicks alone: clicks weighted by rank per impression, as far as that order would
    have shown the item itself.
    """
    ranks_by_features: list[int]
    """its rank by features alone, as the prior in use reads them."""
    ranks_by_relevance: list[int]
    """its rank by relevance alone, without the bonus."""
    holds: bool = False
    """whether relevance alone put it in the top k at every look in the second half of its age; so
    it is not there for a try.
    """
    holds_by_clicks: bool = False
    """the same of its rank by clicks alone."""
    holds_by_features: bool = False
    """the same of its rank by features alone."""


class ExplorationOut(Struct, frozen=True):
    """What exploration cost and brought."""

    cost: float
    """expected clicks lost compared with the order by relevance alone."""
    explored: int
    """slots that exploration filled."""
    found: int
    """items that exploration showed first and that were then listed for their relevance."""


class FoundItem(Struct, frozen=True):
    """An item that exploration showed first and that is now in the top k by relevance."""

    query: str
    item: str
    relevance: float
    rank_by_relevance: int
    shown: int
    clicks: int
    entered: float


class TopQuery(Struct, frozen=True):
    """A recently used query; `lists`, `shown` and `clicks` are its totals."""

    query: str
    candidates: int
    lists: int
    shown: int
    clicks: int


class Coverage(Struct, frozen=True):
    """How many candidates of recently used queries were shown, were clicked, and are new."""

    queries: int
    candidates: int
    shown: int
    clicked: int
    new: int


class FeedbackOut(Struct, frozen=True):
    """The outcome of feedback."""

    accepted: int
    """accepted events."""
    duplicate: int
    """events that were sent before."""
    rejected: dict[str, int]
    """rejected events by the code of the reason; `expired` is feedback that came too late."""
    last: float | None
    """when the last event was accepted, in seconds since 1970; None if none was."""


class RouteOut(Struct, frozen=True):
    """Responses of a route: all, those with a status of 4xx, and those with 5xx."""

    route: str
    answers: int
    refused: int
    failed: int


class ExaminationOut(Struct, frozen=True):
    """The probability that users look at ranks 1, 2, ...: as configured, and as learned."""

    configured: list[float]
    learned: list[float] | None


class SystemOut(Struct, frozen=True):
    """The server, and the disk below it."""

    version: str
    """of ebrank."""
    policy: str
    """how items are scored, in full."""
    started: float
    """when this server started, in seconds since 1970."""
    store_bytes: int | None
    """disk space that the store takes; None if it is in memory."""
    free_bytes: int | None
    """free disk space; None if unknown."""
    log_entries: int | None
    """about how many lists and events the log holds, without what was rolled up; None if the store
    is in memory.
    """


class CalibrationBin(Struct, frozen=True):
    """Items with about the same prior, and how relevant users found them."""

    predicted: float
    observed: float
    rows: int


class FeatureTrust(Struct, frozen=True):
    """How far the prior trusts a feature, or an embedding."""

    name: str
    """its name, or its position, from 1, if it has none; for columns whose names differ only in a
    number at the end, what they have in common.
    """
    columns: int
    """how many columns it has."""
    share: float
    """its share of the spread of the prior's scores: the standard deviation of how far scores move
    if it is replaced by its mean, over the sum of these over all features. In a linear prior, this
    is |weight| times standard deviation.
    """


class ServerOut(Struct, frozen=True):
    """A server, as it reported a few seconds ago. Counts are since it started."""

    name: str
    """its machine's name, and the number of its process."""
    version: str
    """of ebrank."""
    started: float
    """when it started, in seconds since 1970."""
    model: int
    """the version of the prior that it ranks with."""
    jobs: list[str]
    """what it does for all: `train`, `roll up`."""
    lists: int
    """lists that it served."""
    events: int
    """events that it accepted."""
    from_memory: int
    """how often it found a query in memory."""
    from_store: int
    """how often it had to read one."""
    stale: int
    """how often a write revealed that another server had written to the query before."""
    clock_lag: float
    """seconds that its clock is behind the log."""
    rules: dict[str, str]
    """settings with which it makes lists, as JSON; all servers of a store have the same."""
    store_ms: float
    """how long the store took for the previous announcement."""
    seen_seconds: float = 0.0
    """how long ago it reported: a server does so every three seconds."""
    answers: bool = False
    """whether it is the one that sends this response."""


class BudgetOut(Struct, frozen=True):
    """What exploration costs, with `ranking.exploration_budget`."""

    exploration_budget: float
    """the share of clicks that it may cost."""
    stopped: bool
    """whether it cost more, so that no list explores until an operator resumes it."""
    spent: float
    """the share of the clicks on this server's lists that exploration may have cost today, at
    worst.
    """
    lists: int
    """how many may have explored, as far as clicks are compared."""
    held_out_lists: int
    """how many may not have, for comparison."""
    exploring: float
    """clicks per list of the former."""
    held_out: float
    """clicks per list of the latter."""
    low: float | None
    """anytime-valid lower end of `exploring` − (1 − `exploration_budget`) · `held_out`; None while
    little is known.
    """
    high: float | None
    """its upper end; exploration stops when it falls below 0."""


class Insights(Struct, frozen=True):
    """Everything the dashboard shows, except the view of one query.

    Figures about items, from `arrivals` to `calibration`, cover the most recently used queries, as
    they are now.
    """

    now: float
    model: int
    k: int
    new_seconds: float
    first_item: float | None
    """when the first item entered: until `new_seconds` later all items are new, and their share
    means nothing. None without items, and for stores made before it was recorded.
    """
    demo: bool
    """whether users are simulated."""
    hours: int
    """how far sums go back."""
    bucket_seconds: float
    totals: Totals
    buckets: list[BucketOut]
    feedback: FeedbackOut
    routes: list[RouteOut]
    system: SystemOut
    arrivals: list[Arrival]
    waiting: WaitingTimes
    buried: list[BuriedItem]
    found: list[FoundItem]
    top_queries: list[TopQuery]
    coverage: Coverage
    examination: ExaminationOut
    exploration: ExplorationOut
    calibration: list[CalibrationBin]
    features: list[FeatureTrust]
    """of the active model, the largest share first; none before any training."""
    models: list[ModelOut]
    """the newest."""
    training: TrainingOut
    prior: PriorOut
    servers: list[ServerOut]
    experiment: ExperimentOut | None
    """the one that is running."""
    budget: BudgetOut | None
