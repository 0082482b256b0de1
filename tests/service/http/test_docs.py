"""The documentation page, as a reader meets it."""

from __future__ import annotations

from tests.in_process import in_process


def test_examples_name_the_server_as_its_caller_does() -> None:
    with in_process() as local:
        page = local.request("GET", "/docs", headers={"host": "shop.example:9000"}).text
        assert "curl -X GET http://shop.example:9000/v1/models" in page
        assert "127.0.0.1:8000" not in page
        hostile = local.request("GET", "/docs", headers={"host": "<script>"}).text
        assert "<script>" not in hostile
        assert "http://&lt;script&gt;/v1/models" in hostile


def test_what_stands_in_backticks_is_code() -> None:
    with in_process() as local:
        page = local.request("GET", "/docs").text
    assert "<code>would_rank</code>" in page
    assert "`" not in page
