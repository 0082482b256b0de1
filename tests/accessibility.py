"""What axe-core finds wrong with a page for people who use it otherwise than most."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from selenium.webdriver import Chrome

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
    """Return a line for each rule that the page in the browser breaks; all rules by default."""
    browser.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text())
    browser.set_script_timeout(60)
    options = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found: list[str] = browser.execute_async_script(RUN, options)
    return found
