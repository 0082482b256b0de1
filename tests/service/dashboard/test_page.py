"""The dashboard in a real browser, served by a real server that real (simulated) users visit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pytest
from selenium.webdriver import Chrome, Keys

import ebrank
from ebrank.addons import demo
from ebrank.service.api import Insights
from ebrank.service.learning import training
from tests.browser import COLORS, violations
from tests.service.dashboard.page import Page
from tests.threaded import Threaded, trained_here

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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Threaded]:
    """A server whose users have searched, clicked and seen items arrive, with a trained prior."""
    with (
        pytest.MonkeyPatch.context() as patch,
        Threaded(tmp_path_factory.mktemp("dashboard"), CONFIG) as running,
    ):
        patch.setattr(training, "in_process", trained_here)
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
def page(browser: Chrome, server: Threaded) -> Iterator[Page]:
    opened = Page(browser, server.url)
    opened.emulate()
    yield opened
    opened.emulate()


def insights(server: Threaded) -> Insights:
    with ebrank.Client(server.url) as client:
        return client.insights()


# --- the overview ------------------------------------------------------------------------------


def test_every_panel_is_filled_from_what_the_server_knows(page: Page, server: Threaded) -> None:
    page.open()
    charts = (
        *("newest", "waiting", "cost", "calibration"),
        *("clicks", "examination", "traffic", "latency", "feedback"),
    )
    for panel in charts:
        page.wait(partial(page.count, f"#panel-{panel} svg"), f"the chart of {panel}")
        assert page.attributes(f"#panel-{panel} svg", "aria-label")[0], panel
        assert page.count(f"#panel-{panel} svg path.line, #panel-{panel} svg circle"), panel
    known = insights(server)
    assert f"{known.totals.rankings} rankings" in page.text("#panel-traffic .note")
    assert f"{known.totals.items} items" in page.text("#panel-traffic .note")
    assert page.count("#panel-buried tbody tr") == min(10, len(known.buried)) > 0
    together = list(dict.fromkeys(item.query for item in known.buried[:10]))
    assert page.texts("#panel-buried tbody a") == together
    assert page.count("#panel-models tbody tr") == len({0, *(m.version for m in known.models)})
    assert len(known.models) > 0
    assert page.count("#panel-features tbody tr") == min(12, len(known.features)) > 0
    trusted = page.text("#panel-features tbody tr").split()
    assert trusted[:2] == ["feature", known.features[0].name]  # items of the demo have no names
    assert float(trusted[2]) == pytest.approx(100 * known.features[0].share, abs=0.51)
    assert trusted[-1] == "trusted"
    assert page.count("#panel-top tbody tr") == min(8, len(known.top_queries)) > 0
    assert page.count("#panel-found tbody tr") == min(8, len(known.found))
    assert f"{known.coverage.candidates} candidates" in page.text("#panel-clicks .note")
    assert known.system.version in page.text("#panel-server")
    assert known.system.policy in page.text("#panel-server")
    assert "of the clicks one could expect" in page.text(".lead")
    assert "NaN" not in page.text("main")
    assert "undefined" not in page.text("main")
    assert not page.count("#panel-experiment, #panel-fleet")
    assert not page.shows("[data-action=token]")  # none is needed on loopback
    assert page.complaints() == []


@pytest.mark.parametrize("address", ["", "#/queries", "#/queries/{query}", "#/nowhere"])
def test_everybody_can_use_it(page: Page, server: Threaded, address: str) -> None:
    page.open(address.format(query=insights(server).buried[0].query))
    assert violations(page.browser) == []
    page.emulate(scheme="dark")
    assert violations(page.browser, COLORS) == []


def test_new_items_are_compared_where_there_are_old_ones(page: Page) -> None:
    page.open()
    lines, fair = page.module(
        "overview.js",
        """(async () => {
          const root = document.querySelector("main");
          const known = { ...(await (await fetch("v1/insights")).json()), first_item: 0 };
          const view = m.overview(root, 1);
          view.render(await view.load(async () => known));
          const count = (what) => root.querySelectorAll(`#panel-new ${what}`).length;
          return [count("path.line"), count(".reference")];
        })()""",
    )
    assert (lines, fair) == (2, 1)


def test_numbers_of_the_first_screen_are_equal_wherever_they_stand(page: Page) -> None:
    """One answer of the server, held still: sentence, tiles, panels and legends tell the same."""
    page.open()
    known = page.run(
        "window.real ??= window.fetch; return (async () => {"
        " const told = await (await window.real('v1/insights')).json();"
        " window.fetch = async () => new Response(JSON.stringify(told)); return told })()"
    )
    total = known["totals"]["rankings"]
    page.wait(lambda: f"{total:,} ranking" in page.text("#panel-traffic .note"), "the answer")
    tiles, lead = page.texts(".tile"), page.text(".lead")
    found, lost = known["exploration"]["found"], page.text(".tile:nth-child(3) .figure")
    assert f"exploration found {found} item" in lead
    assert f"{found} item" in tiles[2]
    assert f"{found} item" in page.text("#panel-cost .note")
    assert f"cost {lost} of the clicks" in lead

    def written(selector: str) -> list[str]:
        """Return the texts of a chart, which has no `innerText`."""
        script = f"[...document.querySelectorAll('{selector}')].map((one) => one.textContent)"
        return [text.replace("\u00a0", " ") for text in page.run(f"return {script}")]

    legend = written("#panel-traffic .legend .value")[0]
    assert page.text(".tile:nth-child(4) .figure") == legend
    assert "the last hour" in tiles[2]
    share = known["exploration"]["cost"]
    share /= share + sum(bucket["clicks"] for bucket in known["buckets"])
    assert float(lost.removesuffix(" %")) == pytest.approx(100 * share, abs=0.51)
    listed = sum(min(one["ranks"]) <= known["k"] for one in known["arrivals"])
    served = page.attributes("#panel-newest svg", "aria-label")[0]
    assert served.startswith(f"As served: {listed} tried")
    captions = written("#panel-newest .legend")
    for field, caption in zip(
        ("holds", "holds_by_features", "holds_by_clicks"), captions, strict=True
    ):
        holds = sum(one[field] for one in known["arrivals"])
        assert caption.endswith(f" {holds} hold it")
        assert f"{holds}" in lead
    assert f"{known['totals']['found']} item" in page.text("#panel-found .note")


def test_an_imported_store_shows_what_came_in(page: Page) -> None:
    page.open()
    lead, note, *names = page.module(
        "overview.js",
        """(async () => {
          const root = document.createElement("main");
          const insights = await (await fetch("v1/insights")).json();
          insights.totals = { ...insights.totals, items: 0, rankings: 0 };
          const queries = [{ query: "japan", items: 1 }, { query: "tea", items: 2 }];
          const view = m.overview(root, 1);
          const get = async (path) => (/queries/.test(path) ? { queries } : insights);
          view.render(await view.load(get));
          const shown = ".lead, .start .note, .start td.name a";
          return [...root.querySelectorAll(shown)].map((one) => one.textContent);
        })()""",
    )
    assert "filled from elsewhere" in lead
    assert note.startswith("2 queries with 3 items")
    assert names == ["japan", "tea"]


def test_figures_of_a_day_and_of_a_week(page: Page) -> None:
    page.open()
    for place, name, hours in ((2, "24 h", 24), (3, "7 d", 168)):
        page.click(f".ranges a:nth-child({place})")
        page.wait_for_text(".ranges [aria-current]", name)
        page.wait(lambda: page.count("#panel-traffic path.line"), "the panels")
        asked = page.run("return performance.getEntriesByType('resource').map((one) => one.name)")
        assert any(one.endswith(f"v1/insights?hours={hours}") for one in asked)
    assert page.complaints() == []


def test_a_table_stands_still_while_somebody_points_at_it(page: Page, server: Threaded) -> None:
    def stands_still() -> bool:
        """Return whether it does while lists are served; a page that moves loses the pointer."""
        page.point_at("#panel-top table")
        before = page.text("#panel-top table")  # from now on: until then it follows
        with ebrank.Client(server.url) as client:
            for _ in range(3):
                client.rank(insights(server).top_queries[0].query)
            total = client.insights().totals.rankings
        page.wait(lambda: f"{total} rankings" in page.text("#panel-traffic .note"), "the rankings")
        return page.text("#panel-top table") == before

    page.open()
    page.wait(stands_still, "a table that stands still")
    before = page.text("#panel-top table")
    page.point_at("h1")
    page.wait(lambda: page.text("#panel-top table") != before, "the table to follow")


def test_a_page_nobody_sees_asks_nothing(page: Page, server: Threaded) -> None:
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
    page.wait_for_status("connected")


# --- the view of a query -----------------------------------------------------------------------


def test_a_buried_item_leads_to_its_query(page: Page, server: Threaded) -> None:
    page.open()
    name = page.text("#panel-buried tbody a")
    page.click("#panel-buried tbody a")
    page.wait(lambda: page.count("table.items tbody tr"), "the items")
    assert page.text("h1") == name
    assert page.focused("localName") == "h1"
    with ebrank.Client(server.url) as client:
        state = client.query(name)
    served = sorted(state.items, key=lambda item: item.rank or 0)
    ranks = page.texts("table.items tr:not(.cut) td:first-child")
    assert ranks == [str(item.rank) for item in served]
    assert page.texts("td.name") == [item.id for item in served]
    assert state.k == 5
    above = page.run("return [...document.querySelector('tr.cut').parentNode.children].length")
    assert above == len(served) + 1
    assert page.text("tr.cut") == "A list of 5 ends here"
    assert page.count("tr:has(+ tr.cut)") == 1
    assert page.text("tr:has(+ tr.cut) td") == "5"
    assert page.count("svg.density .bonus") == len(served)
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


# --- all queries -------------------------------------------------------------------------------


def test_all_queries_are_listed_and_found_by_a_part_of_their_name(
    page: Page, server: Threaded
) -> None:
    with ebrank.Client(server.url) as client:
        names = [one.query for one in client.queries().queries]
    page.open("#/queries")
    assert page.texts("td.name a") == sorted(names[:50], key=by_number)
    part = names[-1][2:]  # "ery 33"
    like = [name for name in names if part in name]
    page.enter("#search", part)
    offered = "return [...document.querySelectorAll('datalist option')].map((one) => one.value)"
    page.wait(lambda: page.run(offered) == like[:8], "names to choose from")
    page.enter("#search", Keys.BACKSPACE, Keys.ENTER)
    shorter = part[:-1].strip()
    page.wait(lambda: page.text(".lead strong") == shorter, "a list")
    like = [name for name in names if shorter in name]
    assert page.texts("td.name a") == sorted(like, key=by_number)
    page.enter("#search", names[0].upper(), Keys.ENTER)
    page.wait(lambda: page.text("h1") == names[0], "the query")
    page.open("#/queries?find=nobody")
    assert "None does." in page.text("main")
    assert page.complaints() == []


def by_number(name: str) -> int:
    return int(name.split()[-1])


def test_many_queries_come_in_pages(page: Page) -> None:
    names, following = page.module(
        "queries.js",
        """(async () => {
          const root = document.createElement("main");
          const view = m.queriesView(root, new URLSearchParams("find=tea&after=tea%202"));
          const asked = [];
          const page = { queries: [{ query: "tea 3", items: 2 }], next: "tea 3" };
          view.render(await view.load(async (path) => { asked.push(path); return page; }));
          return [asked, [...root.querySelectorAll(".more a")].map((a) => a.getAttribute("href"))];
        })()""",
    )
    assert names == ["v1/queries?contains=tea&cursor=tea+2&limit=50"]
    assert following == ["#/queries?find=tea", "#/queries?find=tea&after=tea+3"]


def test_an_address_that_means_nothing_says_so(page: Page) -> None:
    page.open("#/nowhere")
    links = ["#/", "#/", "#/queries"]
    for address in ("#/nowhere", "#/queriesx", "#/25h"):
        page.run(f"location.hash = '{address}'")
        page.wait(lambda: page.attributes("main a", "href") == links, "the way out")
        assert page.text("h1") == "No such page"
        page.run("location.hash = '#/queries'")
        page.wait(lambda: page.text("h1") != "No such page", "another page")


# --- how it looks ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "width"), [("", 320), ("", 390), ("#/queries", 320), ("#/queries/{query}", 320)]
)
def test_a_phone_needs_no_sideways_scrolling(
    page: Page, server: Threaded, address: str, width: int
) -> None:
    page.emulate(width=width)
    page.open(address.format(query=insights(server).buried[0].query.replace(" ", "%20")))
    assert page.run("return innerWidth") == width
    assert page.run("return document.documentElement.scrollWidth") <= width
    wide = page.run(
        "return [...document.querySelectorAll('body *')]"
        f".filter((e) => e.getBoundingClientRect().right > {width}.5).map((e) => e.outerHTML)"
    )
    assert wide == []


# --- by keyboard -------------------------------------------------------------------------------


def test_everything_is_reached_by_keyboard(page: Page, server: Threaded) -> None:
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
