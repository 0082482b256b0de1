"""What operators see: metrics, the access log, and pages that browsers may trust."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator

import pytest

from ebrank.service.http.metrics import AccessLog
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem
from tests.in_process import Local, in_process
from tests.service.store.blocking import run

ITEMS = {"items": [{"id": name, "features": [place, 1.0]} for place, name in enumerate("abcde")]}


@pytest.fixture
def local() -> Iterator[Local]:
    with in_process() as opened:
        yield opened


def test_the_access_log_names_nothing_private() -> None:
    stream = io.StringIO()
    with in_process(log=AccessLog(stream)) as local:
        local.json("PUT", "/v1/queries/private-name/items", ITEMS)
        headers = {"authorization": "Bearer private-token"}
        body = {"query": "private-name", "user": "private-user"}
        local.request("POST", "/v1/rank?private=1", json=body, headers=headers)
        local.request("GET", "/private")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert "private" not in stream.getvalue()
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("PUT", "/v1/queries/{query}/items", 200),
        ("POST", "/v1/rank", 200),
        ("GET", "", 404),
    ]
    assert all(line["ms"] > 0 and line["caller"] for line in lines[:2])


def test_metrics_count_what_happened(local: Local) -> None:
    local.json("PUT", "/v1/queries/tea/items", ITEMS)
    served = local.json("POST", "/v1/rank", {"query": "tea", "k": 4})
    named = {"ranking_id": served["ranking_id"], "item": served["items"][0]["id"]}
    local.json("POST", "/v1/feedback", {"events": [{"event_id": "1", "type": "click", **named}]})
    page = local.request("GET", "/metrics").text
    for line in (
        "ebrank_rankings_total 1.0",
        "ebrank_slots_total 4.0",
        'ebrank_events_total{status="accepted"} 1.0',
        'ebrank_events_total{status="rejected"} 0.0',
        'ebrank_http_requests_total{method="POST",route="/v1/rank",status="200"} 1.0',
        'ebrank_http_request_seconds_count{route="/v1/feedback"} 1.0',
        "ebrank_model_version 0.0",
        "ebrank_flush_waiting 0.0",
        'ebrank_lookups_total{found="memory"} 1.0',  # by the click
        'ebrank_lookups_total{found="store"} 2.0',  # again once there is a schema
        "ebrank_stale_total 0.0",
    ):
        assert line + "\n" in page
    assert "ebrank_flush_seconds_count 2.0\n" in page  # the items, and the click


def test_metrics_tell_a_clock_that_is_behind_the_log() -> None:
    def lag(local: Local) -> float:
        page = local.request("GET", "/metrics").text
        return float(page.partition("\nebrank_clock_lag_seconds ")[2].partition("\n")[0])

    with in_process() as local:
        assert lag(local) == 0.0
    store = MemoryStore()
    run(store.items.put("q", [NewItem("a", (1.0,))], time.time() + 100.0))  # the clock was set back
    with in_process(store=store) as local:
        assert 90.0 < lag(local) <= 100.0


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_are_locked_down(local: Local, path: str) -> None:
    answer = local.request("GET", path)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in answer.text
    assert " style=" not in answer.text
    assert "https://" not in answer.text


def test_examples_name_the_server_as_its_caller_does(local: Local) -> None:
    page = local.request("GET", "/docs", headers={"host": "shop.example:9000"}).text
    assert "curl -X GET http://shop.example:9000/v1/models" in page
    assert "127.0.0.1:8000" not in page
    assert "<code>would_rank</code>" in page  # in backticks
    assert "`" not in page
    hostile = local.request("GET", "/docs", headers={"host": "<script>"}).text
    assert "<script>" not in hostile
    assert "http://&lt;script&gt;/v1/models" in hostile
