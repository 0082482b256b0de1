from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ebrank.service import api
from ebrank.service.api import EventIn, Malformed, read_events

GOOD = {"event_id": "e", "ranking_id": "r", "item": "i", "type": "click"}


def test_a_bad_event_does_not_spoil_its_batch() -> None:
    events: list[Any] = [GOOD, 7, GOOD | {"type": 1}, GOOD | {"why": "?"}, {"event_id": "x"}, GOOD]
    read = read_events(json.dumps({"events": events}).encode())
    kinds = [type(event) for event in read]
    assert kinds == [EventIn, Malformed, Malformed, Malformed, Malformed, EventIn]
    assert "unknown field `why`" in read[3].reason  # type: ignore[union-attr]
    assert read_events(json.dumps({"events": [GOOD]}).encode()) == [EventIn("e", "r", "i", "click")]


@pytest.mark.parametrize("time", [12.5, 7, "2024-05-01T10:00:00Z", None])
def test_times_are_seconds_or_dates(time: object) -> None:
    [event] = read_events(json.dumps({"events": [GOOD | {"time": time}]}).encode())
    assert isinstance(event, EventIn)


@pytest.mark.parametrize("time", ["2024-05-01T10:00:00", "noon", True, []])
def test_other_times_are_malformed(time: object) -> None:
    [event] = read_events(json.dumps({"events": [GOOD | {"time": time}]}).encode())
    assert isinstance(event, Malformed)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"events": 3}', b'{"event": []}'])
def test_invalid_batches_are_rejected_as_a_whole(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_events(body)


def test_a_batch_has_a_limit() -> None:
    body = json.dumps({"events": [GOOD] * (api.MOST_EVENTS + 1)}).encode()
    with pytest.raises(msgspec.ValidationError, match=f"length <= {api.MOST_EVENTS}"):
        read_events(body)


@pytest.mark.parametrize("name", ["", "a:b", "a\n", "a b", "a" * 65])
def test_labels_can_be_part_of_others(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(name, api.Label)


@pytest.mark.parametrize(
    "context",
    [{str(at): "x" for at in range(9)}, {"": "x"}, {"x": ""}, {"x": "y" * 257}, {"x": 1}, ["x"]],
)
def test_odd_contexts_are_refused(context: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"query": "q", "context": context}, api.RankRequest)
