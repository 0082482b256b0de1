"""The dashboard's arithmetic, run where it runs: in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome

from tests.service.dashboard.page import Page
from tests.threaded import Threaded


@pytest.fixture(scope="module")
def page(browser: Chrome, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with Threaded(tmp_path_factory.mktemp("modules")) as server:
        yield Page(browser, server.url).open()


def test_a_prior_that_stays_off_is_said_with_its_reason(page: Page) -> None:
    def notice(state: str) -> str | None:
        prior = {"state": state, "reason": "loss 2 is worse than 1 of version 3", "since": 0.0}
        insights = json.dumps({"now": 7200.0, "prior": prior})
        told = page.module("models.js", f"m.priorNotice({insights})?.textContent ?? null")
        assert told is None or isinstance(told, str)
        return told

    refused = notice("refused")
    assert refused is not None
    assert refused.startswith("New models stay off since ")
    assert refused.endswith("2\u00a0h ago. Worse than model 3 on the same items.")
    assert (notice("failing") or "").startswith("Training fails since ")
    assert (notice("unused") or "").startswith("The active model is not used since ")
    assert (notice("live"), notice("untrained")) == (None, None)


def test_features_alone_are_no_baseline_before_anything_was_learned_of_them(page: Page) -> None:
    arrival = {"ranks": [1], "holds": True, "holds_by_features": False, "holds_by_clicks": False}
    for model, by_features in ((0, None), (1, 0)):
        known = json.dumps({"arrivals": [arrival], "k": 10, "model": model})
        counts = page.module("arrivals.js", f"m.arrivalCounts({known})")
        assert (counts["holds"], counts["byFeatures"], counts["byClicks"]) == (1, by_features, 0)


def test_numbers_are_written_for_people(page: Page) -> None:
    written = {
        "count(12345)": "12,345",
        "count(1234567)": "1.2M",
        "percent(0.1234)": "12\u00a0%",
        "percent(0.00004)": "0.004\u00a0%",
        "percent(null)": "–",
        "duration(3.14)": "3.1\u00a0s",
        "duration(86400)": "24\u00a0h",
        "milliseconds(0.61)": "0.6\u00a0ms",
        "counted(1, 'item')": "1 item",
        "rate(0.0166666)": "0.017",
        "rate(0)": "0",
        "change(0.9993, 1)": "−0.07\u00a0%",
        "change(2, 2)": "0\u00a0%",
        "change(2, null)": "–",
        "half(0, 'were shown')": "Half were shown within 1\u00a0s.",
        "half(null, 'were shown')": "Fewer than half were shown so far.",
        "ratio(1, 0)": None,
        "sentence('it went live')": "It went live.",
        "bytes(0)": "0\u00a0B",
        "bytes(1234567)": "1.2\u00a0MB",
        "bytes(null)": "–",
    }
    for call, text in written.items():
        assert page.module("format.js", f"m.{call}") == text, call
    assert page.module("scale.js", "[0, 0.7, 3, 21, 1000].map(m.roundUp)") == [1, 0.8, 4, 40, 1000]
    steps = "m.path([[0, 1], [2, 3], [4, null], [6, 5]], true)"
    assert page.module("scale.js", steps) == "M0.0 1.0L2.0 1.0 L2.0 3.0M6.0 5.0"


def test_the_last_hour_has_no_holes_and_no_bucket_that_has_just_begun(page: Page) -> None:
    def hour(now: float, *starts: float, rankings: int = 7) -> list[dict[str, float]]:
        buckets = [{"start": start, "rankings": rankings} for start in starts]
        told = {"now": now, "buckets": buckets, "bucket_seconds": 60, "hours": 1}
        found: list[dict[str, float]] = page.module("buckets.js", f"m.filled({json.dumps(told)})")
        return found

    filled = hour(6030, 5820, 5940)
    assert [m["start"] for m in filled] == [5820, 5880, 5940, 6000]
    assert [m["rankings"] for m in filled] == [7, 0, 7, 0]
    assert [m["seconds"] for m in filled] == [60, 60, 60, 30]
    assert [m["start"] for m in hour(6005, 5940)] == [5940]
    assert [m["start"] for m in hour(6005)] == [6000]  # the only one there is
    assert len(hour(7230, *range(0, 7200, 60))) == 60
    assert [m["start"] for m in hour(6030, 5820, rankings=0)] == [6000]  # only errors before


def test_models_that_went_live_and_starts_are_marked(page: Page) -> None:
    models = [
        {"version": 1, "created": 10.0, "activated": True},
        {"version": 2, "created": 70.0, "activated": False},
        {"version": 3, "created": 100.0, "activated": True},
    ]
    buckets = [
        {"start": 60.0, "seconds": 60.0, "starts": 1},
        {"start": 120.0, "seconds": 60.0, "starts": 0},
    ]
    told = f"m.events({json.dumps({'models': models})}, {json.dumps(buckets)})"
    marks = page.module("buckets.js", told)
    assert marks == [{"x": 60, "name": "start"}, {"x": 100, "name": "model 3"}]


def test_servers_that_share_a_store_are_listed(page: Page) -> None:
    server = {
        "name": "a-1", "version": "1.0", "started": 0.0, "model": 2, "jobs": ["train"],
        "lists": 5, "events": 3, "from_memory": 3, "from_store": 1, "stale": 0,
        "clock_lag": 0.0, "store_ms": 1.5, "seen_seconds": 2.0, "answers": True,
    }  # fmt: skip
    other = server | {"name": "b-1", "model": 3, "answers": False, "seen_seconds": 60.0}
    told = json.dumps({"insights": {"servers": [server, other], "now": 7200.0}})
    script = f"m.fleet({told}).map((part) => part.textContent)"
    note, listed = page.module("fleet.js", script)
    assert note.startswith("2 servers on one store. They rank with different models")
    assert "1 server silent for 10\u00a0s." in note
    assert "a-1answers2\u00a0h1.02train5375\u00a0%01.5\u00a0ms2\u00a0s ago" in listed


def test_new_items_are_told_from_old_ones_when_there_are_old_ones(page: Page) -> None:
    def kept(first: float | None) -> list[float]:
        known = json.dumps({"first_item": first, "new_seconds": 90})
        minutes = json.dumps([{"start": start} for start in (0, 60, 120, 180)])
        found = page.module("buckets.js", f"m.settled({known}, {minutes})")
        return [minute["start"] for minute in found]

    assert kept(30.0) == [120, 180]
    assert kept(31.0) == [180]
    assert kept(95.0) == []
    assert kept(None) == [0, 60, 120, 180]


def test_the_share_of_clicks_given_up_needs_a_click(page: Page) -> None:
    def share(*clicks: int) -> float | None:
        minutes = json.dumps([{"clicks": one, "exploration_cost": 1} for one in clicks])
        found: float | None = page.module("buckets.js", f"m.lostShare({minutes})")
        return found

    assert share(0, 6) == 0.25
    assert share(0) is None


@pytest.mark.parametrize(
    ("relevance", "widths", "arrows"),
    [(0.4, [0.4, 0.5], 0), (0.8, [0.8, 0.2], 1), (1.57, [1, 0], 1)],
)
def test_the_bonus_stands_on_the_relevance_and_a_score_beyond_the_axis_is_an_arrow(
    page: Page, relevance: float, widths: list[float], arrows: int
) -> None:
    drawn = (
        "m.density({prior: [[0, 5], [1, 0]], posterior: [[0.1, 1], [0.4, 3]], "
        "interval: [0.1, 0.7], "
        f"relevance: {relevance}, bonus: 0.5, end: 1, label: ''}})"
    )
    bars = f"[...{drawn}.querySelectorAll('rect')].map((bar) => Number(bar.getAttribute('width')))"
    assert page.module("charts.js", bars) == pytest.approx([398 * one for one in widths])
    assert page.module("charts.js", f"{drawn}.querySelectorAll('.beyond').length") == arrows


def test_a_query_says_how_much_came_from_others(page: Page) -> None:
    item = {"id": "a", "rank": 1, "shown": 0, "clicks": 0, "exposure": 0.0, "entered": 0.0}
    item |= {"relevance": 0.2, "interval": [0.1, 0.3], "prior": 0.15, "bonus": 0.1, "score": 0.3}
    item |= {"density": {"prior": [[0, 5], [1, 0]], "posterior": [[0, 5], [1, 0]]}}
    state = {"model": 1, "k": 9, "withdrawn": [], "most_buried": []}

    def drawn(*others: dict[str, object]) -> list[str]:
        """Return the head's last cell, each item's, and what is read of the first."""
        items = [item | other for other in others]
        told = json.dumps({"state": state | {"items": items}, "now": 9.0})
        said: list[str] = page.module(
            "query.js",
            "(() => { const root = document.createElement('main'); "
            f"m.queryView(root, 'tea').render({told}); "
            "return [...[...root.querySelectorAll('tr')].map((row) => row.lastChild.textContent), "
            "root.querySelector('svg').getAttribute('aria-label')]; })()",
        )
        return said

    alone = "relevance 0.20, 90 % interval 0.10 to 0.30, prior 0.15, bonus 0.100"
    assert drawn({}) == ["Here for", "9\u00a0s", alone]
    heard = drawn(
        {"elsewhere": 0.054, "other_queries": 38},
        {"elsewhere": -0.03, "other_queries": 1},
        {"elsewhere": 0.0, "other_queries": 0},
    )
    assert heard[:4] == ["By other queries", "+0.05 from 38", "−0.03 from 1", ""]
    assert heard[4] == alone.replace(", bonus", ", +0.05 from 38 other queries, bonus")


def test_features_are_trusted_or_ignored_in_plain_words(page: Page) -> None:
    shares = {"price": (1, 0.6), "bert": (256, 0.3), "2": (1, 0.09), "age": (1, 0.01)}
    features = [
        {"name": name, "columns": columns, "share": share}
        for name, (columns, share) in shares.items()
    ]

    def rows(listed: list[dict[str, object]]) -> list[str]:
        told = json.dumps({"insights": {"features": listed}})
        cells = "[...row.cells].map((cell) => cell.textContent).join('|')"
        drawn = f"m.features({told})[1]"
        texts: list[str] = page.module(
            "panels.js", f"[...{drawn}.querySelectorAll('tbody tr')].map((row) => {cells})"
        )
        return texts

    assert rows(features) == [
        "price||60\u00a0%|trusted",
        "bert, 256 columns||30\u00a0%|trusted",
        "feature 2||9\u00a0%|a little",
        "age||1\u00a0%|ignored",
    ]
    assert rows([]) == []
    assert len(rows(features * 4)) == 12
