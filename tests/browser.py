"""Headless Chromium for tests of pages; `tests/conftest.py` makes it the fixture `browser`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from tempfile import TemporaryDirectory

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--force-device-scale-factor=1",
    # One process for all pages, instead of a new one for each:
    "--renderer-process-limit=1",
    "--in-process-gpu",
    "--disable-site-isolation-trials",
    "--disable-features=SpareRendererForSitePerProcess,BackForwardCache",
)


@contextmanager
def chromium(width: int = 1280, height: int = 900) -> Iterator[Chrome]:
    """Yield a browser with an empty profile that remembers what pages print to the console."""
    options = ChromeOptions()
    options.binary_location = os.environ.get("EBRANK_CHROMIUM", "/usr/bin/chromium")
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.add_argument(f"--window-size={width},{height}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = os.environ.get("EBRANK_CHROMEDRIVER", "/usr/bin/chromedriver")
    with TemporaryDirectory(prefix="ebrank-chromium-") as profile:
        options.add_argument(f"--user-data-dir={profile}")
        browser = Chrome(options=options, service=Service(driver))
        try:
            yield browser
        finally:
            browser.quit()


def console_errors(browser: Chrome) -> list[str]:
    """Return what the page complained about since the last time."""
    return [e["message"] for e in browser.get_log("browser") if e["level"] == "SEVERE"]  # type: ignore[no-untyped-call]


# --- for people who use pages otherwise than most ------------------------------------------------

RUN = """
const done = arguments[arguments.length - 1];
const where = (rule) => rule.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" ");
axe.run(document, {resultTypes: ["violations"], ...arguments[0]}).then((found) => done(
  found.violations.map((rule) => `${rule.id}: ${rule.help}; ${where(rule)}`)
));
"""


COLORS = ("color-contrast", "link-in-text-block")
"""The rules that look at colors: all that can change from light to dark."""


def violations(browser: Chrome, rules: Sequence[str] = ()) -> list[str]:
    """Return a line for each rule of axe-core that the page breaks; all rules by default."""
    browser.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text())
    browser.set_script_timeout(60)
    options = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found: list[str] = browser.execute_async_script(RUN, options)
    return found
