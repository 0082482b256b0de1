"""Rates: exactly as many requests as the bucket allows, for each caller by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.service.http import admission
from ebrank.service.http.admission import Limiter


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_then_the_rate() -> None:
    clock = Clock()
    limiter = Limiter(rate=4.0, burst=3, clock=clock)
    assert [limiter.wait("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert limiter.wait("a") == pytest.approx(0.25)
    clock.now += 0.25
    assert limiter.wait("a") == 0.0
    assert limiter.wait("a") == pytest.approx(0.25)


def test_callers_do_not_share() -> None:
    limiter = Limiter(rate=1.0, burst=1, clock=Clock())
    assert limiter.wait("a") == 0.0
    assert limiter.wait("b") == 0.0
    assert limiter.wait("a") > 0


def test_no_rate_is_no_limit() -> None:
    limiter = Limiter(rate=0.0, burst=1)
    assert [limiter.wait("a") for _ in range(1000)] == [0.0] * 1000


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
