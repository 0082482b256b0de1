"""Prometheus metrics and the access log.

Counting with `prometheus_client` takes 4 µs per request, by hand it took 1 µs: under 1 % of a list.

The access log has one line of JSON per request: enough to find problems, without secrets. It holds
the route rather than the URL, so that no name of a query, an item or a user gets into the log; no
header, no body, no token.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, get_args

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from ebrank.service import api
from ebrank.service.core.fleet import JOBS
from ebrank.service.logs import about, access

if TYPE_CHECKING:
    from ebrank.service.engine import Engine

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
Value: TypeAlias = float | tuple[str, Mapping[str, float]] | None
"""A number, None if it is unknown; or a label, and a number for each of its values."""
_METHODS = {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"}


class Metrics(Collector):
    """Counts requests and their outcomes, and writes the access log (`ebrank.service.logs`).

    Attributes:
        in_flight: requests being served.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.in_flight = 0
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a series beside each series, which no dashboard asks for
        self._registry = own = CollectorRegistry()
        count = partial(Counter, registry=own)
        timed = partial(Histogram, registry=own, buckets=SECONDS)
        self._requests = count(
            "ebrank_http_requests_total", "Requests handled.", ("method", "route", "status")
        )
        self._seconds = timed(
            "ebrank_http_request_seconds", "Time from request to response.", ("route",)
        )
        self._rankings = count("ebrank_rankings_total", "Lists served.")
        self._uncounted = count(
            "ebrank_uncounted_total",
            "Lists that requests did not want counted, or made while the store was failing.",
        )
        self._slots = count("ebrank_slots_total", "Items in lists served.")
        self._events = count("ebrank_events_total", "Events received.", ("status",))
        self._flushes = timed(
            "ebrank_flush_seconds", "Duration of a flush, which many requests may share."
        )
        own.register(self)
        ProcessCollector(registry=own)

    def collect(self) -> Iterator[Metric]:
        """Yield gauges, and counters that other parts of the service keep."""
        for name, (meaning, value) in self._current().items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            label, values = value if isinstance(value, tuple) else (None, {"": value})
            family = kind(f"ebrank_{name}", meaning, labels=(label,) if label else ())
            for labelled, number in values.items():
                if number is not None:
                    family.add_metric((labelled,) if label else (), float(number))
            yield family

    def _current(self) -> dict[str, tuple[str, Value]]:
        """Return metrics by name, each with its meaning and its value; `_total` is a counter."""
        engine, size = self._engine, self._engine.store_size
        lookups, jobs = engine.lookups, engine.fleet.jobs
        states = {state: state == engine.prior_state for state in get_args(api.PriorState)}
        return {
            "http_in_flight": ("Requests in progress.", self.in_flight),
            "store_failing": ("1 while the store is failing.", engine.failures.lasting),
            "flush_waiting": ("Requests waiting for a flush.", engine.flusher.waiting),
            "model_version": ("Version of the prior in use.", engine.version),
            "servers": ("Servers that share the store.", engine.fleet.size),
            "announcement_seconds": (
                "Time the store took to record the server's announcement.",
                engine.fleet.store_seconds,
            ),
            "clock_lag_seconds": (
                "How far the clock is behind the log; the log's time then stands still.",
                engine.clock_lag,
            ),
            "roll_up_lag_seconds": (
                "Time since the last roll-up of the log, by this server or another one.",
                engine.roll_up_lag,
            ),
            "lookups_total": (
                "Queries found in memory or in the store.",
                ("found", {"memory": lookups.memory, "store": lookups.store}),
            ),
            "stale_total": (
                "Writes to queries that another server had changed in the meantime.",
                lookups.stale,
            ),
            "exploration_stopped": (
                "1 after exploration has stopped by itself, because it cost too much.",
                engine.stages.budget.stopped,
            ),
            "exploration_refused_total": (
                "Lists without exploration to stay within `ranking.exploration_budget`.",
                engine.stages.budget.refused,
            ),
            "prior_state": ("1 for the state that the prior is in.", ("state", states)),
            "elected": (
                "1 if this server does a task for all.",
                ("task", {job: job in jobs for job in JOBS}),
            ),
            "training_ended_timestamp_seconds": (
                "When the server's last training run that succeeded, or failed, ended.",
                ("outcome", engine.trainings),
            ),
            "store_bytes": ("Disk space that the store takes.", size and size.used),
            "store_free_bytes": ("Free space on the disk of the store.", size and size.free),
            "log_entries": ("Lists and events in the log, roughly.", size and size.entries),
        }

    def text(self) -> bytes:
        """Return the page that Prometheus reads."""
        took = self._engine.flusher.took
        while took:
            self._flushes.observe(took.popleft())
        return generate_latest(self._registry)

    def answered(self, method: str, route: str, status: int, seconds: float, caller: str) -> None:
        """Count one request, and log it."""
        # A label for each made-up method would be endless.
        counted = method if method in _METHODS else "other"
        self._requests.labels(counted, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        self._engine.answered(route, status)
        if access.isEnabledFor(logging.INFO):
            fields = {"method": counted, "route": route, "status": status}
            took = round(seconds * 1e3, 3)
            access.info("", extra=about("request", **fields, ms=took, caller=caller))

    def served(self, answer: object) -> None:
        """Count the content of a response."""
        if isinstance(answer, api.RankResponse | api.RerankResponse):
            if not answer.counted:
                self._uncounted.inc()
                return
            self._rankings.inc()
            listed = answer.items if isinstance(answer, api.RankResponse) else answer.results
            self._slots.inc(len(listed))
        elif isinstance(answer, api.FeedbackResponse):
            for status in ("accepted", "duplicate", "rejected"):
                self._events.labels(status).inc(getattr(answer, status))
