"""Every setting of the service, declared once: its name, type, limits, default and meaning.

The text below a setting is its meaning (`meanings`). `ops.configuration` reads settings from a TOML
file, the environment and flags; a test compares the table in `docs/service.md` with these
declarations.

>>> Settings().ranking.k
10
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from ebrank.errors import ParameterError
from ebrank.evidence import Behaviors, Examination
from ebrank.parameters import bytes_of
from ebrank.service.api import MOST_RANKS
from ebrank.service.endpoints import Scope

Count: TypeAlias = Annotated[int, Meta(ge=0)]
AtLeastOne: TypeAlias = Annotated[int, Meta(ge=1)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
NotNegative: TypeAlias = Annotated[float, Meta(ge=0)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Names: TypeAlias = Annotated[tuple[str, ...], Meta(min_length=1)]


@dataclass(frozen=True)
class ServerSettings:
    """Where the service listens."""

    host: str = "127.0.0.1"
    """address to listen on"""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8000
    """port to listen on; 0 picks a free one"""
    access_log: bool = False
    """whether to log each request as a line of JSON on stderr, without names or secrets"""
    log: Literal["text", "json"] = "text"
    """format of all other log lines on stderr; `json` also logs training and roll-ups"""
    leave_seconds: NotNegative = 0.0
    """how long to keep serving after SIGTERM while `/readyz` returns 503, so that a load balancer
    can notice
    """


@dataclass(frozen=True)
class StoreSettings:
    """Where and for how long the service stores data."""

    url: str = "ebrank-store"
    """where the store is: a folder, `memory:`, or `module:Class:argument`"""
    durability: Literal["process", "disk"] = "process"
    """what a ranking survives once the response is sent: a crash of the `process`, or of the
    machine (`disk`, which waits for a flush); acknowledged feedback is always on disk
    """
    retention_seconds: Positive = 30 * 86400.0
    """age at which events about a list are refused; soon after, both are rolled up"""
    roll_up_seconds: Positive = 600.0
    """time between two roll-ups"""
    expire_idle_days: Positive | None = None
    """days without a list or an event after which a query is deleted with its items and their
    evidence
    """
    normalize_queries: bool = True
    """whether `Tea` and `tea ` are the same query: Unicode NFKC, case-insensitive, single spaces"""
    max_idle_seconds: NotNegative = 180 * 86400.0
    """if the clock is further ahead of the log and the store's files, the server assumes it is
    wrong and does not start; 0 is off
    """


@dataclass(frozen=True)
class RankingSettings:
    """How lists are made."""

    k: Annotated[int, Meta(ge=1, le=MOST_RANKS)] = 10
    """length of a list, if the request does not say"""
    degraded: bool = True
    """whether to serve uncounted lists from memory while the store is failing"""
    policy: str = "auto"
    """how to score items: `auto`, `ebrank:epsilon=20,estimator=exposure`, ..."""
    unknown: Literal["reject", "prior"] = "reject"
    """what to do with an id in a request that is neither a candidate nor in the catalog; `prior`
    adds it to the query without features, and needs `features.missing` other than `reject`
    """
    plan_seconds: Positive = 30 * 86400.0
    """how much of a query's past counts when exploration plans ahead, for policies with a horizon
    such as `auto`
    """
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    """seed for breaking ties"""
    window: NotNegative = 60.0
    """how many seconds a user sees the same order for a query; 0 is off"""
    exploration_budget: Annotated[float, Meta(gt=0, lt=1)] | None = None
    """share of a day's clicks that exploration may cost at most, such as `0.005`; it stops by
    itself if clicks say that it costs more
    """


@dataclass(frozen=True)
class ExaminationSettings:
    """Which ranks users look at."""

    severity: NotNegative = 1.0
    """exponent of 1/log2(rank + 1)"""
    cutoff: AtLeastOne | None = None
    """last rank users examine"""
    curve: tuple[float, ...] | None = None
    """measured probabilities of ranks 1, 2, ..."""

    def examination(self) -> Examination:
        """Return the library's curve; raises `ParameterError` if it is invalid."""
        return Examination(self.severity, self.cutoff, self.curve)


@dataclass(frozen=True)
class FeaturesSettings:
    """What features are."""

    names: Names | None = None
    """names of the features of query and item; default: those of the first items"""
    shared: Names | None = None
    """names of the features that queries share; default: those of the catalog's first item"""
    missing: Literal["reject", "zero", "mean"] = "reject"
    """what to do with a missing value; `mean` uses the mean of the query's candidates, and so does
    `reject` for optional features and for items stored before a feature was added
    """
    scaling: Literal["query", "global", "none"] = "query"
    """min-max over the query's candidates, over the training rows, or no scaling"""

    @property
    def fills_by_mean(self) -> bool:
        """Whether a missing value becomes the mean rather than 0."""
        return self.missing != "zero"


@dataclass(frozen=True)
class EventsSettings:
    """Which events count, and as what."""

    impressions: Literal["served", "confirmed"] = "served"
    """an item counts as shown when served, or when an `impression` event confirms it"""
    behaviors: tuple[str, ...] = ("click",)
    """event types that count, each with its worth up to 1, as in `click=0.3`, or with a threshold,
    as in `dwell>=30=0.6`
    """
    negative: tuple[str, ...] = ()
    """event types that make an impression worth nothing, such as `hide`"""
    other: tuple[str, ...] = ()
    """event types that are logged but do not count"""
    half_life_days: Positive | None = None
    """days until an impression counts half"""
    future_seconds: NotNegative = 300.0
    """how far an event's time may be ahead of the server's clock"""

    def declared(self) -> Behaviors:
        """Return the library's behaviors; raises `ParameterError` if they are invalid.

        >>> EventsSettings(behaviors=("click=0.3", "purchase")).declared().weights
        (0.3, 1.0)
        """
        return Behaviors.parse(self.behaviors, self.negative)


@dataclass(frozen=True)
class TrainingSettings:
    """When the prior is refitted, and on what."""

    every_seconds: NotNegative = 3600.0
    """time between training runs; 0 is off"""
    after_events: Count = 200
    """number of new events that start a training run; 0 is off"""
    after_growth: NotNegative = 0.25
    """... provided they are at least this fraction of the events before the last run"""
    min_rows: AtLeastOne = 20
    """minimum number of shown items for training"""
    tolerance: NotNegative = 0.0
    """by how much the held-out loss of a new model may be higher, even if that is clear"""
    max_seconds: Positive = 1800.0
    """time limit of a training run; a run that exceeds it is stopped"""


@dataclass(frozen=True)
class ModelsSettings:
    """Which versions of the prior are kept."""

    keep: Annotated[int, Meta(ge=1, le=1000)] = 50
    """number of newest versions to keep, besides the active one and the one that was live before it
    """


@dataclass(frozen=True)
class InsightsSettings:
    """What the dashboard shows."""

    new_seconds: Positive = 86400.0
    """age up to which an item counts as new"""
    refresh_seconds: NotNegative = 5.0
    """how long to cache expensive figures"""
    bucket_seconds: Annotated[float, Meta(ge=1, le=3600)] = 60.0
    """time span over which figures are summed"""
    demo: bool = False
    """whether the dashboard says that its users are simulated"""


@dataclass(frozen=True)
class LimitsSettings:
    """How much callers may use."""

    body_bytes: Annotated[int, Meta(ge=1024)] = 8 * 2**20
    """maximum size of a request body"""
    bodies_bytes: Annotated[int, Meta(ge=1024)] = 64 * 2**20
    """maximum size of all request bodies in memory together"""
    body_seconds: Positive = 30.0
    """time limit for sending a request body"""
    idle_seconds: AtLeastOne = 75
    """how long a connection stays open without a request"""
    requests_per_second: NotNegative = 0.0
    """sustained rate per token or address; 0 means no limit"""
    burst: AtLeastOne = 100
    """number of requests a token or address may send at once"""
    new_queries_per_hour: Count = 0
    """number of queries that rank requests of a token or address may create per hour on each
    server; 0 means no limit
    """
    memory: int | str = "1 GB"
    """memory limit of the process, in bytes or as in `512 MB`; the least recently used data is
    dropped
    """

    def memory_bytes(self) -> int:
        """Return the memory limit; raises `ParameterError` if it is invalid.

        >>> LimitsSettings(memory="1.5 GB").memory_bytes(), LimitsSettings(memory=7).memory_bytes()
        (1500000000, 7)
        """
        return bytes_of(self.memory)


@dataclass(frozen=True)
class Token:
    """A caller: what it may do, and the SHA-256 of its secret."""

    name: str
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    scopes: Annotated[tuple[Scope, ...], Meta(min_length=1)]


@dataclass(frozen=True)
class Settings:
    """All sections, each a table in the TOML file; `tokens` is a table of tables."""

    server: ServerSettings = field(default_factory=ServerSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    ranking: RankingSettings = field(default_factory=RankingSettings)
    examination: ExaminationSettings = field(default_factory=ExaminationSettings)
    features: FeaturesSettings = field(default_factory=FeaturesSettings)
    events: EventsSettings = field(default_factory=EventsSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    models: ModelsSettings = field(default_factory=ModelsSettings)
    insights: InsightsSettings = field(default_factory=InsightsSettings)
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    tokens: tuple[Token, ...] = ()

    def check_unknown(self) -> None:
        """Raise `ParameterError` if unknown items were to enter although they lack features."""
        if self.ranking.unknown == "prior" and self.features.missing == "reject":
            raise ParameterError(
                '"prior" adds items without features, which features.missing rejects. Set that to '
                '"mean" or "zero"'
            )
