"""Sums of minutes, and the quantiles they give."""

from __future__ import annotations

import numpy as np
import pytest

from ebrank.service.insight.activity import MinuteBook, quantile


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_quantiles_are_right_within_a_class(share: float) -> None:
    book, rng = MinuteBook(60.0), np.random.default_rng(0)
    seconds = rng.lognormal(-6, 0.5, size=2000)
    for one in seconds:
        book.latency(0.0, float(one))
    [minute] = book.taken()
    told = quantile(minute.values, share)
    assert told == pytest.approx(np.quantile(seconds, share) * 1000, rel=0.15)


def test_extremes_are_kept_in_the_outer_classes() -> None:
    book = MinuteBook(60.0)
    book.latency(0.0, 0.0)
    book.latency(0.0, 1e9)
    [minute] = book.taken()
    assert quantile(minute.values, 0.5) == pytest.approx(0.05)
    assert (quantile(minute.values, 1.0) or 0.0) > 60_000
    assert quantile({}, 0.5) is None


def test_sums_go_to_their_minute_and_come_back_if_refused() -> None:
    book = MinuteBook(60.0)
    book.add(59.9, clicks=1)
    book.add(60.0, clicks=2)
    taken = book.taken()
    assert [(one.start, one.values) for one in taken] == [
        (0.0, {"clicks": 1}),
        (60.0, {"clicks": 2}),
    ]
    assert book.taken() == []
    book.put_back(taken)
    book.add(61.0, clicks=5)
    assert [one.values["clicks"] for one in book.taken()] == [1, 7]
