"""What operators see: the access log, and pages that browsers may trust."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest

from ebrank.service import logs
from tests.in_process import Local, in_process

ITEMS = {"items": [{"id": name, "features": [place, 1.0]} for place, name in enumerate("abcde")]}


@pytest.fixture
def local() -> Iterator[Local]:
    with in_process() as opened:
        yield opened


def test_the_access_log_names_nothing_private() -> None:
    stream = io.StringIO()
    with logs.written("text", stream, requests=True), in_process() as local:
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
