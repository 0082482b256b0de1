"""Every setting of the service, declared once: its name, type, limits, default and meaning.

`configuration` reads them from a TOML file, the environment and flags; a test compares the table in
`docs/service.md` with these declarations.

>>> Settings().ranking.k
10
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from ebrank.contexts import MOST as MOST_CONTEXTS
from ebrank.evidence import Behaviors, Examination
from ebrank.parameters import bytes_of
from ebrank.service.api import MOST_RANKS

Scope: TypeAlias = Literal["rank", "feedback", "admin"]


def _about(meaning: str, **limits: float) -> Meta:
    about: Meta = Meta(description=meaning, **limits)  # type: ignore[call-overload]
    return about


@dataclass(frozen=True)
class ServerSettings:
    """Where the service listens."""

    host: Annotated[str, _about("address to listen on")] = "127.0.0.1"
    port: Annotated[int, _about("port to listen on; 0 picks a free one", ge=0, le=65535)] = 8000
    access_log: Annotated[
        bool,
        _about("whether to log each request as a line of JSON on stderr, without names or secrets"),
    ] = False
    log: Annotated[
        Literal["text", "json"],
        _about("format of all other log lines on stderr; `json` also logs training and roll-ups"),
    ] = "text"
    traces: Annotated[
        bool, _about("whether to send OpenTelemetry spans; needs the extra `otel`")
    ] = False
    leave_seconds: Annotated[
        float,
        _about(
            "how long to keep serving after SIGTERM while `/readyz` returns 503, so that a load "
            "balancer can notice",
            ge=0,
        ),
    ] = 0.0


@dataclass(frozen=True)
class StoreSettings:
    """Where and for how long the service stores data."""

    url: Annotated[
        str, _about("where the store is: a folder, `memory:`, or `module:Class:argument`")
    ] = "ebrank-store"
    durability: Annotated[
        Literal["process", "disk"],
        _about(
            "what a ranking survives once the response is sent: a crash of the `process`, or of "
            "the machine (`disk`, which waits for a flush); acknowledged feedback is always on "
            "disk"
        ),
    ] = "process"
    retention_seconds: Annotated[
        float,
        _about(
            "age at which events about a list are refused; soon after, both are rolled up", gt=0
        ),
    ] = 30 * 86400.0
    roll_up_seconds: Annotated[float, _about("time between two roll-ups", gt=0)] = 600.0
    normalize_queries: Annotated[
        bool,
        _about(
            "whether `Tea` and `tea ` are the same query: Unicode NFKC, case-insensitive, single "
            "spaces"
        ),
    ] = True
    max_idle_seconds: Annotated[
        float,
        _about(
            "if the clock is further ahead of the log and the store's files, the server assumes "
            "it is wrong and does not start; 0 is off",
            ge=0,
        ),
    ] = 180 * 86400.0


@dataclass(frozen=True)
class RankingSettings:
    """How lists are made."""

    mode: Annotated[
        Literal["live", "shadow"],
        _about("`shadow` serves the caller's order and reports what EBRank would have served"),
    ] = "live"
    k: Annotated[
        int, _about("length of a list, if the request does not say", ge=1, le=MOST_RANKS)
    ] = 10
    degraded: Annotated[
        bool,
        _about(
            "whether to serve lists from memory while the store is failing; they are marked and "
            "do not count"
        ),
    ] = True
    policy: Annotated[
        str, _about("how to score items: `auto`, `ebrank:epsilon=20,estimator=exposure`, ...")
    ] = "auto"
    plan_seconds: Annotated[
        float,
        _about("how far ahead exploration plans, for policies with a horizon such as `auto`", gt=0),
    ] = 30 * 86400.0
    seed: Annotated[int, _about("seed for breaking ties", ge=0, le=2**63 - 1)] = 0
    window: Annotated[
        float, _about("how many seconds a user sees the same order for a query; 0 is off", ge=0)
    ] = 60.0
    max_explored: (
        Annotated[int, _about("maximum number of slots in a list that exploration may fill", ge=0)]
        | None
    ) = None
    max_promotion: (
        Annotated[
            int, _about("maximum number of ranks by which exploration may raise an item", ge=0)
        ]
        | None
    ) = None


@dataclass(frozen=True)
class ExaminationSettings:
    """Which ranks users look at."""

    severity: Annotated[float, _about("exponent of 1/log2(rank + 1)", ge=0)] = 1.0
    cutoff: Annotated[int, _about("last rank users examine", ge=1)] | None = None
    curve: (
        Annotated[tuple[float, ...], _about("measured probabilities of ranks 1, 2, ...")] | None
    ) = None

    def examination(self) -> Examination:
        """Return the library's curve; raises `ParameterError` if it is invalid."""
        return Examination(self.severity, self.cutoff, self.curve)


@dataclass(frozen=True)
class FeaturesSettings:
    """What features are."""

    names: (
        Annotated[
            tuple[str, ...],
            _about(
                "names of the features of query and item; default: those of the first items",
                min_length=1,
            ),
        ]
        | None
    ) = None
    shared: (
        Annotated[
            tuple[str, ...],
            _about(
                "names of the features that queries share; default: those of the catalog's first "
                "item",
                min_length=1,
            ),
        ]
        | None
    ) = None
    missing: Annotated[
        Literal["reject", "zero", "mean"],
        _about(
            "what to do with a missing value; `mean` uses the mean of the query's candidates, and "
            "so does `reject` for items stored before a feature was added"
        ),
    ] = "reject"
    scaling: Annotated[
        Literal["query", "global", "none"],
        _about("min-max over the query's candidates, over the training rows, or no scaling"),
    ] = "query"

    @property
    def fills_by_mean(self) -> bool:
        """Whether a missing value becomes the mean rather than 0."""
        return self.missing != "zero"


@dataclass(frozen=True)
class EventsSettings:
    """Which events count, and as what."""

    impressions: Annotated[
        Literal["served", "confirmed"],
        _about("an item counts as shown when served, or when an `impression` event confirms it"),
    ] = "served"
    behaviors: Annotated[
        tuple[str, ...],
        _about(
            "event types that count, each with its worth up to 1, as in `click=0.3`, or with a "
            "threshold, as in `dwell>=30=0.6`"
        ),
    ] = ("click",)
    negative: Annotated[
        tuple[str, ...],
        _about("event types that make an impression worth nothing, such as `hide`"),
    ] = ()
    other: Annotated[tuple[str, ...], _about("event types that are logged but do not count")] = ()
    half_life_days: (
        Annotated[float, _about("days until an impression counts half", gt=0)] | None
    ) = None
    future_seconds: Annotated[
        float, _about("how far an event's time may be ahead of the server's clock", ge=0)
    ] = 300.0

    def declared(self) -> Behaviors:
        """Return the library's behaviors; raises `ParameterError` if they are invalid.

        >>> EventsSettings(behaviors=("click=0.3", "purchase")).declared().weights
        (0.3, 1.0)
        """
        return Behaviors.parse(self.behaviors, self.negative)


@dataclass(frozen=True)
class BotsSettings:
    """Who sends too many requests to be a person."""

    lists_per_minute: Annotated[
        int, _about("a visitor who requests more lists per minute is a bot; 0 is off", ge=0)
    ] = 0
    events_per_minute: Annotated[
        int, _about("a visitor with more events per minute is a bot; 0 is off", ge=0)
    ] = 0
    visitor: Annotated[
        Literal["user", "session"], _about("which field of the request identifies a visitor")
    ] = "user"


@dataclass(frozen=True)
class ContextsSettings:
    """How the service uses the contexts of requests."""

    most: Annotated[
        int,
        _about(
            "maximum number of name-value pairs in the `context` of requests, the most frequent "
            "ones, for which to learn separate preferences; 0 is off",
            ge=0,
            le=MOST_CONTEXTS,
        ),
    ] = 0


@dataclass(frozen=True)
class TrainingSettings:
    """When the prior is refitted, and on what."""

    every_seconds: Annotated[float, _about("time between training runs; 0 is off", ge=0)] = 3600.0
    after_events: Annotated[
        int, _about("number of new events that start a training run; 0 is off", ge=0)
    ] = 200
    after_growth: Annotated[
        float,
        _about(
            "... provided they are at least this fraction of the events before the last run", ge=0
        ),
    ] = 0.25
    min_rows: Annotated[int, _about("minimum number of shown items for training", ge=1)] = 20
    validation_share: Annotated[
        float,
        _about("share of queries used to validate a model instead of training it", gt=0, lt=1),
    ] = 0.2
    tolerance: Annotated[
        float, _about("by how much the validation loss of a new model may be higher", ge=0)
    ] = 0.0
    max_seconds: Annotated[
        float,
        _about(
            "time limit of a training run; a run that exceeds it is stopped",
            gt=0,
        ),
    ] = 1800.0


@dataclass(frozen=True)
class ModelsSettings:
    """Which versions of the prior are kept."""

    keep: Annotated[
        int,
        _about(
            "number of newest versions to keep, besides the active one and the one that was live "
            "before it",
            ge=1,
            le=1000,
        ),
    ] = 50


@dataclass(frozen=True)
class InsightsSettings:
    """What the dashboard shows."""

    new_seconds: Annotated[float, _about("age up to which an item counts as new", gt=0)] = 86400.0
    refresh_seconds: Annotated[float, _about("how long to cache expensive figures", ge=0)] = 5.0
    bucket_seconds: Annotated[
        float, _about("time span over which figures are summed", ge=1, le=3600)
    ] = 60.0
    demo: Annotated[bool, _about("whether the dashboard says that its users are simulated")] = False


@dataclass(frozen=True)
class LimitsSettings:
    """How much callers may use."""

    body_bytes: Annotated[int, _about("maximum size of a request body", ge=1024)] = 8 * 2**20
    bodies_bytes: Annotated[
        int, _about("maximum size of all request bodies in memory together", ge=1024)
    ] = 64 * 2**20
    connections: Annotated[
        int,
        _about(
            "maximum number of open connections; beyond it, the one that waited longest is closed",
            ge=1,
        ),
    ] = 4096
    head_seconds: Annotated[
        float, _about("time limit for sending the URL and headers of a request", gt=0)
    ] = 10.0
    body_seconds: Annotated[float, _about("time limit for sending a request body", gt=0)] = 30.0
    answer_seconds: Annotated[float, _about("time limit for receiving a response", gt=0)] = 30.0
    idle_seconds: Annotated[
        float, _about("how long a connection stays open without a request", gt=0)
    ] = 75.0
    requests_per_second: Annotated[
        float, _about("sustained rate per token or address; 0 means no limit", ge=0)
    ] = 0.0
    burst: Annotated[
        int, _about("number of requests a token or address may send at once", ge=1)
    ] = 100
    memory: Annotated[
        int | str,
        _about(
            "memory limit of the process, in bytes or as in `512 MB`; the least recently used "
            "data is dropped"
        ),
    ] = "1 GB"

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
    bots: BotsSettings = field(default_factory=BotsSettings)
    contexts: ContextsSettings = field(default_factory=ContextsSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    models: ModelsSettings = field(default_factory=ModelsSettings)
    insights: InsightsSettings = field(default_factory=InsightsSettings)
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    tokens: tuple[Token, ...] = ()
