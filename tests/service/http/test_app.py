"""The endpoints, with the shapes that clients rely on, on a real engine in this process."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

from ebrank.service import api
from ebrank.service.api import EventIn, Malformed, read_events
from ebrank.service.http.admission import new_token
from ebrank.service.settings import EventsSettings, LimitsSettings, Settings
from tests.in_process import Local, in_process
from tests.postgres import Postgres
from tests.service.scenes import Clock

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


@pytest.fixture(scope="module")
def shared() -> Iterator[Local]:
    """One application for tests of requests that reach no store, or a query of their own."""
    with in_process() as opened:
        opened.json("PUT", "/v1/queries/tea/items", ITEMS)
        yield opened


def click(served: dict[str, Any], item: str, event_id: str = "e1") -> dict[str, Any]:
    ranking_id = served["ranking_id"]
    return {"event_id": event_id, "ranking_id": ranking_id, "item": item, "type": "click"}


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


def test_callers_change_one_by_one_after_a_feature_was_added_or_removed(local: Local) -> None:
    """In every request that takes features: a rank, a PUT of a query, of the catalog, in bulk."""

    def sent(features: object, shared: object) -> list[int]:
        item, in_catalog = {"id": "x", "features": features}, {"id": "y", "features": shared}
        statuses = [
            local.request(method, path, json=body).status_code
            for method, path, body in (
                ("POST", "/v1/rank", {"query": "tea", "items": [item]}),
                ("PUT", "/v1/queries/tea/items", {"items": [item]}),
                ("PUT", "/v1/items", {"items": [in_catalog]}),
            )
        ]
        told = local.request("POST", "/v1/items:bulk", content=json.dumps(in_catalog)).json()
        return [*statuses, 422 if told["rejected"] else 200]

    def stored() -> list[float | None]:
        state = local.run(local.app._engine._store.items.load("tea"))
        assert state is not None
        own = [None if number != number else float(number) for number in state.features[0]]
        return [*own, *local.json("GET", "/v1/items/y")["features"].values()]

    old, new = ({"a": 1.0}, {"s": 1.0}), ({"a": 2.0, "b": 3.0}, {"s": 2.0, "t": 3.0})
    local.json("PUT", "/v1/items", {"items": [{"id": name, "features": {"s": 0}} for name in "xy"]})
    assert sent(*old) == [200] * 4
    assert sent(*new) == [422] * 4  # so declare first
    added = {"add": [{"name": "b"}, {"name": "t", "shared": True}]}
    told = local.json("PATCH", "/v1/features", added)
    assert {one["name"]: one["required"] for one in told["features"]} == {
        "s": True,
        "a": True,
        "b": False,
        "t": False,
    }
    assert sent(*old) == [200] * 4
    assert stored() == [1.0, None, 1.0, None]
    assert sent(*new) == [200] * 4
    assert sent(*old) == [200] * 4
    assert stored() == [1.0, 3.0, 1.0, 3.0]  # those who do not send it do not erase it
    assert sent([1.0], [1.0]) == [200] * 4
    assert sent({"a": 1.0, "b": None}, {"s": 1.0, "t": None}) == [200] * 4
    assert stored() == [1.0, None, 1.0, None]
    assert sent({"b": 3.0}, {"t": 3.0}) == [422] * 4  # what was there before is still required
    told = local.json("PATCH", "/v1/features", {"require": ["b", "t"]})
    assert told["changes"][0] == (
        "require b: features.missing applies to it; 1 items of queries lack it until they are put "
        "again"
    )
    assert (sent(*new), sent(*old)) == ([200] * 4, [422] * 4)
    local.json("PATCH", "/v1/features", {"remove": ["b", "t"]})
    assert (sent(*new), sent(*old)) == ([200] * 4, [200] * 4)
    unheard_of = {"c": 1.0}
    assert sent(new[0] | unheard_of, new[1] | unheard_of) == [422] * 4


def test_a_shared_feature_may_come_before_the_catalog(local: Local) -> None:
    local.json("PUT", "/v1/queries/tea/items", ITEMS)
    local.json("PATCH", "/v1/features", {"add": [{"name": "stock", "shared": True}]})
    more = {"items": [{"id": "f", "features": [5, 1.0]}]}
    assert local.json("PUT", "/v1/queries/tea/items", more)["candidates"] == 6
    assert len(local.json("POST", "/v1/rank", {"query": "coffee", **more})["items"]) == 1
    local.json("PUT", "/v1/items", {"items": [{"id": "f", "features": {"stock": 3}}]})
    assert local.json("PUT", "/v1/queries/tea/items", ITEMS)["candidates"] == 6
    local.json("PATCH", "/v1/features", {"require": ["stock"]})
    more["items"][0]["id"] = "g"
    status, told = local.error("PUT", "/v1/queries/tea/items", json=more)
    assert status == 422
    assert "item 'g' is not in the catalog" in told["message"]


def listed(local: Local, query: str) -> list[str]:
    served = local.json("POST", "/v1/rank", {"query": query})
    return sorted(item["id"] for item in served["items"])


def test_an_item_of_the_catalog_is_withdrawn_from_every_list_and_comes_back(local: Local) -> None:
    teas = [{"id": name, "features": {"stock": place}} for place, name in enumerate("abc")]
    local.json("PUT", "/v1/items", {"items": teas})
    for query in ("tea", "drinks"):
        served = local.json("POST", "/v1/rank", {"query": query, "items": ["a", "b"]})
        local.json("POST", "/v1/feedback", {"events": [click(served, "a")]})
    local.json("DELETE", "/v1/queries/drinks/items/b")
    assert local.json("DELETE", "/v1/items/a") == {"item": "a", "withdrawn": True}
    assert local.json("DELETE", "/v1/items/a") == {"item": "a", "withdrawn": False}
    assert local.error("DELETE", "/v1/items/nobody")[0] == 404
    assert (listed(local, "tea"), listed(local, "drinks")) == (["b"], [])
    [gone] = local.json("GET", "/v1/queries/tea")["withdrawn"]
    assert (gone["id"], gone["clicks"]) == ("a", 1)
    for query in ("tea", "coffee"):  # neither by its name nor with features of the query
        status, told = local.error("POST", "/v1/rank", json={"query": query, "items": ["a", "b"]})
        assert (status, told["field"]) == (422, "items")
        assert told["message"] == "withdrawn from the catalog: 'a'. PUT /v1/items brings them back"
    assert local.error("GET", "/v1/queries/coffee")[0] == 404
    assert local.json("PUT", "/v1/queries/tea/items", {"items": [{"id": "a"}]})["candidates"] == 1
    assert local.json("GET", "/v1/items/a") == {
        "id": "a",
        "features": {"stock": 0.0},
        "withdrawn": True,
    }
    assert [one["lacking"] for one in local.json("GET", "/v1/features")["features"]] == [0]
    assert local.json("PUT", "/v1/items", {"items": teas}) == {"items": 3, "changed": 1}
    assert (listed(local, "tea"), listed(local, "drinks")) == (["a", "b"], ["a"])
    state = local.json("GET", "/v1/queries/tea")
    assert {item["id"]: item["clicks"] for item in state["items"]} == {"a": 1, "b": 0}
    assert local.json("DELETE", "/v1/items/a")["withdrawn"]
    bulk = local.request("POST", "/v1/items:bulk", content=json.dumps(teas[0])).json()
    assert bulk["changed"] == 1
    assert listed(local, "tea") == ["a", "b"]


def test_the_catalog_is_listed_in_pages(local: Local) -> None:
    assert local.json("GET", "/v1/items") == {"items": [], "next": None}
    names = ["a", "b/c", "é", "z"]
    items = [{"id": name, "features": {"stock": 1, "size": None}} for name in names]
    told = local.request("POST", "/v1/items:bulk", content="\n".join(map(json.dumps, items[:1])))
    assert told.json()["rejected"] == 1  # it lacks a value
    items = [{"id": name, "features": {"stock": 1}} for name in names]
    local.json("PUT", "/v1/items", {"items": items})
    local.json("PATCH", "/v1/features", {"add": [{"name": "size", "shared": True}]})
    local.json("DELETE", "/v1/items/b%2Fc")
    pages, cursor = [], ""
    while cursor is not None:
        page = local.json("GET", f"/v1/items?limit=3&cursor={quote(cursor)}")
        pages.append(page["items"])
        cursor = page["next"]
    assert [[item["id"] for item in page] for page in pages] == [["a", "b/c", "z"], ["é"]]
    assert [item["withdrawn"] for item in pages[0]] == [False, True, False]
    assert pages[0][1]["features"] == {"stock": 1.0, "size": None}
    assert local.error("GET", "/v1/items?limit=0")[0] == 422


NAMES = ["a/b", "grün tee", "100%", "a?b#c", "茶", "..", ".", "%2f", "<img src=x>", "%2F", "a\nb"]


@pytest.mark.parametrize("name", NAMES)
def test_names_in_addresses_may_hold_anything(shared: Local, name: str) -> None:
    part = quote(name, safe="").replace(".", "%2E")
    item = {"id": name, "features": [1.0, 1.0]}
    shared.json("PUT", f"/v1/queries/{part}/items", {"items": [item]})
    state = shared.json("GET", f"/v1/queries/{part}")
    query = " ".join(name.lower().split())
    assert (state["query"], [one["id"] for one in state["items"]]) == (query, [name])
    assert shared.json("DELETE", f"/v1/queries/{part}/items/{part}")["item"] == name


def test_names_have_a_longest_length(shared: Local) -> None:
    shared.json("PUT", f"/v1/queries/{'q' * 512}/items", {"items": []})
    assert shared.error("GET", f"/v1/queries/{'q' * 513}")[0] == 422
    status, error = shared.error("DELETE", f"/v1/queries/tea/items/{'i' * 257}")
    assert (status, error["field"]) == (422, "item")
    status, error = shared.error("GET", "/v1/queries/%ff")
    assert (status, error["code"]) == (400, "bad_request")


RANK, PUT = ("POST", "/v1/rank"), ("PUT", "/v1/queries/tea/items")
DEEP = b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}"


@pytest.mark.parametrize(
    ("route", "body", "status", "told"),
    [
        (RANK, b"", 400, "the body is not JSON"),
        (RANK, b"{", 400, "the body is not JSON"),
        (RANK, b'{"query": "\\ud800"}', 400, "the body is not JSON"),
        (RANK, b"\xff", 400, "the body is not JSON"),
        (RANK, b'{"query": "caf\xe9"}', 400, "not UTF-8 at byte 14, counted from 0"),
        (RANK, b'{"query": "tea", "caf\xe9": 1}', 400, "not UTF-8 at byte 21"),
        (
            PUT,
            b'{"items": [{"id": "\xe9", "features": [1]}]}',
            400,
            "not UTF-8 at byte 19",
        ),
        (("POST", "/v1/feedback"), b'{"\xe9": []}', 400, "not UTF-8 at byte 2"),
        (("POST", "/v1/feedback"), b'{"events": [' + DEEP + b"]}", 400, "nested too deeply"),
        (("POST", "/v1/feedback"), DEEP, 422, "Object"),
        (RANK, DEEP, 422, "Object"),
        (RANK, b"[]", 422, "Expected `object`"),
        (RANK, b"{}", 422, "query: Object missing required field"),
        (RANK, b'{"query": ""}', 422, "query: Expected `str` of length >= 1"),
        (RANK, b'{"query": "tea", "k": 0}', 422, "k: Expected `int` >= 1"),
        (RANK, b'{"query": "tea", "k": "3"}', 422, "k: Expected `int | null`"),
        (RANK, b'{"query": "tea", "top": 3}', 422, "top: Object contains unknown field"),
        (RANK, b'{"query": "tea", "items": [{"features": [1]}]}', 422, "items[0].id: Object"),
        (RANK, b'{"query": "tea", "items": ["nobody"]}', 422, "items: "),
        (RANK, b'{"query": "nobody asked this"}', 404, "nobody asked this"),
    ],
)
def test_a_bad_request_is_told_where(
    shared: Local, route: tuple[str, str], body: bytes, status: int, told: str
) -> None:
    found, error = shared.error(*route, content=body)
    assert found == status
    assert told in f"{error.get('field')}: {error['message']}"


@pytest.mark.parametrize("field", ["event_id", "ranking_id", "item", "type", "more"])
def test_an_event_that_is_no_unicode_is_rejected_alone(shared: Local, field: str) -> None:
    served = shared.json("POST", "/v1/rank", {"query": "tea"})
    good = json.dumps(click(served, "a", f"good {field}")).encode()
    bad = json.dumps({**click(served, "b"), field: "BAD"}).encode().replace(b"BAD", b"\xe9")
    body = b'{"events": [%s, %s, %s]}' % (bad, good, bad)
    told = shared.request("POST", "/v1/feedback", content=body)
    assert told.status_code == 200, told.text
    results = told.json()["results"]
    assert [one["status"] for one in results] == ["rejected", "accepted", "rejected"]
    assert all(one["reason"].startswith("malformed: ") for one in results[::2])


def test_addresses_that_are_not_served(shared: Local) -> None:
    nothing = (
        "/v1/nothing",
        "/v1/queries//items",
        "/dashboard/../app.py",
        "/dashboard/..%2Fapp.py",
    )
    for path in (*nothing, "/dashboard/nothing.js"):
        assert shared.error("GET", path)[0] == 404
    for method, path, allowed in (("GET", *PUT[::-1]), ("PATCH", *RANK[::-1])):
        answer = shared.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


def test_a_version_that_is_no_number(shared: Local) -> None:
    status, error = shared.error("POST", "/v1/models/new/activate")
    assert (status, error["field"]) == (422, "version")
    assert shared.error("POST", "/v1/models/7/activate")[0] == 404
    assert shared.json("POST", "/v1/models/0/activate")["active"] == 0


def test_head_has_headers_and_no_body(shared: Local) -> None:
    whole, head = shared.request("GET", "/healthz"), shared.request("HEAD", "/healthz")
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
def test_a_compressed_body_is_refused_with_the_remedy(shared: Local, path: str) -> None:
    body = gzip.compress(b'{"query": "tea"}')
    headers = {"content-encoding": "gzip"}
    status, error = shared.error("POST", path, content=body, headers=headers)
    assert (status, error["code"]) == (415, "encoded")
    assert "send it as it is" in error["message"]
    headers = {"content-encoding": "Identity"}
    assert shared.request("POST", path, content=b"{}", headers=headers).status_code != 415


def test_new_queries_are_bounded_for_each_token() -> None:
    secrets, tokens = zip(*(new_token(name, ["rank", "admin"]) for name in "ab"), strict=True)
    settings = Settings(tokens=tokens, limits=LimitsSettings(new_queries_per_hour=2))
    with in_process(settings) as local:

        def send(query: str, *, of: int = 0, item: object = ITEMS["items"][0]) -> httpx.Response:
            headers = {"authorization": f"Bearer {secrets[of]}"}
            body = {"query": query, "items": [item]}
            return local.request("POST", "/v1/rank", json=body, headers=headers)

        assert send("wrong", item={"id": "a", "features": [None]}).status_code == 422
        assert [send(query).status_code for query in ("one", "two", "one")] == [200] * 3
        refused = send("three")
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 1800
        assert refused.json()["error"]["field"] == "query"
        assert "limits.new_queries_per_hour" in refused.json()["error"]["message"]
        assert send("two", item={"id": "b", "features": [1.0, 1.0]}).status_code == 200
        assert send("three", of=1).status_code == 200
        headers = {"authorization": f"Bearer {secrets[0]}"}
        put = local.request("PUT", "/v1/queries/four/items", json=ITEMS, headers=headers)
        assert put.status_code == 200
        many = [{"id": f"i{at}", "features": [at, 1.0]} for at in range(600)]  # in portions
        body = {"query": "five", "items": many}
        assert local.request("POST", "/v1/rank", json=body, headers=headers).status_code == 429
        headers["authorization"] = f"Bearer {secrets[1]}"
        assert local.request("POST", "/v1/rank", json=body, headers=headers).status_code == 200
        assert send("six", of=1).status_code == 429
        found = local.request("GET", "/v1/queries", headers=headers).json()["queries"]
        assert [one["query"] for one in found] == ["five", "four", "one", "three", "two"]


def test_nothing_is_served_before_it_is_ready(local: Local) -> None:
    readiness = local.json("GET", "/readyz")
    assert readiness == {"status": "ready", "store": local.app.readiness.store}
    local.app.readiness.started = False
    assert local.error("GET", "/readyz")[0] == 503
    status, error = local.error("POST", "/v1/rank", json={"query": "tea"})
    assert (status, error["code"]) == (503, "unavailable")
    assert local.json("GET", "/healthz") == {"status": "ok"}


def test_clicks_that_were_taken_back_are_in_no_figure() -> None:
    """Neither in the totals, saved or not, nor in the minutes, nor in the counts."""
    clock = Clock()
    settings = Settings(events=EventsSettings(behaviors=("click=0.5", "buy"), negative=("hide",)))
    with in_process(settings, clock=clock) as local:

        def told() -> tuple[int, int, int]:
            seen = local.json("GET", "/v1/insights")
            items = local.json("GET", "/v1/queries/tea")["items"]
            assert all(bucket["clicks"] >= 0 for bucket in seen["buckets"])
            in_buckets = sum(bucket["clicks"] for bucket in seen["buckets"])
            return seen["totals"]["clicks"], in_buckets, sum(item["clicks"] for item in items)

        def send(item: str, *kinds: str) -> None:
            events = [click(served, item, f"{item} {kind}") | {"type": kind} for kind in kinds]
            assert local.json("POST", "/v1/feedback", {"events": events})["rejected"] == 0
            clock.now += 60.0

        local.json("PUT", "/v1/queries/tea/items", ITEMS)
        served = local.json("POST", "/v1/rank", {"query": "tea"})
        send("a", "click")
        send("a", "buy")
        send("b", "click")
        send("c", "hide", "click")
        send("d", "click", "hide")
        assert told() == (2, 2, 2)
        send("a", "hide")
        assert told() == (1, 1, 1)
        send("b", "hide")
        assert told() == (0, 0, 0)
        send("e", "click")
        assert told() == (1, 1, 1)


def test_a_bug_is_500_without_details(
    shared: Local, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(self: object) -> None:
        raise ZeroDivisionError("secret details")

    monkeypatch.setattr("ebrank.service.engine.Engine.models", broken)
    status, error = shared.error("GET", "/v1/models")
    assert (status, error["code"]) == (500, "internal")
    assert "secret" not in error["message"]
    assert "secret details" in caplog.text


# --- requests as they are read -------------------------------------------------------------------


GOOD = {"event_id": "e", "ranking_id": "r", "item": "i", "type": "click"}


def test_a_bad_event_does_not_spoil_its_batch() -> None:
    events: list[Any] = [GOOD, 7, GOOD | {"type": 1}, GOOD | {"why": "?"}, {"event_id": "x"}, GOOD]
    read = read_events(json.dumps({"events": events}).encode())
    kinds = [type(event) for event in read]
    assert kinds == [EventIn, Malformed, Malformed, Malformed, Malformed, EventIn]
    assert "unknown field `why`" in read[3].reason  # type: ignore[union-attr]
    assert read_events(json.dumps({"events": [GOOD]}).encode()) == [EventIn("e", "r", "i", "click")]


TIMES: list[object] = [12.5, 7, "2024-05-01T10:00:00Z", None]
ODD_TIMES: list[object] = ["2024-05-01T10:00:00", "noon", True, [], -1e300]


@pytest.mark.parametrize("time", TIMES + ODD_TIMES)
def test_times_are_seconds_or_dates(time: object) -> None:
    [event] = read_events(json.dumps({"events": [GOOD | {"time": time}]}).encode())
    assert isinstance(event, EventIn) == (time in TIMES and time is not True)


MANY = json.dumps({"events": [GOOD] * (api.MOST_EVENTS + 1)}).encode()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"events": 3}', b'{"event": []}', MANY]
)
def test_invalid_batches_are_rejected_as_a_whole(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_events(body)


@pytest.mark.parametrize("name", ["", "a:b", "a\n", "a b", "a" * 65])
def test_labels_can_be_part_of_others(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(name, api.Label)
