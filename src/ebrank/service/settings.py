"""Every setting of the service, declared once: its name, type, limits, default and meaning.

`configuration` reads them from a TOML file, the environment and flags; a test compares the table in
`docs/service.md` with these declarations.

>>> Settings().ranking.k
10
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from types import NoneType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    get_type_hints,
)

from msgspec import Meta

from ebrank.errors import ParameterError
from ebrank.evidence import Behaviors, Examination
from ebrank.parameters import bytes_of
from ebrank.policy.contexts import MOST as MOST_CONTEXTS
from ebrank.service.api import MOST_RANKS

Scope: TypeAlias = Literal["rank", "feedback", "admin"]


T = TypeVar("T")


def _setting(default: T, meaning: str, **limits: float) -> T:
    """Declare a setting by its default, its meaning and the limits of its values."""
    about = Meta(description=meaning, **limits)  # type: ignore[call-overload]
    declared: T = field(default=default, metadata={"about": about})
    return declared


@dataclass_transform(frozen_default=True)
def _section(section: type[T]) -> type[T]:
    """Make a dataclass of some settings; write their limits into types, where msgspec looks."""
    hints, section = get_type_hints(section), dataclass(frozen=True)(section)
    for declared in fields(section):  # type: ignore[arg-type]
        kind, about = hints[declared.name], declared.metadata["about"]
        annotated: Any = Annotated[kind, about]
        if NoneType in get_args(kind):  # the limits are not for None
            annotated = Annotated[get_args(kind)[0], about] | None
        section.__annotations__[declared.name] = annotated
    return section


@_section
class ServerSettings:
    """Where the service listens."""

    host: str = _setting("127.0.0.1", "address to listen on")
    port: int = _setting(8000, "port to listen on; 0 picks a free one", ge=0, le=65535)
    access_log: bool = _setting(
        False, "whether to log each request as a line of JSON on stderr, without names or secrets"
    )
    log: Literal["text", "json"] = _setting(
        "text", "format of all other log lines on stderr; `json` also logs training and roll-ups"
    )
    leave_seconds: float = _setting(
        0.0,
        "how long to keep serving after SIGTERM while `/readyz` returns 503, so that a load "
        "balancer can notice",
        ge=0,
    )


@_section
class StoreSettings:
    """Where and for how long the service stores data."""

    url: str = _setting(
        "ebrank-store", "where the store is: a folder, `memory:`, or `module:Class:argument`"
    )
    durability: Literal["process", "disk"] = _setting(
        "process",
        "what a ranking survives once the response is sent: a crash of the `process`, or of "
        "the machine (`disk`, which waits for a flush); acknowledged feedback is always on "
        "disk",
    )
    retention_seconds: float = _setting(
        30 * 86400.0,
        "age at which events about a list are refused; soon after, both are rolled up",
        gt=0,
    )
    roll_up_seconds: float = _setting(600.0, "time between two roll-ups", gt=0)
    expire_idle_days: float | None = _setting(
        None,
        "days without a list or an event after which a query is deleted with its items "
        "and their evidence",
        gt=0,
    )
    normalize_queries: bool = _setting(
        True,
        "whether `Tea` and `tea ` are the same query: Unicode NFKC, case-insensitive, single "
        "spaces",
    )
    max_idle_seconds: float = _setting(
        180 * 86400.0,
        "if the clock is further ahead of the log and the store's files, the server assumes "
        "it is wrong and does not start; 0 is off",
        ge=0,
    )


@_section
class RankingSettings:
    """How lists are made."""

    mode: Literal["live", "shadow"] = _setting(
        "live", "`shadow` serves the caller's order and reports what EBRank would have served"
    )
    k: int = _setting(10, "length of a list, if the request does not say", ge=1, le=MOST_RANKS)
    degraded: bool = _setting(
        True,
        "whether to serve lists from memory while the store is failing; they are marked and "
        "do not count",
    )
    policy: str = _setting(
        "auto", "how to score items: `auto`, `ebrank:epsilon=20,estimator=exposure`, ..."
    )
    unknown: Literal["reject", "prior"] = _setting(
        "reject",
        "what to do with an id in a request that is neither a candidate nor in the catalog; "
        "`prior` adds it to the query without features, and needs `features.missing` other than "
        "`reject`",
    )
    plan_seconds: float = _setting(
        30 * 86400.0,
        "how much of a query's past counts when exploration plans ahead, for policies with a "
        "horizon such as `auto`",
        gt=0,
    )
    seed: int = _setting(0, "seed for breaking ties", ge=0, le=2**63 - 1)
    window: float = _setting(
        60.0, "how many seconds a user sees the same order for a query; 0 is off", ge=0
    )
    max_explored: int | None = _setting(
        None, "maximum number of slots in a list that exploration may fill", ge=0
    )
    random_slice: float = _setting(
        0.0,
        "share of lists in which a random pair of neighbors may change places; all lists then log "
        "how likely each item was at its rank",
        ge=0,
        le=1,
    )
    max_cost: float | None = _setting(
        None,
        "share of a day's clicks that exploration may cost at most, such as `0.005`; it stops by "
        "itself if clicks say that it costs more",
        gt=0,
        lt=1,
    )


@_section
class ExaminationSettings:
    """Which ranks users look at."""

    severity: float = _setting(1.0, "exponent of 1/log2(rank + 1)", ge=0)
    cutoff: int | None = _setting(None, "last rank users examine", ge=1)
    curve: tuple[float, ...] | None = _setting(None, "measured probabilities of ranks 1, 2, ...")

    def examination(self) -> Examination:
        """Return the library's curve; raises `ParameterError` if it is invalid."""
        return Examination(self.severity, self.cutoff, self.curve)


@_section
class FeaturesSettings:
    """What features are."""

    names: tuple[str, ...] | None = _setting(
        None,
        "names of the features of query and item; default: those of the first items",
        min_length=1,
    )
    shared: tuple[str, ...] | None = _setting(
        None,
        "names of the features that queries share; default: those of the catalog's first item",
        min_length=1,
    )
    missing: Literal["reject", "zero", "mean"] = _setting(
        "reject",
        "what to do with a missing value; `mean` uses the mean of the query's candidates, and "
        "so does `reject` for optional features and for items stored before a feature was added",
    )
    scaling: Literal["query", "global", "none"] = _setting(
        "query", "min-max over the query's candidates, over the training rows, or no scaling"
    )

    @property
    def fills_by_mean(self) -> bool:
        """Whether a missing value becomes the mean rather than 0."""
        return self.missing != "zero"


@_section
class EventsSettings:
    """Which events count, and as what."""

    impressions: Literal["served", "confirmed"] = _setting(
        "served", "an item counts as shown when served, or when an `impression` event confirms it"
    )
    behaviors: tuple[str, ...] = _setting(
        ("click",),
        "event types that count, each with its worth up to 1, as in `click=0.3`, or with a "
        "threshold, as in `dwell>=30=0.6`",
    )
    negative: tuple[str, ...] = _setting(
        (), "event types that make an impression worth nothing, such as `hide`"
    )
    other: tuple[str, ...] = _setting((), "event types that are logged but do not count")
    half_life_days: float | None = _setting(None, "days until an impression counts half", gt=0)
    future_seconds: float = _setting(
        300.0, "how far an event's time may be ahead of the server's clock", ge=0
    )

    def declared(self) -> Behaviors:
        """Return the library's behaviors; raises `ParameterError` if they are invalid.

        >>> EventsSettings(behaviors=("click=0.3", "purchase")).declared().weights
        (0.3, 1.0)
        """
        return Behaviors.parse(self.behaviors, self.negative)


@_section
class BotsSettings:
    """Who sends too many requests to be a person."""

    lists_per_minute: int = _setting(
        0, "a visitor who requests more lists per minute is a bot; 0 is off", ge=0
    )
    events_per_minute: int = _setting(
        0, "a visitor with more events per minute is a bot; 0 is off", ge=0
    )
    visitor: Literal["user", "session"] = _setting(
        "user", "which field of the request identifies a visitor"
    )


@_section
class ContextsSettings:
    """How the service uses the contexts of requests."""

    most: int = _setting(
        0,
        "maximum number of name-value pairs in the `context` of requests, the most frequent "
        "ones, for which to learn separate preferences; 0 is off",
        ge=0,
        le=MOST_CONTEXTS,
    )


@_section
class TrainingSettings:
    """When the prior is refitted, and on what."""

    every_seconds: float = _setting(3600.0, "time between training runs; 0 is off", ge=0)
    after_events: int = _setting(
        200, "number of new events that start a training run; 0 is off", ge=0
    )
    after_growth: float = _setting(
        0.25, "... provided they are at least this fraction of the events before the last run", ge=0
    )
    min_rows: int = _setting(20, "minimum number of shown items for training", ge=1)
    tolerance: float = _setting(
        0.0,
        "by how much the held-out loss of a new model may be higher, even if that is clear",
        ge=0,
    )
    max_seconds: float = _setting(
        1800.0, "time limit of a training run; a run that exceeds it is stopped", gt=0
    )


@_section
class ModelsSettings:
    """Which versions of the prior are kept."""

    keep: int = _setting(
        50,
        "number of newest versions to keep, besides the active one and the one that was live "
        "before it",
        ge=1,
        le=1000,
    )


@_section
class InsightsSettings:
    """What the dashboard shows."""

    new_seconds: float = _setting(86400.0, "age up to which an item counts as new", gt=0)
    refresh_seconds: float = _setting(5.0, "how long to cache expensive figures", ge=0)
    bucket_seconds: float = _setting(60.0, "time span over which figures are summed", ge=1, le=3600)
    demo: bool = _setting(False, "whether the dashboard says that its users are simulated")


@_section
class LimitsSettings:
    """How much callers may use."""

    body_bytes: int = _setting(8 * 2**20, "maximum size of a request body", ge=1024)
    bodies_bytes: int = _setting(
        64 * 2**20, "maximum size of all request bodies in memory together", ge=1024
    )
    connections: int = _setting(
        4096,
        "maximum number of open connections; beyond it, the one that waited longest is closed",
        ge=1,
    )
    head_seconds: float = _setting(
        10.0, "time limit for sending the URL and headers of a request", gt=0
    )
    body_seconds: float = _setting(30.0, "time limit for sending a request body", gt=0)
    answer_seconds: float = _setting(30.0, "time limit for receiving a response", gt=0)
    idle_seconds: float = _setting(75.0, "how long a connection stays open without a request", gt=0)
    requests_per_second: float = _setting(
        0.0, "sustained rate per token or address; 0 means no limit", ge=0
    )
    burst: int = _setting(100, "number of requests a token or address may send at once", ge=1)
    new_queries_per_hour: int = _setting(
        0,
        "number of queries that rank requests of a token or address may create per hour on "
        "each server; 0 means no limit",
        ge=0,
    )
    memory: int | str = _setting(
        "1 GB",
        "memory limit of the process, in bytes or as in `512 MB`; the least recently used "
        "data is dropped",
    )

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

    def check_unknown(self) -> None:
        """Raise `ParameterError` if unknown items were to enter although they lack features."""
        if self.ranking.unknown == "prior" and self.features.missing == "reject":
            raise ParameterError(
                '"prior" adds items without features, which features.missing rejects. Set that to '
                '"mean" or "zero"'
            )
