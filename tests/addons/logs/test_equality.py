"""Aggregated logs are, to the bit, what the service would have counted from the same events."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebrank.addons.logs import aggregate
from ebrank.addons.logs.sql import Counting
from ebrank.errors import DataError
from tests.addons.logs.replaying import (
    BEHAVIORS,
    Counts,
    Event,
    Form,
    Served,
    confirmed,
    file_counts,
    logs,
    served,
    served_logs,
    write,
)

COUNTING = Counting(BEHAVIORS)
FORMS: tuple[Form, ...] = ("parquet", "csv", "ndjson")


def counts(expected: Counts, log: list[Path], folder: Path, **options: object) -> None:
    """Assert that a log aggregates to these counts, or is refused where nothing counts."""
    out = folder / "evidence.parquet"
    if not expected:
        with pytest.raises(DataError, match="no event counts"):
            aggregate(log, out, behaviors=BEHAVIORS, threads=1, **options)  # type: ignore[arg-type]
        return
    report = aggregate(log, out, behaviors=BEHAVIORS, threads=1, **options)  # type: ignore[arg-type]
    assert file_counts(out) == expected
    assert report.impressions == sum(
        count for (_, _, outcome, _), (count, _) in expected.items() if outcome == 0
    )


@pytest.mark.slow
@settings(max_examples=30)
@given(events=logs(), form=st.sampled_from(FORMS), seed=st.integers(0, 99))
def test_confirmed_impressions(events: list[Event], form: Form, seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = confirmed(events)
        shuffled = events + events[: len(events) // 3]  # some of them sent again
        random.Random(seed).shuffle(shuffled)
        half = max(len(shuffled) // 2, 1)
        parts = [part for part in (shuffled[:half], shuffled[half:]) if part]
        log = [write(folder / f"{at}.{form}", part) for at, part in enumerate(parts)]
        counts(expected, log, folder)


@pytest.mark.slow
@settings(max_examples=25)
@given(log=served_logs(), form=st.sampled_from(("parquet", "ndjson")))
def test_served_impressions(log: tuple[list[Served], list[Event]], form: Form) -> None:
    lists, events = log
    some = any(
        event.type == COUNTING.impression or BEHAVIORS.of_event(event.type, event.value) is not None
        for event in events
    )
    expected = served(lists, events) if some else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [write(folder / f"events.{form}", events)]
        twice = [write(folder / f"lists-{at}.{form}", lists) for at in range(2)]
        counts(expected, files, folder, lists=twice, impressions="served")


@pytest.mark.parametrize("form", FORMS)
def test_late_upgrades_and_clicks_without_impressions(form: Form, tmp_path: Path) -> None:
    events = [
        Event("r1", "tea", "a", "purchase", 1, 5.0),  # better than the click that comes later
        Event("r1", "tea", "a", "click", 1, 6.0),
        Event("r1", "tea", "b", "click", 2, 7.0),  # nobody saw it, but it was clicked
        Event("r1", "tea", "b", "click", 2, 8.0),
        Event("r1", "tea", "C", "hover", 3, 9.0),  # counts nothing, and shows nothing
        Event("r2", "tea", "a", "impression", 12, 9.0),
        Event("r3", "tea", "b", "hide", 1, 9.5),  # takes away what came before and comes after
        Event("r3", "tea", "b", "purchase", 1, 9.75),
        Event("r3", "tea", "a", "dwell", 2, 9.0, 29.0),  # not long enough, so it is not shown
    ]
    counts(confirmed(events), [write(tmp_path / f"log.{form}", events)], tmp_path)
    assert file_counts(tmp_path / "evidence.parquet") == {
        ("tea", "a", 0, 0): (1, 5.0),
        ("tea", "a", 0, 10): (1, 5.0),
        ("tea", "a", 3, 0): (1, 5.0),
        ("tea", "b", 0, 0): (1, 7.0),
        ("tea", "b", 0, 1): (1, 7.0),
        ("tea", "b", 1, 1): (1, 7.0),
    }
