"""Spans of requests, writes, flushes and training, in an exporter that keeps them in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ebrank.cli import root
from ebrank.service.ops.tracing import WRITES, Spans
from ebrank.service.store.memory import MemoryStore
from tests.in_process import Local, in_process

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ITEMS = {"items": [{"id": name, "features": [1.0]} for name in "abc"]}


@contextmanager
def traced() -> Iterator[tuple[Local, InMemorySpanExporter, Spans]]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = Spans(provider)
    with in_process(store=spans.store(MemoryStore()), traced=spans.request) as local:
        yield local, exporter, spans
    spans.close()


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def test_a_click_is_a_trace_down_to_the_flush() -> None:
    with traced() as (local, exporter, _):
        local.json("PUT", "/v1/queries/private-name/items", ITEMS)
        served = local.json("POST", "/v1/rank", {"query": "private-name", "user": "private-user"})
        exporter.clear()
        event = {"event_id": "private-id", "ranking_id": served["ranking_id"]}
        body = {"events": [{**event, "item": "a", "type": "click"}]}
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
        assert local.request("POST", "/v1/feedback", json=body, headers=headers).is_success
        spans = by_name(exporter)
    assert set(spans) == {"POST /v1/feedback", "store.log.write", "store.flush"}
    request = spans["POST /v1/feedback"]
    assert request.parent is not None
    assert f"{request.context.trace_id:032x}" == TRACE
    assert f"{request.parent.span_id:016x}" == PARENT
    assert dict(request.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/v1/feedback",
        "http.response.status_code": 200,
    }
    for name in ("store.log.write", "store.flush"):
        parent = spans[name].parent
        assert parent is not None
        assert parent.span_id == request.context.span_id
    assert "private" not in "".join(span.to_json() for span in spans.values())


def test_failures_are_marked_and_strange_parents_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ebrank.service.engine.Engine.models", broken)
    with traced() as (local, exporter, _):
        headers = {"traceparent": "not one"}
        assert local.request("GET", "/v1/models", headers=headers).status_code == 500
        assert local.request("GET", "/nothing").status_code == 404
        spans = by_name(exporter)
    assert not spans["GET /v1/models"].status.is_ok
    assert spans["GET /v1/models"].parent is None
    assert spans["GET"].status.is_unset


def test_training_has_a_span() -> None:
    with traced() as (local, exporter, spans):
        engine = local.app._engine
        engine.watch_training(spans.training)
        local.json("PUT", "/v1/queries/tea/items", ITEMS)
        local.json("POST", "/v1/train")
        local.run(engine._training.finished())
        [span] = [span for span in exporter.get_finished_spans() if span.name == "training"]
    assert span.start_time is not None
    assert span.end_time is not None
    assert 0 < span.end_time - span.start_time < 60e9
    assert (span.attributes or {})["ebrank.outcome"]


def test_every_method_that_is_traced_is_one_of_a_store() -> None:
    store = MemoryStore()
    for group, methods in WRITES.items():
        assert all(callable(getattr(getattr(store, group), method)) for method in methods)


def test_without_the_extra_the_command_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text("[server]\ntraces = true\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    done = CliRunner().invoke(root, ["serve", "--store", "memory:", "--config", str(file)])
    assert done.exit_code == 2
    assert "opentelemetry is needed to trace" in done.stderr
    assert "pip install 'ebrank[otel]'" in done.stderr
