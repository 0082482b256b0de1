"""The documentation as a site: it builds, its links hold, and everybody can read it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from ebrank.cli import VERBS
from ebrank.service.http.routes import API
from tests.accessibility import violations
from tests.browser import console_errors
from tests.sharing import made_once

PROJECT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "site", build)


def build(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=PROJECT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
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
    for route in API:
        assert route.hidden or f"{route.method} {route.path}" in routes


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        for tag in ('<script src="http', '<link rel="stylesheet" href="http', "fonts.googleapis"):
            assert tag not in text, page


def test_everybody_can_read_the_front_page(site: Path, browser: Chrome) -> None:
    browser.get((site / "index.html").as_uri())
    assert violations(browser) == []


@pytest.mark.parametrize("page", ["index.html", "how-to/back-up.html"])
def test_search_works_from_the_disk(site: Path, browser: Chrome, page: str) -> None:
    browser.get("about:blank")
    console_errors(browser)  # of pages before
    browser.get((site / page).as_uri())
    browser.find_element(By.CSS_SELECTOR, "[data-md-component=search-query]").send_keys("cascade")
    found = WebDriverWait(browser, 20).until(
        lambda page: page.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
    )
    addresses = [link.get_attribute("href") or "" for link in found]
    assert any(address.startswith((site / "simulation.html").as_uri()) for address in addresses)
    assert console_errors(browser) == []
