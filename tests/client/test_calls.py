"""What is sent: numbers that JSON has, missing values as null, and nothing else in their place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest

from ebrank.client import Client, EventIn, ServiceError, calls
from ebrank.client.calls import Retries
from ebrank.errors import ParameterError
from ebrank.service import endpoints
from ebrank.service.endpoints import Again


class Sent(Exception):
    """A request that would have been sent."""


def sent(ask: Callable[[Client], object], monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    """Return the body that a client sends."""

    async def outcome(self: Client, call: calls.Call[Any]) -> None:
        raise Sent(call.content)

    monkeypatch.setattr(Client, "_outcome", outcome)
    with Client() as client, pytest.raises(Sent) as told:
        ask(client)
    return msgspec.json.decode(told.value.args[0])


def test_numbers_and_missing_values_are_sent_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    items: calls.Items = {"a": np.array([1, 2], np.float32), "b": {"price": None}}
    assert sent(lambda client: client.put_items("tea", items), monkeypatch) == {
        "items": [
            {"id": "a", "features": [1.0, 2.0]},
            {"id": "b", "features": {"price": None}},
        ]
    }


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_what_json_has_no_number_for_is_refused(value: float) -> None:
    with pytest.raises(ParameterError, match=r"item 'a', feature 'price': -?(nan|inf)"):
        Client().put_items("tea", {"a": {"price": value}})
    with pytest.raises(ParameterError, match=r"item 'a', feature 1: .* Send None"):
        Client().rank("tea", items={"a": [0.0, value]})


@pytest.mark.parametrize("time", [math.nan, math.inf])
def test_a_time_that_is_no_number_is_refused(time: float) -> None:
    with pytest.raises(ParameterError, match="event 'e': its time is"):
        calls.feedback([calls.event("r1", "a", "click", "e", time)])


def test_events_may_be_mappings() -> None:
    given = {"event_id": "e", "ranking_id": "r", "item": "a", "type": "buy", "time": 5.0}
    event = EventIn("e", "r", "a", "buy", 5.0)
    assert calls.feedback([given]).content == calls.feedback([event]).content


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"event_id": "e"}, "event 1: .* missing required field `ranking_id`.* a mapping with"),
        ({"event": "e"}, "event 1: .* unknown field `event`"),
        ("click", "event 1: Expected `object`, got `str`"),
    ],
)
def test_what_is_no_event_is_refused(given: Any, told: str) -> None:  # noqa: ANN401
    with pytest.raises(ParameterError, match=told):
        calls.feedback([EventIn("e", "r", "a", "click"), given])


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "localhost", "ftp://localhost"])
def test_an_address_needs_its_scheme(url: str) -> None:
    with pytest.raises(ParameterError, match="it begins with http:// or https://"):
        Client(url)


def test_an_error_whose_field_is_null_names_no_field() -> None:
    body = {"error": {"code": "invalid", "message": "no", "field": None}}
    response = httpx.Response(422, json=body, request=httpx.Request("GET", "http://localhost"))
    with pytest.raises(ServiceError, match=r"^no$") as refused:
        calls.call(endpoints.MODELS).result(response, "http://localhost")
    assert (refused.value.status, refused.value.code, refused.value.field) == (422, "invalid", None)


def test_a_text_as_a_feature_is_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="item 'green', feature 'color': 'pale' is not a num"):
        calls.put_body({"green": {"color": "pale"}})  # type: ignore[dict-item]


# --- what is sent again: only what does no harm twice, after pauses that grow --------------------


REQUEST = httpx.Request("GET", "http://test/")
EVERYTHING: tuple[Again, ...] = ("always", "broken", "unsent")


def answer(status: int, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers=named, request=REQUEST)


@pytest.mark.parametrize(
    ("outcome", "allowed"),
    [
        (answer(200), ()),
        (answer(400), ()),
        (answer(404), ()),
        (answer(422), ()),
        (answer(500), ()),
        (answer(429), EVERYTHING),
        (answer(503), EVERYTHING),
        (answer(502), ("always",)),
        (answer(504), ("always",)),
        (httpx.ConnectError("refused"), EVERYTHING),
        (httpx.ConnectTimeout("slow"), EVERYTHING),
        (httpx.PoolTimeout("busy"), EVERYTHING),
        (httpx.ReadError("reset"), ("always", "broken")),
        (httpx.RemoteProtocolError("left"), ("always", "broken")),
        (httpx.ReadTimeout("slow"), ("always",)),
        (httpx.WriteTimeout("slow"), ("always",)),
        (httpx.UnsupportedProtocol("ftp"), ()),
    ],
    ids=lambda value: str(getattr(value, "status_code", None) or type(value).__name__),
)
def test_what_is_sent_again(outcome: httpx.Response | Exception, allowed: tuple[Again]) -> None:
    for again in EVERYTHING:
        assert (Retries().pause(again, 1, outcome) is not None) == (again in allowed)


def test_pauses_grow_up_to_a_bound_and_vary() -> None:
    retries = Retries(attempts=20, first=0.1, longest=1.0)
    for attempt in range(1, 19):
        whole = min(1.0, 0.1 * 2 ** (attempt - 1))
        pauses = {retries.pause("always", attempt, answer(503)) for _ in range(20)}
        assert len(pauses) > 1
        assert all(pause is not None and whole / 2 <= pause <= whole for pause in pauses)


def test_attempts_end() -> None:
    assert Retries(attempts=3).pause("always", 2, answer(503)) is not None
    assert Retries(attempts=3).pause("always", 3, answer(503)) is None
    assert Retries(attempts=1).pause("always", 1, answer(503)) is None


def test_the_server_may_ask_for_patience_within_reason() -> None:
    retries = Retries(longest=5.0)
    assert retries.pause("always", 1, answer(429, retry_after="2")) == 2.0
    assert retries.pause("always", 1, answer(429, retry_after="60")) is None
    odd = retries.pause("always", 1, answer(429, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"))
    assert odd is not None
    assert odd <= 0.1
