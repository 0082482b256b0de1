"""Headless Chromium for tests of pages; `tests/conftest.py` makes it the fixture `browser`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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


def screenshot(browser: Chrome, path: Path) -> None:
    """Take a picture of the window."""
    path.write_bytes(browser.get_screenshot_as_png())
