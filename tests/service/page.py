"""What a user does with the dashboard, for the tests of its views."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser import console_errors

PATIENCE = 60.0  # seconds: the machine may be busy


class Page:
    """The dashboard of one server in a browser."""

    def __init__(self, browser: Chrome, url: str) -> None:
        self.browser = browser
        self.url = url

    def open(self, address: str = "") -> Page:
        """Load a view afresh and wait until it shows what the server said."""
        self.browser.get("about:blank")
        console_errors(self.browser)
        self.browser.get(f"{self.url}/{address}")
        self.wait_for_status("live")
        return self

    def one(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """Return the visible text of the first element, "" if there is none."""
        return next(iter(self.texts(selector)), "")

    def texts(self, selector: str) -> list[str]:
        """Return the visible texts of all elements, read at once: the page redraws itself."""
        found = self.run(
            f"return [...document.querySelectorAll({json.dumps(selector)})].map((e) => e.innerText)"
        )
        return [text.replace("\u00a0", " ") for text in found]

    def run(self, script: str) -> Any:  # noqa: ANN401 (JavaScript's answer)
        return self.browser.execute_script(script)

    def module(self, name: str, expression: str) -> Any:  # noqa: ANN401 (JavaScript's answer)
        """Return the value of an expression in which `m` is a module of the dashboard."""
        return self.browser.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            f"import('/dashboard/{name}').then((m) => done({expression}));"
        )

    def wait(self, condition: Callable[[], object], what: str) -> None:
        WebDriverWait(self.browser, PATIENCE, poll_frequency=0.1).until(
            lambda _: condition(), f"waited for: {what}"
        )

    def wait_for_status(self, state: str) -> None:
        self.wait(
            lambda: self.run("return document.querySelector('.status').dataset.state") == state,
            f"status {state}",
        )

    def press(self, *keys: str) -> None:
        ActionChains(self.browser).send_keys(*keys).perform()

    def focused(self) -> WebElement:
        return self.browser.switch_to.active_element

    def emulate(self, *, width: int = 1280, scheme: str = "light") -> None:
        """Look through a window of this width, by day or by night."""
        self.browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        self.browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )

    def complaints(self) -> list[str]:
        return console_errors(self.browser)
