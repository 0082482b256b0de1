"""What is counted and logged of every request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ebrank.service import api
from ebrank.service.logs import Access, AccessLog
from ebrank.service.metrics import Counter, Gauge, Histogram, Metric, process_metrics

if TYPE_CHECKING:
    from ebrank.service.engine import Engine


class Traffic:
    """Counts requests and what came of them, and writes the access log."""

    def __init__(self, log: AccessLog | None, engine: Engine) -> None:
        self._log = log
        self.in_flight = 0
        self._requests = Counter(
            "ebrank_http_requests_total", "Requests answered.", "method", "route", "status"
        )
        self._seconds = Histogram(
            "ebrank_http_request_seconds", "Time from arrival to answer.", "route"
        )
        self._rankings = Counter("ebrank_rankings_total", "Lists served.")
        self._slots = Counter("ebrank_slots_total", "Items in lists served.")
        self._events = Counter("ebrank_events_total", "Events received.", "status")
        self._shadow = Counter(
            "ebrank_shadow_different_total", "Lists EBRank would have ordered otherwise."
        )
        self.metrics: list[Metric] = [
            self._requests,
            self._seconds,
            Gauge("ebrank_http_in_flight", "Requests being served.", lambda: self.in_flight),
            self._rankings,
            self._slots,
            self._events,
            self._shadow,
            *_engine_metrics(engine),
            *process_metrics(),
        ]

    def answered(self, method: str, route: str, status: int, seconds: float, caller: str) -> None:
        """Count one request, and log it."""
        # A label for each word that somebody makes up would be endless.
        known = method if method in _METHODS else "other"
        self._requests.add(1, known, route, str(status))
        self._seconds.observe(seconds, route)
        if self._log is not None:
            self._log.write(Access(time.time(), known, route, status, seconds, caller))

    def served(self, answer: object) -> None:
        """Count what an answer says."""
        if isinstance(answer, api.RankResponse):
            self._rankings.add()
            self._slots.add(len(answer.items))
            if isinstance(answer.would_rank, list):
                served = [item.id for item in answer.items]
                self._shadow.add(served != answer.would_rank[: len(served)])
        elif isinstance(answer, api.FeedbackResponse):
            for status in ("accepted", "duplicate", "rejected"):
                self._events.add(getattr(answer, status), status)


def _engine_metrics(engine: Engine) -> list[Metric]:
    """Return what is known of the engine without asking the store."""
    flushes = Histogram("ebrank_flush_seconds", "Time of a flush, which many may share.")
    engine.committer.on_flush = flushes.observe
    return [
        flushes,
        Gauge("ebrank_flush_waiting", "Who waits for a flush.", lambda: engine.committer.waiting),
        Gauge("ebrank_model_version", "Version of the prior in use.", lambda: engine.version),
        Gauge(
            "ebrank_clock_lag_seconds",
            "How far the clock is behind the log, whose times then stand still.",
            lambda: engine.clock_lag,
        ),
    ]


_METHODS = {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"}
