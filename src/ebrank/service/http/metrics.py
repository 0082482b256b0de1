"""What is counted and logged about every request, for Prometheus and the access log.

Counting with `prometheus_client` takes 4 µs per request, by hand it took 1 µs: under 1 % of a list.

The access log has one line of JSON per request: enough to find problems, without secrets. It holds
the route rather than the URL, so that no name of a query, an item or a user gets into the log; no
header, no body, no token.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TextIO, get_args

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from ebrank.service import api, logs
from ebrank.service.core.fleet import JOBS

if TYPE_CHECKING:
    from ebrank.service.engine import Engine

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_METHODS = {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"}


class Metrics:
    """Counts requests and their outcomes, and writes the access log.

    Attributes:
        in_flight: requests being served.
        connections: those that are open.
        store_failing: says whether the store fails.
    """

    def __init__(self, log: AccessLog | None, engine: Engine) -> None:
        self._log = log
        self._on_answer = engine.answered
        self.in_flight = 0
        self.connections: Sized = ()
        self.store_failing: Callable[[], bool] = lambda: False
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a series beside each series, which no dashboard asks for
        self._registry = own = CollectorRegistry()
        count, timed = partial(Counter, registry=own), partial(Histogram, registry=own)
        self._requests = count(
            "ebrank_http_requests_total", "Requests handled.", ("method", "route", "status")
        )
        self._seconds = timed(
            "ebrank_http_request_seconds",
            "Time from request to response.",
            ("route",),
            buckets=SECONDS,
        )
        self._rankings = count("ebrank_rankings_total", "Lists served.")
        self._degraded = count(
            "ebrank_degraded_total",
            "Lists served from memory while the store was failing; they do not count.",
        )
        self._slots = count("ebrank_slots_total", "Items in lists served.")
        self._events = count("ebrank_events_total", "Events received.", ("status",))
        self._closed = count(
            "ebrank_connections_closed_total",
            "Connections closed because the caller was too slow, or to make room.",
            ("reason",),
        )
        engine.flusher.on_flush = timed(
            "ebrank_flush_seconds",
            "Duration of a flush, which many requests may share.",
            buckets=SECONDS,
        ).observe
        bots = count(
            "ebrank_bots_total", "Lists and events of bots, which do not count.", ("kind",)
        )
        for kind in ("list", "event"):
            bots.labels(kind)  # shown as 0 before there is one
        engine.bots.on_bot = lambda kind: bots.labels(kind).inc()
        for name, meaning, value in (
            ("http_in_flight", "Requests in progress.", lambda: self.in_flight),
            ("connections", "Open connections.", lambda: len(self.connections)),
            ("store_failing", "1 while the store is failing.", lambda: float(self.store_failing())),
            ("flush_waiting", "Requests waiting for a flush.", lambda: engine.flusher.waiting),
            ("model_version", "Version of the prior in use.", lambda: engine.version),
            ("servers", "Servers that share the store.", lambda: engine.fleet.size),
            (
                "announcement_seconds",
                "Time the store took to record the server's announcement.",
                lambda: engine.fleet.store_seconds,
            ),
            (
                "clock_lag_seconds",
                "How far the clock is behind the log; the log's time then stands still.",
                lambda: engine.clock_lag,
            ),
            (
                "roll_up_lag_seconds",
                "Time since the last roll-up of the log, by this server or another one.",
                lambda: engine.roll_up_lag,
            ),
        ):
            Gauge(f"ebrank_{name}", meaning, registry=own).set_function(value)
        own.register(FromEngine(engine))
        ProcessCollector(registry=own)

    def closed(self, reason: str) -> None:
        """Count a connection that was closed."""
        self._closed.labels(reason).inc()

    def text(self) -> bytes:
        """Return the page that Prometheus reads."""
        return generate_latest(self._registry)

    def answered(self, method: str, route: str, status: int, seconds: float, caller: str) -> None:
        """Count one request, and log it."""
        # A label for each made-up method would be endless.
        counted = method if method in _METHODS else "other"
        self._requests.labels(counted, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        self._on_answer(route, status)
        if self._log is not None:
            self._log.write(Access(time.time(), counted, route, status, seconds, caller))

    def served(self, answer: object) -> None:
        """Count the content of a response."""
        if isinstance(answer, api.RankResponse) and answer.degraded:
            self._degraded.inc()
        elif isinstance(answer, api.RankResponse):
            self._rankings.inc()
            self._slots.inc(len(answer.items))
        elif isinstance(answer, api.FeedbackResponse):
            for status in ("accepted", "duplicate", "rejected"):
                self._events.labels(status).inc(getattr(answer, status))


class FromEngine(Collector):
    """What the engine counts itself, and what it has read from the store; some may be unknown."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """Yield the counters as they are now."""
        engine, size = self._engine, self._engine.store_size
        lookups, jobs = engine.lookups, engine.fleet.jobs
        yield _labelled(
            CounterMetricFamily,
            ("ebrank_lookups_total", "Queries found in memory or in the store.", "found"),
            {"memory": lookups.memory, "store": lookups.store},
        )
        yield CounterMetricFamily(
            "ebrank_stale_total",
            "Writes to queries that another server had changed in the meantime.",
            value=lookups.stale,
        )
        yield CounterMetricFamily(
            "ebrank_shadow_different_total",
            "Lists that EBRank would have ordered differently, without bots and refreshes.",
            value=engine.shadow_different,
        )
        yield _labelled(
            GaugeMetricFamily,
            ("ebrank_prior_state", "1 for the state that the prior is in.", "state"),
            {state: state == engine.prior_state for state in get_args(api.PriorState)},
        )
        yield _labelled(
            GaugeMetricFamily,
            ("ebrank_elected", "1 if this server does a task for all.", "task"),
            {job: job in jobs for job in JOBS},
        )
        yield _labelled(
            GaugeMetricFamily,
            (
                "ebrank_training_ended_timestamp_seconds",
                "When the server's last training run that succeeded, or failed, ended.",
                "outcome",
            ),
            engine.trainings,
        )
        for name, meaning, value in (
            ("store_bytes", "Disk space that the store takes.", size and size.used),
            ("store_free_bytes", "Free space on the disk of the store.", size and size.free),
            ("log_entries", "Lists and events in the log, roughly.", size and size.entries),
        ):
            gauge = GaugeMetricFamily(f"ebrank_{name}", meaning)
            if value is not None:
                gauge.add_metric((), value)
            yield gauge


def _labelled(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    described: tuple[str, str, str],
    values: Mapping[str, float],
) -> Metric:
    """Return a metric, given its name, meaning and label, with a value for each label's value."""
    name, meaning, label = described
    family = kind(name, meaning, labels=(label,))
    for labelled, value in values.items():
        family.add_metric((labelled,), float(value))
    return family


@dataclass(frozen=True, slots=True)
class Access:
    """One request and its response.

    Attributes:
        time: of the response, in seconds since 1970.
        method: such as GET.
        route: the pattern that its URL matched; empty if none did.
        status: of the response.
        seconds: from its arrival to the response.
        caller: the name of its token, or its address.
    """

    time: float
    method: str
    route: str
    status: int
    seconds: float
    caller: str


class AccessLog:
    """Writes requests to a stream: a terminal or a log collector."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream

    def write(self, access: Access) -> None:
        """Write one line; a log that cannot be written must not stop the service."""
        text = logs.line(
            access.time,
            "info",
            "request",
            "",
            method=access.method,
            route=access.route,
            status=access.status,
            ms=round(access.seconds * 1e3, 3),
            caller=access.caller,
        )
        try:
            self._stream.write(text + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return
