"""Every endpoint with every kind of token; tokens, kept as hashes; and rates, for each caller."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.errors import ParameterError
from ebrank.service import logs
from ebrank.service.endpoints import ENDPOINTS
from ebrank.service.http import admission
from ebrank.service.http.admission import SCOPES, Admission, Limiter, new_token
from ebrank.service.settings import (
    FeaturesSettings,
    LimitsSettings,
    RankingSettings,
    Settings,
    Token,
)
from tests.in_process import Local, in_process
from tests.service.scenes import Clock

SECRETS, TOKENS = zip(*(new_token(scope, [scope]) for scope in SCOPES), strict=True)
SECRET = dict(zip(SCOPES, SECRETS, strict=True))
GUARDED = {(one.method, one.path): one for one in ENDPOINTS.values() if one.scopes}
OPEN = {"/healthz", "/readyz", "/openapi.json", "/docs", "/docs.css", "/", "/dashboard/{file}"}
WRITING = {"PUT", "POST", "PATCH", "DELETE"}


@pytest.fixture(scope="module")
def local() -> Iterator[Local]:
    ranking = RankingSettings(exploration_budget=0.005)
    chosen = Settings(tokens=TOKENS, features=FeaturesSettings(missing="zero"), ranking=ranking)
    with in_process(chosen) as opened:
        features = {"price": 1.0, "rating": 2.0}
        candidates = {"items": [{"id": name, "features": features} for name in ("sencha", "assam")]}
        admin = {"authorization": f"Bearer {SECRET['admin']}"}
        for path, body in (
            ("/v1/queries/tea/items", candidates),
            ("/v1/items", ENDPOINTS["put_catalog"].sample),
        ):
            assert opened.request("PUT", path, json=body, headers=admin).status_code == 200
        yield opened


def status(local: Local, method: str, path: str, authorization: str | None) -> int:
    names = {"query": "tea", "item": "sencha", "version": "0", "name": "prices"}
    body = GUARDED[method, path].sample if (method, path) in GUARDED else None
    headers = {} if authorization is None else {"authorization": authorization}
    address = path.format(**names)
    return local.request(method, address, json=body, headers=headers).status_code


def test_what_needs_a_token_and_of_which_scope() -> None:
    assert {one.path for one in ENDPOINTS.values() if not one.scopes} == OPEN
    by_rank = {path for (method, path), one in GUARDED.items() if one.scopes == ("rank",)}
    by_feedback = {path for (_, path), one in GUARDED.items() if "feedback" in one.scopes}
    assert by_rank == {"/v1/rank", "/v2/rerank"}
    assert by_feedback == {"/v1/feedback", "/metrics"}
    changing = {key for key, one in GUARDED.items() if key[0] in WRITING and "admin" in one.scopes}
    assert all(GUARDED[key].scopes == ("admin",) for key in changing)
    reading = {one.scopes for (method, path), one in GUARDED.items() if method == "GET"}
    assert reading == {("admin",), ("rank", "admin"), ("rank", "feedback", "admin")}


# Withdrawals come last: others need the items.
ROUTES = [(verb, path) for verb, path in GUARDED if verb != "DELETE"]
ROUTES += [(verb, path) for verb, path in GUARDED if verb == "DELETE"]


def test_only_the_right_scope_opens_each_endpoint(local: Local) -> None:
    strangers = (None, f"Bearer {new_token('stranger', SCOPES)[0]}", f"Basic {SECRET['admin']}")
    for method, path in ROUTES:  # in their order: an experiment is started before it is stopped
        refused = [status(local, method, path, header) for header in strangers]
        assert refused == [401] * len(strangers), (method, path)
        found = {scope: status(local, method, path, f"Bearer {SECRET[scope]}") for scope in SCOPES}
        allowed = GUARDED[method, path].scopes
        assert found == {scope: 200 if scope in allowed else 403 for scope in SCOPES}, (
            method,
            path,
        )


def test_a_token_is_taken_in_its_own_header_alone(local: Local) -> None:
    secret, hashed = SECRET["admin"], TOKENS[SCOPES.index("admin")].sha256
    for header in ("", "Bearer", "Bearer ", "Basic x", secret, f"Bearer {hashed}"):
        assert status(local, "GET", "/v1/models", header) == 401
    assert status(local, "HEAD", "/v1/models", None) == 401
    assert status(local, "GET", "/v1/models", f"bearer  {secret} ") == 200
    strange = Admission(Settings(tokens=TOKENS)).token("Bearer é\udcff")
    assert strange is None  # no client sends that, but a socket may
    both = [("authorization", f"Bearer {secret}"), ("authorization", "Bearer other")]
    assert local.request("GET", "/v1/models", headers=both).status_code == 401


@pytest.mark.parametrize("path", sorted(OPEN - {"/dashboard/{file}"}))
def test_open_routes_need_no_token(local: Local, path: str) -> None:
    assert status(local, "GET", path, None) == 200


@pytest.mark.parametrize("name", ["%ff", "q" * 600])
def test_an_odd_name_is_not_judged_before_the_token(local: Local, name: str) -> None:
    assert local.request("GET", f"/v1/queries/{name}").status_code == 401


def test_callers_who_may_only_rank_cannot_bring_back_withdrawn_items(local: Local) -> None:
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


def test_a_refusal_says_how_to_be_let_in(local: Local) -> None:
    answer = local.request("GET", "/v1/models")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    code, error = local.error(
        "POST", "/v1/train", headers={"authorization": f"Bearer {SECRET['rank']}"}
    )
    assert (code, error["message"]) == (403, "this endpoint needs a token with scope admin")


def test_guessing_is_limited_by_address_and_callers_by_token() -> None:
    limits = LimitsSettings(requests_per_second=0.01, burst=3)
    with in_process(Settings(tokens=TOKENS, limits=limits)) as local:
        tried = [status(local, "GET", "/v1/models", f"Bearer {n}") for n in range(5)]
        assert tried == [401, 401, 401, 429, 429]
        refused = local.request("GET", "/v1/models")
        assert 1 <= int(refused.headers["retry-after"]) <= 100
        assert status(local, "GET", "/healthz", None) == 200  # never limited
        known = f"Bearer {SECRET['rank']}"
        assert status(local, "GET", "/v1/models", known) == 200  # a caller of its own


OURS = ["localhost", "localhost:8000", "LOCALHOST", "127.0.0.1:8000", "127.8.9.1", "[::1]:8000"]
FOREIGN = ["evil.example:8000", "127.0.0.1.evil.example", "localhost@evil.example", "192.0.2.1"]
FOREIGN += ["0.0.0.0", "[::]", "localhost.example.org"]


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


def test_the_access_log_names_callers_and_nothing_private() -> None:
    stream = io.StringIO()
    with logs.written("text", stream, requests=True), in_process(Settings(tokens=TOKENS)) as local:
        for name in ("rank", "private-token"):
            headers = {"authorization": f"Bearer {SECRET.get(name, name)}"}
            body = {"query": "private-name", "user": "private-user"}
            local.request("POST", "/v1/rank?private=1", json=body, headers=headers)
            local.request("PUT", "/v1/queries/private-name/items", json={}, headers=headers)
        local.request("GET", "/private")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert "private" not in stream.getvalue()
    put = ("PUT", "/v1/queries/{query}/items")
    told = [(*(line[name] for name in ("method", "route", "status", "caller")),) for line in lines]
    assert told == [
        ("POST", "/v1/rank", 404, "rank"),
        (*put, 403, "rank"),
        ("POST", "/v1/rank", 401, "192.0.2.7"),
        (*put, 401, "192.0.2.7"),
        ("GET", "", 404, "192.0.2.7"),
    ]
    assert all(line["ms"] > 0 for line in lines)


def test_a_token_is_known_by_its_hash_alone() -> None:
    secret, token = new_token("shop", ["feedback", "rank"])
    assert token == Token("shop", hashlib.sha256(secret.encode()).hexdigest(), ("rank", "feedback"))
    assert secret not in repr(token)
    assert len(secret) >= 43  # 256 bits in base64
    assert new_token("shop", ["rank"])[0] != secret


@pytest.mark.parametrize("name", ["", "a b", "ünï", "-a", "a" * 65, "a\n"])
def test_names_are_plain_words(name: str) -> None:
    with pytest.raises(ParameterError, match="is not a valid token name"):
        new_token(name, ["rank"])


def test_scopes_are_known_and_some() -> None:
    with pytest.raises(
        ParameterError, match=r"unknown scope 'root'\. Known scopes: rank, feedback"
    ):
        new_token("a", ["rank", "root"])
    with pytest.raises(ParameterError, match="needs a scope"):
        new_token("a", [])
    assert new_token("a", SCOPES)[1].scopes == ("rank", "feedback", "admin")


@given(
    pauses=st.lists(st.floats(0, 2), max_size=60),
    rate=st.sampled_from([0.5, 1.0, 3.0]),
    burst=st.integers(1, 5),
)
def test_it_agrees_with_a_bucket_that_is_filled_drop_by_drop(
    pauses: list[float], rate: float, burst: int
) -> None:
    clock = Clock()
    limiter = Limiter(rate, burst, clock=clock)
    tokens = float(burst)
    for pause in pauses:
        clock.now += pause
        tokens = min(float(burst), tokens + pause * rate)
        if abs(tokens - 1.0) < 1e-6:
            return  # a matter of rounding
        allowed = tokens > 1.0
        assert (limiter.wait("a") == 0.0) is allowed
        tokens -= allowed


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MOST_CALLERS", 3)
    limiter = Limiter(rate=1.0, burst=1, clock=Clock())
    for caller in "abcd":
        limiter.wait(caller)
    assert limiter.wait("b") > 0  # still known
    assert limiter.wait("a") == 0.0  # forgotten first
