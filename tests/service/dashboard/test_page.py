"""The dashboard in a real browser, served by a real server that real (simulated) users visit."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import numpy as np
import pytest
from selenium.webdriver import Chrome, Keys

import ebrank
from ebrank.report.figures.palette import LOOKS
from ebrank.service.api import Insights
from ebrank.service.ops import demo
from tests.accessibility import violations
from tests.service.dashboard.page import Page
from tests.service.running import Running

CONFIG = """
[ranking]
k = 5
policy = "ebrank:epsilon=20,estimator=exposure"

[features]
scaling = "none"

[insights]
new_seconds = 5.0
refresh_seconds = 0.5
"""
SESSIONS = 400


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose users have searched, clicked and seen items arrive, with a trained prior."""
    with Running(tmp_path_factory.mktemp("dashboard"), CONFIG) as running:
        world = demo_world()
        with ebrank.Client(running.url) as client:
            demo.fill(client, world)
            for first in range(0, SESSIONS, demo.SESSIONS_PER_STEP):
                demo.step(client, world, first)
            client.train()
            deadline = time.monotonic() + 120
            while not (trained := client.models()).models and time.monotonic() < deadline:
                time.sleep(0.1)
            assert trained.models, trained.training.outcome
            client.activate(1)  # whether it won or not: priors should differ
        yield running


def demo_world() -> demo.DemoWorld:
    return demo.DemoWorld(ebrank.load("mq2007-like", scale=0.005), seed=1)


@pytest.fixture
def page(browser: Chrome, server: Running) -> Iterator[Page]:
    opened = Page(browser, server.url)
    opened.emulate()
    yield opened
    opened.emulate()


def insights(server: Running) -> Insights:
    with ebrank.Client(server.url) as client:
        return client.insights()


# --- the overview ------------------------------------------------------------------------------


def test_every_panel_is_filled_from_what_the_server_knows(page: Page, server: Running) -> None:
    page.open()
    charts = ("waiting", "cost", "calibration", "traffic", "latency")
    for panel in charts:
        assert page.attributes(f"#panel-{panel} svg", "aria-label")[0], panel
        assert page.count(f"#panel-{panel} svg path.line, #panel-{panel} svg circle"), panel
    known = insights(server)
    assert f"{known.totals.rankings} rankings" in page.text("#panel-traffic .note")
    assert f"{known.totals.items} items" in page.text("#panel-traffic .note")
    assert page.count("#panel-buried tbody tr") == min(10, len(known.buried)) > 0
    assert page.count("#panel-models tbody tr") == len({0, *(m.version for m in known.models)})
    assert len(known.models) > 0
    assert "of the clicks one could expect" in page.text(".lead")
    assert "NaN" not in page.text("main")
    assert "undefined" not in page.text("main")
    assert not page.count("#panel-shadow")
    assert not page.shows("[data-action=token]")  # none is needed on loopback
    assert page.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(page: Page, scheme: str) -> None:
    page.emulate(scheme=scheme)
    page.open()
    assert violations(page.browser) == []


def test_shares_and_costs_are_those_of_the_last_hour(page: Page, server: Running) -> None:
    page.open()
    told, lines = long_after_the_first_item(page)
    assert lines == 2
    minutes = insights(server).minutes
    new, old = sum(m.exposure_new for m in minutes), sum(m.exposure_old for m in minutes)
    clicks = sum(m.clicks for m in minutes)
    cost = sum(m.exploration_cost for m in minutes)
    values = [
        new / (new + old),
        sum(m.clicks_new for m in minutes) / clicks,
        cost / (cost + clicks),
    ]
    for text, value in zip(told, values, strict=False):
        assert float(text.removesuffix("\u00a0%")) == pytest.approx(100 * value, abs=0.51)
    assert told[3].startswith(str(insights(server).exploration.found))


def long_after_the_first_item(page: Page) -> tuple[list[str], int]:
    """Return what is told of new items where there are old ones: figures, lines of the chart."""
    figures, lines = page.module(
        "overview.js",
        """(async () => {
          const root = document.querySelector("main");
          const told = { ...(await (await fetch("v1/insights")).json()), first_item: 0 };
          const view = m.overview(root);
          view.render(await view.load(async () => told));
          const figures = [...root.querySelectorAll(".lead strong")].map((one) => one.textContent);
          return [figures, root.querySelectorAll("#panel-new path.line").length];
        })()""",
    )
    return figures, lines


def test_calibration_weighs_items_by_what_their_exposure_can_tell(server: Running) -> None:
    with ebrank.Client(server.url) as client:
        queries = [client.query(query) for query in demo_world().queries]
        bins = client.insights().calibration
    items = [item for query in queries for item in query.items if item.exposure > 0]
    items.sort(key=lambda item: item.prior)
    evidence = np.array([item.exposure + item.alpha + item.beta for item in items])
    clicks = np.array([item.clicks for item in items]) / evidence
    exposure = np.array([item.exposure for item in items]) / evidence
    for part, told in zip(np.array_split(np.arange(len(items)), 10), bins, strict=True):
        assert told.rows == len(part)
        assert told.predicted == pytest.approx(np.mean([items[i].prior for i in part]))
        assert told.observed == pytest.approx(clicks[part].sum() / exposure[part].sum())


def test_the_page_follows_what_happens(page: Page, server: Running) -> None:
    page.open()
    before = page.text("#panel-traffic .note")
    page.run("document.querySelector('main').dataset.same = 'yes'")
    with ebrank.Client(server.url) as client:
        client.rank(insights(server).buried[0].query)
    page.wait(lambda: page.text("#panel-traffic .note") != before, "one ranking more")
    assert page.run("return document.querySelector('main').dataset.same") == "yes"  # not reloaded


def test_a_page_nobody_sees_asks_nothing(page: Page, server: Running) -> None:
    def asked() -> int:
        return int(page.run("return performance.getEntriesByType('resource').length"))

    page.open()
    page.browser.minimize_window()
    assert page.run("return document.hidden")
    page.wait_for_status("paused")
    before = asked()
    time.sleep(2.5)  # seen, it would have asked again after two
    assert asked() == before
    page.browser.set_window_rect(width=1280, height=900)
    page.wait_for_status("live")


# --- the view of a query -----------------------------------------------------------------------


def test_a_buried_item_leads_to_its_query(page: Page, server: Running) -> None:
    page.open()
    name = page.text("#panel-buried tbody a")
    page.click("#panel-buried tbody a")
    page.wait(lambda: page.count("table.items tbody tr"), "the items")
    assert page.text("h1") == name
    assert page.focused("localName") == "h1"
    with ebrank.Client(server.url) as client:
        state = client.query(name)
    served = sorted(state.items, key=lambda item: item.rank or 0)
    assert page.texts("table.items td:first-child") == [str(item.rank) for item in served]
    assert page.texts("td.name") == [item.id for item in served]
    for label, item in zip(page.attributes("svg.density", "aria-label"), served, strict=True):
        assert f"relevance {item.relevance:.2f}" in label
        assert f"interval {item.interval[0]:.2f} to {item.interval[1]:.2f}" in label
    assert page.complaints() == []


def test_an_unknown_query_says_what_to_do(page: Page) -> None:
    page.open("#/queries/nobody%20asked")
    assert page.text("h1") == "nobody asked"
    assert "This query is not known. Give it items:" in page.text("main")
    assert "curl -X PUT" in page.text("pre")
    assert "queries/nobody%20asked/items" in page.text("pre")


# --- how it looks ------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_have_the_colors_of_the_report(page: Page, scheme: str) -> None:
    page.emulate(scheme=scheme)
    page.open()

    def color(name: str) -> str:
        style = "getComputedStyle(document.documentElement)"
        return str(page.run(f"return {style}.getPropertyValue('{name}')")).strip()

    for name, look in {"--ebrank": "ebrank", "--prior": "prior", "--old": "bm25"}.items():
        assert color(name) == getattr(LOOKS[look], scheme)
    dark = scheme == "dark"
    assert (_luminance(color("--page")) < 0.05) == dark
    for ink in ("--ink", "--soft", "--ebrank", "--warn"):
        assert _contrast(color(ink), color("--card")) >= 4.5, ink
    assert page.complaints() == []


def _luminance(color: str) -> float:
    parts = [int(part, 16) / 255 for part in re.findall("[0-9a-f]{2}", color)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("address", ["", "#/queries/{query}"])
def test_a_phone_needs_no_sideways_scrolling(page: Page, server: Running, address: str) -> None:
    page.emulate(width=390)
    page.open(address.format(query=insights(server).buried[0].query.replace(" ", "%20")))
    assert page.run("return innerWidth") == 390
    assert page.run("return document.documentElement.scrollWidth") <= 390
    wide = page.run(
        "return [...document.querySelectorAll('main *')]"
        ".filter((e) => e.getBoundingClientRect().right > 390.5).map((e) => e.outerHTML)"
    )
    assert wide == []


# --- by keyboard -------------------------------------------------------------------------------


def test_everything_is_reached_by_keyboard(page: Page, server: Running) -> None:
    page.open()
    assert not page.shows(".skip")
    page.press(Keys.TAB)
    assert page.focused("innerText") == "Skip to content"
    assert page.shows(".skip")
    page.press(Keys.ENTER)
    assert page.focused("localName") == "main"
    query = insights(server).buried[0].query
    page.open()
    page.press(Keys.TAB, Keys.TAB, Keys.TAB)
    assert page.focused("id") == "search"
    page.press(query, Keys.ENTER)
    page.wait(lambda: page.count("table.items tbody tr"), "the items")
    assert page.text("h1") == query
    reached = []
    for _ in range(12):
        page.press(Keys.TAB)
        reached.append(page.focused("localName"))
    assert "body" in reached  # the focus leaves the page at its end: no trap


def test_the_focus_stays_while_the_page_is_redrawn(page: Page) -> None:
    page.open()
    page.run("document.querySelector('[data-action=train]').focus()")
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    page.press(Keys.SHIFT)  # a key, so that the focus is one of the keyboard
    for _ in range(2):
        time.sleep(1.2)  # the page asks again after two seconds
        assert page.focused("dataset.action") == "train"
    assert page.run(outline) == "solid"
