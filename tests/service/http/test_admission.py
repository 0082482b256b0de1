"""Every endpoint with every kind of token: none answers where it must not."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest

from ebrank.service.http.access_log import AccessLog
from ebrank.service.http.auth import SCOPES, new_token
from ebrank.service.http.route import Route
from ebrank.service.http.routes import API
from ebrank.service.settings import LimitsSettings, Settings
from tests.in_process import Local, in_process

SECRETS, TOKENS = zip(*(new_token(scope, [scope]) for scope in SCOPES), strict=True)
SECRET = dict(zip(SCOPES, SECRETS, strict=True))
ALLOWED = {
    ("PUT", "/v1/queries/{query}/items"): {"admin"},
    ("DELETE", "/v1/queries/{query}/items/{item}"): {"admin"},
    ("POST", "/v1/rank"): {"rank"},
    ("POST", "/v1/feedback"): {"feedback"},
    ("GET", "/v1/queries/{query}"): {"rank", "admin"},
    ("POST", "/v1/train"): {"admin"},
    ("GET", "/v1/models"): {"rank", "admin"},
    ("POST", "/v1/models/{version}/activate"): {"admin"},
    ("GET", "/v1/insights"): {"rank", "admin"},
    ("GET", "/metrics"): {"rank", "feedback", "admin"},
}
OPEN = {"/healthz", "/readyz", "/openapi.json", "/docs", "/docs.css", "/", "/dashboard/{file}"}
BODIES = {route.path: route.example for route in API}


@pytest.fixture(scope="module")
def local() -> Iterator[Local]:
    with in_process(Settings(tokens=TOKENS)) as opened:
        items = [{"id": "sencha", "features": {"price": 1.0, "rating": 2.0}}]
        answer = opened.request(
            "PUT",
            "/v1/queries/tea/items",
            json={"items": items},
            headers={"authorization": f"Bearer {SECRET['admin']}"},
        )
        assert answer.status_code == 200
        yield opened


def status(local: Local, method: str, path: str, authorization: str | None) -> int:
    address = path.replace("{query}", "tea").replace("{item}", "sencha").replace("{version}", "0")
    headers = {} if authorization is None else {"authorization": authorization}
    return local.request(method, address, json=BODIES.get(path), headers=headers).status_code


def test_the_table_is_complete(local: Local) -> None:
    guarded = {(one.method, one.path) for one in local.app.router.routes if one.scopes}
    assert guarded == set(ALLOWED)
    assert {one.path for one in local.app.router.routes if not one.scopes} == OPEN


@pytest.mark.parametrize(("method", "path"), list(ALLOWED))
def test_only_the_right_scope_opens_it(local: Local, method: str, path: str) -> None:
    wrong = new_token("stranger", SCOPES)[0]
    for header in (None, f"Bearer {wrong}", "Bearer", f"Basic {SECRET['admin']}"):
        assert status(local, method, path, header) == 401
    for scope, secret in SECRET.items():
        found = status(local, method, path, f"Bearer {secret}")
        assert found == (200 if scope in ALLOWED[method, path] else 403)


@pytest.mark.parametrize("path", sorted(OPEN - {"/dashboard/{file}"}))
def test_what_is_open_needs_no_token(local: Local, path: str) -> None:
    assert status(local, "GET", path, None) == 200


@pytest.mark.parametrize("name", ["%ff", "q" * 600])
def test_an_odd_name_is_not_judged_before_the_token(local: Local, name: str) -> None:
    assert local.request("GET", f"/v1/queries/{name}").status_code == 401


def test_who_may_only_rank_does_not_bring_back_what_was_withdrawn(local: Local) -> None:
    admin = {"authorization": f"Bearer {SECRET['admin']}"}
    brought = {"id": "oolong", "features": {"price": 9.0, "rating": 9.0}}
    put = ("PUT", "/v1/queries/coffee/items")
    local.request(*put, json={"items": [brought]}, headers=admin)
    local.request("DELETE", "/v1/queries/coffee/items/oolong", headers=admin)
    rank = {"authorization": f"Bearer {SECRET['rank']}"}
    for item in ("oolong", brought):
        body = {"query": "coffee", "items": [item]}
        status, error = local.error("POST", "/v1/rank", json=body, headers=rank)
        assert (status, error["field"]) == (422, "items")
        assert "withdrawn from this query: 'oolong'" in error["message"]
    local.request(*put, json={"items": [brought]}, headers=admin)
    assert local.request("POST", "/v1/rank", json=body, headers=rank).status_code == 200


def test_head_is_guarded_too(local: Local) -> None:
    assert status(local, "HEAD", "/v1/models", None) == 401


def test_two_headers_are_none(local: Local) -> None:
    both = [("authorization", f"Bearer {SECRET['admin']}"), ("authorization", "Bearer other")]
    assert local.request("GET", "/v1/models", headers=both).status_code == 401


def test_a_refusal_says_how_to_be_let_in(local: Local) -> None:
    answer = local.request("GET", "/v1/models")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    code, error = local.error(
        "POST", "/v1/train", headers={"authorization": f"Bearer {SECRET['rank']}"}
    )
    assert (code, error["message"]) == (403, "this needs a token with scope admin")


def test_guessing_is_limited_by_address_and_callers_by_token() -> None:
    limits = LimitsSettings(requests_per_second=0.01, burst=3)
    with in_process(Settings(tokens=TOKENS, limits=limits)) as local:
        tried = [status(local, "GET", "/v1/models", f"Bearer {n}") for n in range(5)]
        assert tried == [401, 401, 401, 429, 429]
        known = f"Bearer {SECRET['rank']}"
        assert status(local, "GET", "/v1/models", known) == 200  # a caller of its own


def test_routes_are_closed_unless_they_say_otherwise() -> None:
    """An endpoint of the API without scopes would be open to everybody."""
    assert all(isinstance(one, Route) and one.scopes for one in API)


OURS = ["localhost", "localhost:8000", "LOCALHOST", "127.0.0.1:8000", "127.8.9.1", "[::1]:8000"]
FOREIGN = ["evil.example:8000", "127.0.0.1.evil.example", "localhost@evil.example", "192.0.2.1"]


@pytest.fixture(scope="module")
def open_to_all() -> Iterator[Local]:
    with in_process() as opened:
        yield opened


@pytest.mark.parametrize("host", OURS)
def test_without_tokens_pages_of_our_own_may_call(open_to_all: Local, host: str) -> None:
    headers = {"host": host, "origin": f"http://{host}"}
    assert open_to_all.request("GET", "/v1/models", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://elsewhere.example", "null", "http://[", "", "localhost"]
)
def test_without_tokens_pages_of_other_sites_may_not(open_to_all: Local, origin: str) -> None:
    assert open_to_all.error("POST", "/v1/train", headers={"origin": origin})[0] == 403


@pytest.mark.parametrize("host", [*FOREIGN, "[", ""])
def test_without_tokens_another_name_for_this_machine_is_refused(
    open_to_all: Local, host: str
) -> None:
    """DNS rebinding: a site makes its own name mean 127.0.0.1, so that its pages are of it."""
    headers = {"host": host, "origin": f"http://{host}"}
    status, error = open_to_all.error("POST", "/v1/train", headers=headers)
    assert (status, error["code"]) == (403, "forbidden")
    assert "Host" in error["message"]
    assert open_to_all.request("GET", "/healthz", headers={"host": host}).status_code == 200


def test_with_tokens_any_name_is_fine(local: Local) -> None:
    """A page of another site has no token, and a server for others has a name."""
    headers = {"host": "search.example", "authorization": f"Bearer {SECRET['rank']}"}
    assert local.request("GET", "/v1/models", headers=headers).status_code == 200


def test_the_access_log_names_who_was_refused() -> None:
    stream = io.StringIO()
    with in_process(Settings(tokens=TOKENS), log=AccessLog(stream)) as local:
        assert status(local, "POST", "/v1/train", f"Bearer {SECRET['rank']}") == 403
        assert status(local, "POST", "/v1/train", "Bearer wrong") == 401
    named = [json.loads(line)["caller"] for line in stream.getvalue().splitlines()]
    assert named == ["rank", "192.0.2.7"]
