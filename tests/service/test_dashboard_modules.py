"""The dashboard's arithmetic, run where it runs: in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from scipy.stats import beta
from selenium.webdriver import Chrome

from tests.service.page import Page
from tests.service.running import Running


@pytest.fixture(scope="module")
def page(browser: Chrome, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with Running(tmp_path_factory.mktemp("modules")) as server:
        yield Page(browser, server.url).open()


def test_the_density_is_that_of_the_beta_distribution(page: Page) -> None:
    for x, a, b in [(0.1, 1.0, 5.0), (0.5, 0.3, 5.0), (0.33, 40.5, 71.2), (0.9, 3.0, 0.7)]:
        drawn = page.module("beta.js", f"m.density({x}, {a}, {b})")
        assert drawn == pytest.approx(beta(a, b).pdf(x), rel=1e-9)
    item = "{clicks: 3, exposure: 2.5, alpha: 1, beta: 5}"
    assert page.module("beta.js", f"m.posterior({item})") == [4, 5]


def test_numbers_are_written_for_people(page: Page) -> None:
    written = {
        "count(12345)": "12,345",
        "count(1234567)": "1.2M",
        "count(NaN)": "–",
        "percent(0.1234)": "12\u00a0%",
        "percent(0.0123)": "1.2\u00a0%",
        "percent(0.0004)": "0.04\u00a0%",
        "percent(null)": "–",
        "duration(3.14)": "3.1\u00a0s",
        "duration(300)": "5\u00a0min",
        "duration(86400)": "24\u00a0h",
        "milliseconds(0.61)": "0.6\u00a0ms",
        "counted(1, 'item')": "1 item",
        "ratio(1, 0)": None,
        "sentence('it went live')": "It went live.",
    }
    for call, text in written.items():
        assert page.module("format.js", f"m.{call}") == text, call
    assert page.module("scale.js", "[0, 0.7, 3, 21, 1000].map(m.roundUp)") == [1, 0.8, 4, 40, 1000]
    steps = "m.path([[0, 1], [2, 3], [4, null], [6, 5]], true)"
    assert page.module("scale.js", steps) == "M0.0 1.0L2.0 1.0 L2.0 3.0M6.0 5.0"


def test_the_last_hour_has_no_holes_and_no_minute_that_has_just_begun(page: Page) -> None:
    def hour(now: float, *starts: float) -> list[dict[str, float]]:
        minutes = [{"start": start, "rankings": 7} for start in starts]
        told = json.dumps({"now": now, "minutes": minutes})
        found: list[dict[str, float]] = page.module("minutes.js", f"m.lastHour({told})")
        return found

    filled = hour(6030, 5820, 5940)
    assert [m["start"] for m in filled] == [5820, 5880, 5940, 6000]
    assert [m["rankings"] for m in filled] == [7, 0, 7, 0]
    assert [m["seconds"] for m in filled] == [60, 60, 60, 30]
    assert [m["start"] for m in hour(6005, 5940)] == [5940]
    assert [m["start"] for m in hour(6005)] == [6000]  # the only one there is
    assert len(hour(7230, *range(0, 7200, 60))) == 60
