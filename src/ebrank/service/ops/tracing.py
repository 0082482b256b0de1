"""OpenTelemetry spans: one for each request, store write, flush and training run.

A request with a W3C `traceparent` continues that trace. Writes are children of the request that
made them; a flush, which many requests share, is a child of the one that asked first. No span
contains names of queries, items or users.

OpenTelemetry's own variables, such as OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_TRACES_SAMPLER, say
where spans go and how many are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from ebrank.environment.extras import import_extra
from ebrank.service.http import Scope
from ebrank.service.http.app import Seen
from ebrank.service.store.base import Store

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

WRITES = {
    "items": {"put", "withdraw"},
    "catalog": {"put"},
    "log": {"write", "roll_up"},
    "models": {"add", "activate"},
    "meta": {"set"},
}
"""Methods of a store that get a span, by group."""
FLUSH_MILLISECONDS = 2000


def exporting() -> Spans:
    """Return spans exported as OpenTelemetry's environment variables say."""
    sdk = import_extra("opentelemetry.sdk.trace", extra="otel", purpose="to trace")
    export = import_extra("opentelemetry.sdk.trace.export", extra="otel", purpose="to trace")
    resources = import_extra("opentelemetry.sdk.resources", extra="otel", purpose="to trace")
    otlp = import_extra(
        "opentelemetry.exporter.otlp.proto.http.trace_exporter", extra="otel", purpose="to trace"
    )
    named = resources.Resource({"service.name": "ebrank"})
    detected = resources.OTELResourceDetector().detect()  # OTEL_SERVICE_NAME and others
    provider = sdk.TracerProvider(resource=named.merge(detected))
    provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter()))
    return Spans(provider)


class Spans:
    """Makes the spans of a server."""

    def __init__(self, provider: TracerProvider) -> None:
        api = import_extra("opentelemetry.trace", extra="otel", purpose="to trace")
        context = import_extra(
            "opentelemetry.trace.propagation.tracecontext", extra="otel", purpose="to trace"
        )
        self._provider = provider
        self._tracer = provider.get_tracer("ebrank")
        self._server = api.SpanKind.SERVER
        self._failed = api.Status(api.StatusCode.ERROR)
        self._extract: Callable[..., Any] = context.TraceContextTextMapPropagator().extract

    @contextmanager
    def request(self, scope: Scope, seen: Seen) -> Iterator[None]:
        """Make the span of a request, which is named after its route."""
        carrier = {
            key.decode("latin-1"): value.decode("latin-1")
            for key, value in scope["headers"]
            if key in (b"traceparent", b"tracestate")
        }
        with self._tracer.start_as_current_span(
            scope["method"], self._extract(carrier), self._server
        ) as span:
            yield
            span.update_name(f"{scope['method']} {seen.route}".rstrip())
            span.set_attribute("http.request.method", scope["method"])
            span.set_attribute("http.route", seen.route)
            span.set_attribute("http.response.status_code", seen.status)
            if seen.status >= 500:
                span.set_status(self._failed)

    def training(self, seconds: float, outcome: str) -> None:
        """Make the span of a training run that has just ended."""
        end = time.time_ns()
        span = self._tracer.start_span("training", start_time=end - int(seconds * 1e9))
        span.set_attribute("ebrank.outcome", outcome)
        span.end(end)

    def store(self, store: Store) -> Store:
        """Return a store whose writes and flushes make spans."""
        return cast(Store, _TracedStore(store, self._tracer))

    def close(self) -> None:
        """Send the remaining spans, if that is quick."""
        self._provider.force_flush(FLUSH_MILLISECONDS)
        self._provider.shutdown()


class _Traced:
    """Passes everything on to an object; some of its methods make a span."""

    def __init__(self, inner: object, tracer: Any, spans: dict[str, str]) -> None:  # noqa: ANN401
        self._inner = inner
        self._tracer = tracer
        self._spans = spans

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (as the object's)
        value = getattr(self._inner, name)
        if name not in self._spans:
            return value

        async def traced(*given: Any, **named: Any) -> Any:  # noqa: ANN401
            with self._tracer.start_as_current_span(self._spans[name]):
                return await value(*given, **named)

        setattr(self, name, traced)  # found at once the next time
        return traced


class _TracedStore(_Traced):
    def __init__(self, store: Store, tracer: Any) -> None:  # noqa: ANN401 (of an extra)
        super().__init__(store, tracer, {"flush": "store.flush"})
        for group, methods in WRITES.items():
            spans = {method: f"store.{group}.{method}" for method in methods}
            setattr(self, group, _Traced(getattr(store, group), tracer, spans))
