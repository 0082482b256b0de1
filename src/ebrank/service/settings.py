"""Every setting of the service, declared once: its name, type, limits, default and meaning.

`configuration` reads them from a TOML file, the environment and flags; the table in
`docs/service.md` is made from these declarations.

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
    port: Annotated[int, _about("port to listen on; 0 takes a free one", ge=0, le=65535)] = 8000
    access_log: Annotated[
        bool, _about("whether each request is a line of JSON on stderr, without names or secrets")
    ] = False
    log: Annotated[
        Literal["text", "json"],
        _about("how everything else is written there; as `json`, training and roll-ups too"),
    ] = "text"
    traces: Annotated[
        bool, _about("whether OpenTelemetry spans are sent; needs the extra `otel`")
    ] = False
    leave_seconds: Annotated[
        float,
        _about(
            "how long it goes on to serve after SIGTERM while `/readyz` says 503, for a load "
            "balancer to notice",
            ge=0,
        ),
    ] = 0.0


@dataclass(frozen=True)
class StoreSettings:
    """Where and how long the service remembers."""

    url: Annotated[
        str, _about("where the store is: a folder, `memory:`, or `module:Class:argument`")
    ] = "ebrank-store"
    durability: Annotated[
        Literal["process", "disk"],
        _about(
            "what a ranking survives once its answer leaves: the end of the `process`, or of "
            "the machine (`disk`, which waits for a flush); feedback is always on disk"
        ),
    ] = "process"
    retention_seconds: Annotated[
        float, _about("age at which rankings and events are rolled up", gt=0)
    ] = 30 * 86400.0
    roll_up_seconds: Annotated[float, _about("time between two roll-ups", gt=0)] = 600.0
    normalize_queries: Annotated[
        bool,
        _about("whether `Tea` and `tea ` are one query: Unicode NFKC, no case, single spaces"),
    ] = True
    max_idle_seconds: Annotated[
        float,
        _about(
            "a clock further ahead of the log and of the store's files is taken to be wrong, and "
            "the server does not start; 0 is off",
            ge=0,
        ),
    ] = 180 * 86400.0


@dataclass(frozen=True)
class RankingSettings:
    """How lists are made."""

    mode: Annotated[
        Literal["live", "shadow"],
        _about("`shadow` serves the caller's order and reports what EBRank would have done"),
    ] = "live"
    k: Annotated[int, _about("length of a list, if a request names none", ge=1, le=MOST_RANKS)] = 10
    degraded: Annotated[
        bool,
        _about("whether lists are made from memory while the store fails, marked and not counted"),
    ] = True
    policy: Annotated[
        str, _about("how items are scored: `auto`, `ebrank:epsilon=20,estimator=exposure`, ...")
    ] = "auto"
    plan_seconds: Annotated[
        float,
        _about("how far ahead exploration plans, for policies with a horizon such as `auto`", gt=0),
    ] = 30 * 86400.0
    seed: Annotated[int, _about("of the keys that break ties", ge=0, le=2**63 - 1)] = 0
    window: Annotated[
        float, _about("seconds for which a user's list of a query keeps its order; 0 is off", ge=0)
    ] = 60.0
    max_explored: (
        Annotated[int, _about("most slots of a list that exploration may fill", ge=0)] | None
    ) = None
    max_promotion: (
        Annotated[int, _about("most ranks that exploration may lift an item", ge=0)] | None
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
        """Return the library's curve; raises `ParameterError` where it is none."""
        return Examination(self.severity, self.cutoff, self.curve)


@dataclass(frozen=True)
class FeaturesSettings:
    """What features are."""

    names: (
        Annotated[
            tuple[str, ...],
            _about("names of those of query and item; else the first items decide", min_length=1),
        ]
        | None
    ) = None
    shared: (
        Annotated[
            tuple[str, ...],
            _about("names of those that queries share; else the catalog's first", min_length=1),
        ]
        | None
    ) = None
    missing: Annotated[
        Literal["reject", "zero", "mean"],
        _about(
            "what a missing value becomes; `mean` is that of the query's candidates, by which "
            "`reject` fills what was stored before a feature was added"
        ),
    ] = "reject"
    scaling: Annotated[
        Literal["query", "global", "none"],
        _about("min-max over the query's candidates, over the training rows, or no scaling"),
    ] = "query"

    @property
    def fills_by_mean(self) -> bool:
        """Whether what is missing becomes the mean rather than 0."""
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
            "types of events that count, each with its worth up to 1, as in `click=0.3`, or from a "
            "value on, as in `dwell>=30=0.6`"
        ),
    ] = ("click",)
    negative: Annotated[
        tuple[str, ...],
        _about("types of events after which an impression is worth nothing, such as `hide`"),
    ] = ()
    other: Annotated[
        tuple[str, ...], _about("types of events that are logged and count nothing")
    ] = ()
    half_life_days: (
        Annotated[float, _about("days after which an impression counts half", gt=0)] | None
    ) = None
    future_seconds: Annotated[
        float, _about("how far an event's time may lie ahead of our clock", ge=0)
    ] = 300.0

    def declared(self) -> Behaviors:
        """Return the library's behaviors; raises `ParameterError` where they are none.

        >>> EventsSettings(behaviors=("click=0.3", "purchase")).declared().weights
        (0.3, 1.0)
        """
        return Behaviors.parse(self.behaviors, self.negative)


@dataclass(frozen=True)
class BotsSettings:
    """Who asks too often to be a person."""

    lists_per_minute: Annotated[
        int, _about("a visitor who asks for more lists in a minute is a bot; 0 is off", ge=0)
    ] = 0
    events_per_minute: Annotated[
        int, _about("a visitor with more events in a minute is a bot; 0 is off", ge=0)
    ] = 0
    visitor: Annotated[
        Literal["user", "session"], _about("whose lists and events are added up: the request's")
    ] = "user"


@dataclass(frozen=True)
class ContextsSettings:
    """What is made of the contexts of requests."""

    most: Annotated[
        int,
        _about(
            "pairs of name and value in the `context` of requests, the most frequent ones, for "
            "which preferences of their own are learned; 0 is off",
            ge=0,
            le=MOST_CONTEXTS,
        ),
    ] = 0


@dataclass(frozen=True)
class TrainingSettings:
    """When the prior is refitted, and on what."""

    every_seconds: Annotated[float, _about("time between two runs; 0 is off", ge=0)] = 3600.0
    after_events: Annotated[int, _about("new events that start a run; 0 is off", ge=0)] = 200
    after_growth: Annotated[
        float, _about("... if there are also this many for each one before the last run", ge=0)
    ] = 0.25
    min_rows: Annotated[int, _about("shown items needed to train at all", ge=1)] = 20
    validation_share: Annotated[
        float, _about("share of the queries that judge a model instead of training it", gt=0, lt=1)
    ] = 0.2
    tolerance: Annotated[
        float, _about("how much higher the validation loss of a new model may be", ge=0)
    ] = 0.0
    max_seconds: Annotated[
        float, _about("longest run; the trainer's process is ended then, and the next may do", gt=0)
    ] = 1800.0


@dataclass(frozen=True)
class ModelsSettings:
    """Which versions of the prior are kept."""

    keep: Annotated[
        int,
        _about(
            "newest versions that are kept, beside the active one and the last that went live "
            "before",
            ge=1,
            le=1000,
        ),
    ] = 50


@dataclass(frozen=True)
class InsightsSettings:
    """What the dashboard shows."""

    new_seconds: Annotated[float, _about("age below which an item is new", gt=0)] = 86400.0
    refresh_seconds: Annotated[float, _about("time for which costly figures are kept", ge=0)] = 5.0
    bucket_seconds: Annotated[
        float, _about("span of time whose figures are added up", ge=1, le=3600)
    ] = 60.0
    demo: Annotated[bool, _about("whether the page says that its users are simulated")] = False


@dataclass(frozen=True)
class LimitsSettings:
    """How much one caller may ask for."""

    body_bytes: Annotated[int, _about("largest body of a request", ge=1024)] = 8 * 2**20
    bodies_bytes: Annotated[
        int, _about("most bytes of bodies held at once, of all requests together", ge=1024)
    ] = 64 * 2**20
    connections: Annotated[
        int, _about("open connections; beyond, the one that waited longest makes room", ge=1)
    ] = 4096
    head_seconds: Annotated[
        float, _about("time to send the address and headers of a request", gt=0)
    ] = 10.0
    body_seconds: Annotated[float, _about("time to send a body", gt=0)] = 30.0
    answer_seconds: Annotated[float, _about("time to take an answer", gt=0)] = 30.0
    idle_seconds: Annotated[
        float, _about("how long a connection stays open without a request", gt=0)
    ] = 75.0
    requests_per_second: Annotated[
        float, _about("steady rate of a token or an address; 0 is no limit", ge=0)
    ] = 0.0
    burst: Annotated[int, _about("requests it may send at once", ge=1)] = 100
    memory: Annotated[
        int | str,
        _about("memory of the process, in bytes or as in `512 MB`; what is long unused is dropped"),
    ] = "1 GB"

    def memory_bytes(self) -> int:
        """Return the limit of memory; raises `ParameterError` where it is none.

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
    """All sections, each a table of the TOML file; `tokens` is a table of tables."""

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
