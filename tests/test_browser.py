"""The instrument itself: a test of pages that cannot fail would be worth nothing."""

from __future__ import annotations

from selenium.webdriver import Chrome

from tests.browser import console_errors


def test_a_page_that_complains_is_noticed(browser: Chrome) -> None:
    browser.get("data:text/html,<title>good</title><script>console.error('oh no')</script>")
    assert browser.title == "good"
    assert any("oh no" in message for message in console_errors(browser))
    browser.get("data:text/html,<p>quiet")
    assert console_errors(browser) == []
