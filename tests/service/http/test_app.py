"""The endpoints, with the shapes that clients rely on, on a real engine in this process."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from ebrank.service.http import readiness
from ebrank.service.settings import LimitsSettings, RankingSettings, Settings
from tests.in_process import Local, in_process
from tests.postgres import Postgres
from tests.service.faulty import FaultyStore

ITEMS = {"items": [{"id": name, "features": [place, 1.0]} for place, name in enumerate("abcde")]}


NUMBERS = itertools.count()


@pytest.fixture(params=["memory", pytest.param("postgresql", marks=pytest.mark.slow)])
def local(request: pytest.FixtureRequest) -> Iterator[Local]:
    """The application on a store in memory, and on one that servers share."""
    store = None
    if request.param == "postgresql":
        database: Postgres = request.getfixturevalue("database")
        store = database.url(f"http{next(NUMBERS)}")
    with in_process(store=store) as opened:
        yield opened


def click(served: dict[str, Any], item: str, event_id: str = "e1") -> dict[str, Any]:
    return {
        "event_id": event_id,
        "ranking_id": served["ranking_id"],
        "item": item,
        "type": "click",
    }


def test_the_pinned_shapes(local: Local) -> None:
    put = local.json("PUT", "/v1/queries/tea/items", ITEMS)
    assert put == {"query": "tea", "added": 5, "changed": 0, "candidates": 5}
    served = local.json("POST", "/v1/rank", {"query": "tea", "k": 3})
    assert set(served) == {"ranking_id", "model", "items"}
    assert served["model"] == 0
    assert [item["rank"] for item in served["items"]] == [1, 2, 3]
    assert all(set(item) == {"id", "rank", "score"} for item in served["items"])
    clicked = served["items"][1]["id"]
    event = click(served, clicked)
    told = local.json("POST", "/v1/feedback", {"events": [event, event, {"event_id": 7}]})
    assert (told["accepted"], told["duplicate"], told["rejected"]) == (1, 1, 1)
    assert [one["index"] for one in told["results"]] == [0, 1, 2]
    assert [one["status"] for one in told["results"]] == ["accepted", "duplicate", "rejected"]
    assert "event_id" in told["results"][2]["reason"]
    state = local.json("GET", "/v1/queries/tea")
    assert state["query"] == "tea"
    by_id = {item["id"]: item for item in state["items"]}
    assert {"id", "shown", "clicks", "exposure", "relevance"} <= set(by_id["a"])
    assert by_id[clicked]["clicks"] == 1
    assert sum(item["shown"] for item in state["items"]) == 3


def test_before_any_training_all_items_promise_the_same(local: Local) -> None:
    local.json("PUT", "/v1/queries/tea/items", ITEMS)
    served = local.json("POST", "/v1/rank", {"query": "tea", "explain": True})
    assert all(item["prior"] == pytest.approx(1 / 6, rel=0.01) for item in served["items"])
    assert {"relevance", "interval", "shown", "clicks", "exposure", "bonus"} <= set(
        served["items"][0]
    )


def test_a_withdrawn_item_is_not_ranked_and_stays_in_the_books(local: Local) -> None:
    local.json("PUT", "/v1/queries/tea/items", ITEMS)
    assert local.json("DELETE", "/v1/queries/tea/items/a")["withdrawn"] is True
    served = local.json("POST", "/v1/rank", {"query": "tea"})
    assert sorted(item["id"] for item in served["items"]) == list("bcde")
    state = local.json("GET", "/v1/queries/tea")
    assert [item["id"] for item in state["withdrawn"]] == ["a"]


NAMES = ["a/b", "grün tee", "100%", "a?b#c", "茶", "..", ".", "%2f", "<img src=x>", "%2F", "a\nb"]


@pytest.mark.parametrize("name", NAMES)
def test_names_in_addresses_may_hold_anything(local: Local, name: str) -> None:
    part = quote(name, safe="").replace(".", "%2E")
    item = {"id": name, "features": [1.0]}
    local.json("PUT", f"/v1/queries/{part}/items", {"items": [item]})
    state = local.json("GET", f"/v1/queries/{part}")
    query = " ".join(name.lower().split())
    assert (state["query"], [one["id"] for one in state["items"]]) == (query, [name])
    assert local.json("DELETE", f"/v1/queries/{part}/items/{part}")["item"] == name


def test_names_have_a_longest_length(local: Local) -> None:
    local.json("PUT", f"/v1/queries/{'q' * 512}/items", {"items": []})
    assert local.error("GET", f"/v1/queries/{'q' * 513}")[0] == 422
    status, error = local.error("DELETE", f"/v1/queries/tea/items/{'i' * 257}")
    assert (status, error["field"]) == (422, "item")
    status, error = local.error("GET", "/v1/queries/%ff")
    assert (status, error["code"]) == (400, "bad_request")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"", 400, None),
        (b"{", 400, None),
        (b"\xff", 400, None),
        (b'{"query": "\\ud800"}', 400, None),
        (b"[]", 422, None),
        (b"{}", 422, "query"),
        (b'{"query": ""}', 422, "query"),
        (b'{"query": "tea", "k": 0}', 422, "k"),
        (b'{"query": "tea", "k": "3"}', 422, "k"),
        (b'{"query": "tea", "k": 1.5}', 422, "k"),
        (b'{"query": "tea", "top": 3}', 422, "top"),
        (b'{"query": "tea", "items": [{"features": [1]}]}', 422, "items[0].id"),
        (b'{"query": "tea", "context": {"": "x"}}', 422, "context"),
        (b'{"query": "tea", "items": ["nobody"]}', 422, None),
        (b'{"query": "nobody asked this"}', 404, None),
    ],
)
def test_a_bad_request_is_told_where(
    local: Local, body: bytes, status: int, field: str | None
) -> None:
    local.json("PUT", "/v1/queries/tea/items", ITEMS)
    found, error = local.error("POST", "/v1/rank", content=body)
    assert found == status
    if field is not None:
        assert error["field"] == field


def test_a_body_that_is_nested_deeply_is_refused(local: Local) -> None:
    deep = b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    status, error = local.error("POST", "/v1/feedback", content=b'{"events": [' + deep + b"]}")
    assert (status, error["message"]) == (400, "the body is nested too deeply to be read")
    for path in ("/v1/rank", "/v1/feedback"):
        assert local.error("POST", path, content=deep)[0] == 422


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/rank", b'{"query": "%s"}'),
        ("POST", "/v1/rank", b'{"query": "tea", "%s": 1}'),
        ("PUT", "/v1/queries/tea/items", b'{"items": [{"id": "%s", "features": [1]}]}'),
        ("POST", "/v1/feedback", b'{"%s": []}'),
    ],
)
def test_text_that_is_no_unicode_is_told_where(
    local: Local, method: str, path: str, body: bytes
) -> None:
    status, error = local.error(method, path, content=body % b"caf\xe9")
    assert (status, error["code"]) == (400, "bad_request")
    place = body.index(b"%s") + 3
    assert error["message"] == f"the body is not UTF-8 at byte {place}, counted from 0"


@pytest.mark.parametrize("field", ["event_id", "ranking_id", "item", "type", "more"])
def test_an_event_that_is_no_unicode_is_rejected_alone(local: Local, field: str) -> None:
    local.json("PUT", "/v1/queries/tea/items", ITEMS)
    served = local.json("POST", "/v1/rank", {"query": "tea"})
    good = json.dumps(click(served, "a")).encode()
    bad = json.dumps({**click(served, "b"), field: "BAD"}).encode().replace(b"BAD", b"\xe9")
    body = b'{"events": [%s, %s, %s]}' % (bad, good, bad)
    told = local.request("POST", "/v1/feedback", content=body)
    assert told.status_code == 200, told.text
    results = told.json()["results"]
    assert [one["status"] for one in results] == ["rejected", "accepted", "rejected"]
    assert all(one["reason"].startswith("malformed: ") for one in results[::2])


def test_addresses_that_are_not_served(local: Local) -> None:
    assert local.error("GET", "/v1/nothing")[0] == 404
    assert local.error("GET", "/v1/queries//items")[0] == 404
    assert local.error("GET", "/dashboard/../app.py")[0] == 404
    assert local.error("GET", "/dashboard/..%2Fapp.py")[0] == 404
    assert local.error("GET", "/dashboard/nothing.js")[0] == 404
    answer = local.request("GET", "/v1/queries/tea/items")
    assert (answer.status_code, answer.headers["allow"]) == (405, "PUT")
    answer = local.request("PATCH", "/v1/rank")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_a_version_that_is_no_number(local: Local) -> None:
    status, error = local.error("POST", "/v1/models/new/activate")
    assert (status, error["field"]) == (422, "version")
    assert local.error("POST", "/v1/models/7/activate")[0] == 404
    assert local.json("POST", "/v1/models/0/activate")["active"] == 0


def test_head_has_headers_and_no_body(local: Local) -> None:
    whole, head = local.request("GET", "/healthz"), local.request("HEAD", "/healthz")
    assert head.status_code == 200
    assert head.headers["content-length"] == str(len(whole.content))
    assert head.content == b""


def test_too_large_a_body_is_not_read() -> None:
    settings = Settings(limits=LimitsSettings(body_bytes=2048))
    with in_process(settings) as local:
        assert local.error("POST", "/v1/rank", content=b"x" * 2049)[0] == 413

        async def parts() -> Any:  # noqa: ANN401 (an async iterator; its length is not announced)
            for _ in range(3):
                yield b"x" * 1024

        assert local.error("POST", "/v1/rank", content=parts())[0] == 413
        assert local.error("POST", "/v1/rank", content=b"x" * 2048)[0] == 400


@pytest.mark.parametrize("path", ["/v1/rank", "/v1/feedback", "/v1/items:bulk"])
def test_a_compressed_body_is_refused_with_the_remedy(local: Local, path: str) -> None:
    body = gzip.compress(b'{"query": "tea"}')
    headers = {"content-encoding": "gzip"}
    status, error = local.error("POST", path, content=body, headers=headers)
    assert (status, error["code"]) == (415, "encoded")
    assert "send it as it is" in error["message"]
    headers = {"content-encoding": "Identity"}
    assert local.request("POST", path, content=b"{}", headers=headers).status_code != 415


def test_too_many_requests_are_told_when_to_come_back() -> None:
    settings = Settings(limits=LimitsSettings(requests_per_second=0.5, burst=2))
    with in_process(settings) as local:
        codes = [local.request("GET", "/v1/models").status_code for _ in range(3)]
        assert codes == [200, 200, 429]
        answer = local.request("GET", "/v1/models")
        assert 1 <= int(answer.headers["retry-after"]) <= 2
        assert local.request("GET", "/healthz").status_code == 200  # never limited


def test_nothing_is_served_before_it_is_ready(local: Local) -> None:
    assert local.json("GET", "/readyz") == {"status": "ready"}
    local.app.readiness.started = False
    assert local.error("GET", "/readyz")[0] == 503
    status, error = local.error("POST", "/v1/rank", json={"query": "tea"})
    assert (status, error["code"]) == (503, "unavailable")
    assert local.json("GET", "/healthz") == {"status": "ok"}


def test_a_store_that_cannot_write_is_503_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "TRY_SECONDS", 0.0)
    store = FaultyStore()
    strict = Settings(ranking=RankingSettings(degraded=False))
    with in_process(strict, store) as local:
        local.json("PUT", "/v1/queries/tea/items", ITEMS)
        served = local.json("POST", "/v1/rank", {"query": "tea"})
        store.full = True
        status, error = local.error("POST", "/v1/rank", json={"query": "tea"})
        assert (status, error["code"]) == (503, "unavailable")
        assert "the disk is full" in error["message"]
        event = click(served, "a")
        assert local.error("POST", "/v1/feedback", json={"events": [event]})[0] == 503
        assert local.error("GET", "/readyz")[0] == 503
        store.full = False
        told = local.json("POST", "/v1/feedback", {"events": [event]})
        assert told["accepted"] == 1
        assert local.json("GET", "/readyz") == {"status": "ready"}
        state = local.json("GET", "/v1/queries/tea")
        assert all(item["shown"] == 1 for item in state["items"])


def test_lists_without_the_store_are_marked_and_counted_apart() -> None:
    store = FaultyStore()
    with in_process(store=store) as local:
        local.json("PUT", "/v1/queries/tea/items", ITEMS)
        assert "degraded" not in local.json("POST", "/v1/rank", {"query": "tea"})
        store.full = True
        served = local.json("POST", "/v1/rank", {"query": "tea", "k": 2})
        assert (served["degraded"], served["ranking_id"], len(served["items"])) == (
            True,
            "uncounted",
            2,
        )
        assert local.error("GET", "/readyz")[0] == 503  # though lists are served
        page = local.request("GET", "/metrics").text
        assert "ebrank_degraded_total 1.0\n" in page
        assert "ebrank_rankings_total 1.0\n" in page
        store.full = False
        told = local.json("POST", "/v1/feedback", {"events": [click(served, "a")]})
        assert told["results"][0]["reason"].startswith("uncounted: ")


def test_shadow_mode_serves_the_callers_order() -> None:
    settings = Settings(ranking=RankingSettings(mode="shadow"))
    with in_process(settings) as local:
        local.json("PUT", "/v1/queries/tea/items", ITEMS)
        served = local.json("POST", "/v1/rank", {"query": "tea", "items": list("edcba"), "k": 5})
        assert [item["id"] for item in served["items"]] == list("edcba")
        assert sorted(served["would_rank"]) == list("abcde")
        different = served["would_rank"] != list("edcba")
        page = local.request("GET", "/metrics").text
        assert f"ebrank_shadow_different_total {float(different)}\n" in page


def test_a_bug_is_500_without_details(
    local: Local, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(self: object) -> None:
        raise ZeroDivisionError("secret details")

    monkeypatch.setattr("ebrank.service.core.engine.Engine.models", broken)
    status, error = local.error("GET", "/v1/models")
    assert (status, error["code"]) == (500, "internal")
    assert "secret" not in error["message"]
    assert "secret details" in caplog.text


def test_settings_reach_the_application() -> None:
    settings = replace(Settings(), ranking=RankingSettings(k=2))
    with in_process(settings) as local:
        local.json("PUT", "/v1/queries/tea/items", ITEMS)
        assert len(local.json("POST", "/v1/rank", {"query": "tea"})["items"]) == 2
