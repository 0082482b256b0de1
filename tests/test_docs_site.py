"""The documentation as a site: it builds, its links hold, and everybody can read it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from ebrank.cli import VERBS
from ebrank.service.endpoints import ENDPOINTS
from tests.browser import console_errors, violations
from tests.sharing import made_once

PROJECT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "site", build)


def build(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, PROJECT / "tools" / "docs.py", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_command_and_route_is_there(site: Path) -> None:
    commands = (site / "reference" / "command-line.html").read_text()
    for verb in VERBS:
        assert f'id="ebrank-{verb}"' in commands
    routes = (site / "reference" / "http.html").read_text()
    for route in ENDPOINTS.values():
        assert route.hidden or f"{route.method} {route.path}" in routes


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        for tag in ('<script src="http', '<link rel="stylesheet" href="http', "fonts.googleapis"):
            assert tag not in text, page


@pytest.mark.parametrize("page", ["index.html", "results/index.html"])
def test_everybody_can_read_it_by_day_and_night(site: Path, browser: Chrome, page: str) -> None:
    try:
        for scheme in ("light", "dark"):
            at_night(browser, scheme)
            browser.get((site / page).as_uri())
            browser.execute_script("localStorage.clear()")  # the theme remembers its first choice
            browser.refresh()
            assert violations(browser) == []
            figures = "[...document.querySelectorAll('article img')].filter((e) => e.offsetParent)"
            shown = browser.execute_script(f"return {figures}.map((e) => e.src)")
            assert shown
            assert all(("-dark.svg" in source) == (scheme == "dark") for source in shown)
    finally:
        at_night(browser, "")


def at_night(browser: Chrome, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def test_the_results_are_in_the_menu(site: Path, browser: Chrome) -> None:
    browser.get((site / "index.html").as_uri())
    link = browser.find_element(By.CSS_SELECTOR, ".md-nav__link[href$='results/index.html']")
    assert link.get_attribute("textContent").strip() == "What was found"  # type: ignore[union-attr]


def test_nothing_is_copied_but_code(site: Path, browser: Chrome) -> None:
    browser.get((site / "tutorials" / "first-ranker.html").as_uri())
    copied = browser.execute_script(
        "const code = document.querySelector('.highlight code');"
        "code.setAttribute('data-md-copying', '');"  # as the button does
        "return code.innerText"
    )
    assert copied.startswith("import numpy as np\nfrom ebrank import BehaviorStats, EBRanker\n")
    assert ">>>" not in copied


def test_pages_show_no_escapes(site: Path) -> None:
    ledger = (site / "results" / "mq2007-like" / "LEDGER.html").read_text()
    assert "adjusted p &lt; .0001" in ledger


@pytest.mark.parametrize("page", ["index.html", "how-to/back-up.html"])
def test_search_works_from_the_disk(site: Path, browser: Chrome, page: str) -> None:
    browser.get("about:blank")
    console_errors(browser)  # of pages before
    browser.get((site / page).as_uri())
    browser.find_element(By.CSS_SELECTOR, ".md-search__button").click()
    wait = WebDriverWait(browser, 20)
    dialog = wait.until(lambda page: page.switch_to.active_element.shadow_root)
    wait.until(
        lambda _: "Loading" not in dialog.find_element(By.CSS_SELECTOR, "[role=status]").text
    )
    dialog.find_element(By.CSS_SELECTOR, "input").send_keys("cascade")
    wait.until(lambda _: "cascade" in dialog.find_element(By.CSS_SELECTOR, "ol").text.lower())
    found = dialog.find_elements(By.CSS_SELECTOR, "ol a")
    addresses = [link.get_attribute("href") or "" for link in found]
    assert any(address.startswith((site / "simulation.html").as_uri()) for address in addresses)
    assert console_errors(browser) == []
