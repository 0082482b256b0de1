"""Metrics: the names that dashboards and alerts are built on, in a page that Prometheus reads."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.in_process import in_process


def test_every_metric_keeps_its_name_and_type() -> None:
    with in_process() as local:
        local.request("GET", "/healthz")
        page = local.request("GET", "/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=")
    families = {one.name: one.type for one in text_string_to_metric_families(page.text)}
    assert {name: kind for name, kind in families.items() if name.startswith("ebrank_")} == {
        "ebrank_http_requests": "counter",
        "ebrank_http_request_seconds": "histogram",
        "ebrank_rankings": "counter",
        "ebrank_degraded": "counter",
        "ebrank_slots": "counter",
        "ebrank_events": "counter",
        "ebrank_shadow_different": "counter",
        "ebrank_bots": "counter",
        "ebrank_flush_seconds": "histogram",
        "ebrank_connections_closed": "counter",
        "ebrank_http_in_flight": "gauge",
        "ebrank_connections": "gauge",
        "ebrank_store_failing": "gauge",
        "ebrank_flush_waiting": "gauge",
        "ebrank_model_version": "gauge",
        "ebrank_clock_lag_seconds": "gauge",
        "ebrank_servers": "gauge",
        "ebrank_announcement_seconds": "gauge",
        "ebrank_elected": "gauge",
        "ebrank_lookups": "counter",
        "ebrank_stale": "counter",
    }
    assert {"process_resident_memory_bytes", "process_cpu_seconds"} <= families.keys()


def test_two_servers_of_a_process_count_apart() -> None:
    """A test suite, or an embedding program, may make several: nothing is registered globally."""
    with in_process() as one, in_process() as other:
        one.request("GET", "/healthz")
        line = 'ebrank_http_requests_total{method="GET",route="/healthz",status="200"} 1.0'
        assert line in one.request("GET", "/metrics").text
        assert line not in other.request("GET", "/metrics").text
