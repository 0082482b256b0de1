"""What is sent again: only what does no harm twice, after pauses that grow."""

from __future__ import annotations

import httpx
import pytest

from ebrank.client.calls import Again, Retries

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
