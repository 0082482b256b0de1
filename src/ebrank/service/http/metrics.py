"""What is counted and logged about every request, for Prometheus and the access log.

Counting with `prometheus_client` takes 4 µs per request, by hand it took 1 µs: under 1 % of a list.

The access log has one line of JSON per request: enough to find problems, without secrets. It holds
the route rather than the URL, so that no name of a query, an item or a user gets into the log; no
header, no body, no token.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TextIO

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
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector

from ebrank.service import api, logs
from ebrank.service.core.fleet import JOBS

if TYPE_CHECKING:
    from ebrank.service.core.engine import Engine

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
        self._requests = Counter(
            "ebrank_http_requests_total",
            "Requests handled.",
            ("method", "route", "status"),
            registry=own,
        )
        self._seconds = Histogram(
            "ebrank_http_request_seconds",
            "Time from request to response.",
            ("route",),
            buckets=SECONDS,
            registry=own,
        )
        self._rankings = Counter("ebrank_rankings_total", "Lists served.", registry=own)
        self._degraded = Counter(
            "ebrank_degraded_total",
            "Lists served from memory while the store was failing; they do not count.",
            registry=own,
        )
        self._slots = Counter("ebrank_slots_total", "Items in lists served.", registry=own)
        self._events = Counter("ebrank_events_total", "Events received.", ("status",), registry=own)
        self._shadow = Counter(
            "ebrank_shadow_different_total",
            "Lists that EBRank would have ordered differently.",
            registry=own,
        )
        self._closed = Counter(
            "ebrank_connections_closed_total",
            "Connections closed because the caller was too slow, or to make room.",
            ("reason",),
            registry=own,
        )
        flushes = Histogram(
            "ebrank_flush_seconds",
            "Duration of a flush, which many requests may share.",
            buckets=SECONDS,
            registry=own,
        )
        engine.flusher.on_flush = flushes.observe
        bots = Counter(
            "ebrank_bots_total",
            "Lists and events of bots, which do not count.",
            ("kind",),
            registry=own,
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
        ):
            Gauge(f"ebrank_{name}", meaning, registry=own).set_function(value)
        own.register(QueriesFound(engine))
        elected = Gauge(
            "ebrank_elected", "1 if this server does a task for all.", ("task",), registry=own
        )
        for job in JOBS:
            elected.labels(job).set_function(partial(_does, engine, job))
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
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        self._on_answer(route, status)
        if self._log is not None:
            self._log.write(Access(time.time(), known, route, status, seconds, caller))

    def served(self, answer: object) -> None:
        """Count the content of a response."""
        if isinstance(answer, api.RankResponse) and answer.degraded:
            self._degraded.inc()
        elif isinstance(answer, api.RankResponse):
            self._rankings.inc()
            self._slots.inc(len(answer.items))
            if isinstance(answer.would_rank, list):
                served = [item.id for item in answer.items]
                self._shadow.inc(served != answer.would_rank[: len(served)])
        elif isinstance(answer, api.FeedbackResponse):
            for status in ("accepted", "duplicate", "rejected"):
                self._events.labels(status).inc(getattr(answer, status))


def _does(engine: Engine, job: str) -> float:
    return float(job in engine.fleet.jobs)


class QueriesFound(Collector):
    """Where the engine found queries, which it counts itself."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """Yield the counters as they are now."""
        counts = self._engine.lookups
        found = CounterMetricFamily(
            "ebrank_lookups_total", "Queries found in memory or in the store.", labels=("found",)
        )
        found.add_metric(("memory",), counts.memory)
        found.add_metric(("store",), counts.store)
        yield found
        yield CounterMetricFamily(
            "ebrank_stale_total",
            "Writes to queries that another server had changed in the meantime.",
            value=counts.stale,
        )


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
