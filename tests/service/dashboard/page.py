"""What a user does with the dashboard, for the tests of its views."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from selenium.common.exceptions import StaleElementReferenceException
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
        self.wait_for_status("connected")
        return self

    def count(self, selector: str) -> int:
        return int(self.run(f"return {_all(selector)}.length"))

    def click(self, selector: str) -> None:
        """Click the first element."""
        self._do(lambda: self._first(selector).click(), f"a click on {selector}")

    def point_at(self, selector: str) -> None:
        """Move the mouse to the first element, and wait until the page knows."""

        def move() -> object:
            ActionChains(self.browser).move_to_element(self._first(selector)).perform()
            return self.run(f"return {_all(selector)}[0].matches(':hover')")

        self.wait(move, f"the mouse on {selector}")

    def enter(self, selector: str, *keys: str) -> None:
        """Press keys in the first element."""
        self._do(lambda: self._first(selector).send_keys(*keys), f"keys in {selector}")

    def shows(self, selector: str) -> bool:
        """Return whether the first element can be seen."""
        box = self.run(f"return {_all(selector)}[0].getBoundingClientRect().toJSON()")
        return bool(box["width"] > 0 and box["left"] >= 0 and box["top"] >= 0)

    def attributes(self, selector: str, name: str) -> list[str]:
        """Return an attribute of all elements, read at once: the page redraws itself."""
        found: list[str] = self.run(
            f"return {_all(selector)}.map((e) => e.getAttribute({json.dumps(name)}))"
        )
        return found

    def text(self, selector: str) -> str:
        """Return the visible text of the first element, "" if there is none."""
        return next(iter(self.texts(selector)), "")

    def texts(self, selector: str) -> list[str]:
        """Return the visible texts of all elements, read at once."""
        found = self.run(f"return {_all(selector)}.map((e) => e.innerText)")
        return [text.replace("\u00a0", " ") for text in found]

    def run(self, script: str) -> Any:  # noqa: ANN401 (JavaScript's answer)
        return self.browser.execute_script(script)

    def module(self, name: str, expression: str) -> Any:  # noqa: ANN401 (JavaScript's answer)
        """Return the value of an expression in which `m` is a module of the dashboard."""
        return self.browser.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            f"import('/dashboard/{name}').then(async (m) => done(await ({expression})));"
        )

    def _first(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def _do(self, act: Callable[[], object], what: str) -> None:
        """Act on an element; again if the page replaced it meanwhile, which is no act at all."""

        def done() -> bool:
            act()
            return True

        self.wait(done, what)

    def wait(self, condition: Callable[[], object], what: str) -> None:
        WebDriverWait(
            self.browser,
            PATIENCE,
            poll_frequency=0.1,
            ignored_exceptions=(StaleElementReferenceException,),
        ).until(lambda _: condition(), f"waited for: {what}")

    def wait_for_status(self, state: str) -> None:
        self.wait(
            lambda: self.run("return document.querySelector('.status').dataset.state") == state,
            f"status {state}",
        )

    def wait_for_text(self, selector: str, text: str) -> None:
        self.wait(lambda: self.text(selector) == text, f"{selector} to be {text}")

    def press(self, *keys: str) -> None:
        ActionChains(self.browser).send_keys(*keys).perform()

    def focused(self, attribute: str) -> str:
        """Return an attribute of the element that has the focus."""
        return str(self.run(f"return document.activeElement.{attribute}"))

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


def _all(selector: str) -> str:
    """Return the JavaScript for all elements of a selector."""
    return f"[...document.querySelectorAll({json.dumps(selector)})]"
