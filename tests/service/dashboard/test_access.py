"""The dashboard when things are not as they should be: empty, hostile, forbidden, away."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, Keys

import ebrank
from ebrank.service.api import StartExperimentRequest
from tests.browser import COLORS, violations
from tests.service.dashboard.page import Page
from tests.threaded import Threaded

HOSTILE = '<img src=x onerror="window.hacked = 1">\'&amp;/..%2f ☃'

TOKENS = """
[tokens.reader]
sha256 = "{reader}"
scopes = ["rank"]

[tokens.owner]
sha256 = "{owner}"
scopes = ["rank", "feedback", "admin"]
""".format(
    reader=sha256(b"reader-secret").hexdigest(),
    owner=sha256(b"owner-secret").hexdigest(),
)


@pytest.fixture
def page(browser: Chrome, server: Threaded) -> Iterator[Page]:
    opened = Page(browser, server.url)
    opened.emulate()
    yield opened
    opened.emulate()  # other tests look through the same window


@pytest.fixture
def config() -> str:
    return ""


@pytest.fixture
def server(tmp_path: Path, config: str) -> Iterator[Threaded]:
    with Threaded(tmp_path, config) as running:
        yield running


def test_an_empty_service_says_how_to_begin_and_its_lines_work(page: Page) -> None:
    page.open()
    assert "Nothing is known yet" in page.text("main")
    assert violations(page.browser) == []
    put, rank, _ = page.texts("pre")
    for command in (put, rank):
        done = subprocess.run(["sh", "-c", f"{command} -sS --fail"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    page.wait(lambda: page.count("#panel-traffic"), "the panels")
    assert "2 items" in page.text("#panel-traffic .note")
    assert page.complaints() == []


@pytest.mark.parametrize("config", ["[ranking]\nk = 1\n[insights]\nrefresh_seconds = 0\n"])
def test_hostile_names_are_text(page: Page, server: Threaded) -> None:
    with ebrank.Client(server.url) as client:
        client.put_items(HOSTILE, {HOSTILE: [0.5], "good": [0.1]})
        client.rank(HOSTILE, k=1)
    page.open()
    assert page.text("#panel-buried tbody a") == HOSTILE
    page.click("#panel-buried tbody a")
    page.wait(lambda: page.count("table.items tbody tr"), "the items")
    assert page.text("h1") == HOSTILE
    assert HOSTILE in page.texts("td.name")
    assert page.count("img, main script") == 0
    assert page.run("return window.hacked") is None
    assert page.complaints() == []
    page.open("#/queries/%")  # a bare % is no encoding, and no mistake of ours
    assert page.text("h1") == "%"


def test_a_server_that_leaves_is_told_and_its_return_noticed(page: Page, server: Threaded) -> None:
    with ebrank.Client(server.url) as client:
        client.put_items("tea", {"green": [0.5], "black": [0.1]})
    page.open("#/queries/tea")
    server.stop()
    page.wait_for_status("unreachable")
    assert "unreachable" in page.text(".status")
    assert page.count("table.items tbody tr") == 2  # what was known stays
    assert page.run("return document.querySelector('main').hasAttribute('data-stale')")
    assert violations(page.browser) == []
    page.emulate(scheme="dark")
    assert violations(page.browser, COLORS) == []
    server.start()
    page.wait_for_status("connected")
    assert not page.run("return document.querySelector('main').hasAttribute('data-stale')")


def test_a_server_that_is_not_ready_is_waited_for(page: Page, server: Threaded) -> None:
    page.open()
    page.run(
        "window.real = window.fetch; const error = { message: 'the server is starting' };"
        "window.fetch = async () => new Response(JSON.stringify({ error }), { status: 503 })"
    )
    page.wait_for_status("waiting")
    assert page.text(".status") == "not ready, trying again"
    assert "Nothing is known yet" in page.text("main")  # what was known stays
    page.run("location.hash = '#/queries'")
    page.wait(lambda: "The server is starting." in page.text("main"), "the reason")
    page.run("window.fetch = window.real")
    page.wait_for_status("connected")
    assert "There is none yet." in page.text("main")


@pytest.mark.parametrize("config", [TOKENS])
def test_a_token_opens_the_page_and_its_scopes_what_it_does(page: Page, server: Threaded) -> None:
    page.browser.get("about:blank")
    page.browser.get(server.url)
    page.wait(lambda: page.count("dialog"), "the question")
    page.press(Keys.ESCAPE)  # not now: the page stays quiet until it is wanted
    page.wait(lambda: not page.count("dialog"), "the dialog to close")
    page.click("[data-action=token]")
    enter(page, "wrong-secret")
    page.wait(lambda: page.count("dialog .complaint"), "a complaint")
    assert page.text("dialog .complaint") == "This token is not known here."
    enter(page, "reader-secret")
    page.wait_for_status("connected")
    assert page.run("return sessionStorage.getItem('ebrank-token')") == "reader-secret"
    page.click("[data-action=train]")
    page.wait(lambda: "admin" in page.text("dialog"), "the scope that is missing")
    page.press(Keys.ESCAPE)
    page.wait(lambda: not page.count("dialog"), "the dialog to close")
    page.click("[data-action=token]")
    enter(page, "owner-secret")
    page.wait_for_status("connected")
    page.run("sessionStorage.clear()")


def enter(page: Page, secret: str) -> None:
    page.enter("dialog input", secret, Keys.ENTER)


def test_models_are_activated_only_when_confirmed(page: Page, server: Threaded) -> None:
    with ebrank.Client(server.url) as client:
        items = {f"item {i}": [i / 40] for i in range(40)}
        for query in range(10):
            client.put_items(f"query {query}", items)
            for _ in range(4):
                served = client.rank(f"query {query}", k=40)
                client.click(served, served.items[query].id)
    page.open()
    page.run("document.querySelector('[data-action=train]').focus()")
    page.press(Keys.ENTER)
    page.wait(lambda: page.text("[data-action=train]") == "Training …", "the start of training")
    assert page.focused("dataset.action") == "train"
    page.wait(lambda: page.texts("#panel-models tbody td:first-child") == ["1", "0"], "model 1")
    page.wait(lambda: page.text("[data-action=train]") == "Train now", "the end of training")
    assert page.focused("dataset.action") == "train"
    [version] = activatable(page)  # the other one is active
    choose(page, version, Keys.ESCAPE)
    assert version in activatable(page)
    choose(page, version, Keys.ENTER)
    page.wait(lambda: version not in activatable(page), "the other model")
    with ebrank.Client(server.url) as client:
        assert client.models().active == int(version)


def test_before_the_first_click_nothing_is_a_dash_in_a_sentence(
    page: Page, server: Threaded
) -> None:
    with ebrank.Client(server.url) as client:
        client.put_items("tea", {f"tea {i}": [i / 10] for i in range(10)})
        client.rank("tea", k=3)
    page.open()
    page.wait(lambda: "No click" in page.text("#panel-cost"), "the ranking")
    assert "No item has arrived lately" in page.text(".lead")
    assert "At first all items are new" in page.text("#panel-new")
    sentences = page.texts(".lead, .panel p, .tile .small")
    assert [text for text in sentences if "–" in text] == []
    assert page.complaints() == []


def activatable(page: Page) -> list[str]:
    return page.attributes("[data-action=activate]", "data-version")


def choose(page: Page, version: str, key: str) -> None:
    page.click(f"[data-action=activate][data-version='{version}']")
    page.wait(lambda: page.count("dialog[open]"), "the question")
    page.enter("dialog .primary", key)
    page.wait(lambda: not page.count("dialog"), "the dialog to close")


@pytest.mark.parametrize("config", ["[insights]\ndemo = true\n"])
def test_a_demo_says_so_and_asks_for_no_items(page: Page, server: Threaded) -> None:
    page.open()
    assert page.shows(".ribbon")
    assert "simulated users" in page.text(".ribbon")
    assert "on their way" in page.text(".lead")
    assert page.count("pre") == 0


@pytest.mark.parametrize("config", ["[ranking]\nk = 3\n"])
@pytest.mark.parametrize("width", [1400, 390])
def test_a_running_experiment_has_a_panel(page: Page, server: Threaded, width: int) -> None:
    with ebrank.Client(server.url) as client:
        arms = {"control": "own", "treatment": "auto:bonus=none"}
        client.start_experiment(StartExperimentRequest("holdout", arms))
        for query in map(str, range(80)):
            client.put_items(query, {f"tea {i}": [i / 10] for i in range(5)})
            answer = client.rank(query, items=[f"tea {i}" for i in range(5)])
            if int(query) % 3:
                client.click(answer.ranking_id, answer.items[0].id)
        seen = client.experiment("holdout")
    page.emulate(width=width)
    page.open()
    told = page.text("#panel-experiment")
    assert "holdout: arms per query, running" in told
    assert "treatment\nauto:bonus=none" in told
    assert "treatment − control" in told
    for arm in seen.arms:
        assert arm.clicks.value is not None
        assert f"{arm.clicks.value + 1e-9:.3f}" in told  # a page rounds .5625 up
    assert violations(page.browser) == []
    assert page.complaints() == []
