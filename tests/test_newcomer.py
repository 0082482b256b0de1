"""A newcomer's first hour, with nothing but lines copied from the README and the tutorials."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser import console_errors
from tests.shell import PATIENCE_SECONDS, shell

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
SHOP = (PROJECT / "docs" / "tutorials" / "shop.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.DOTALL)
QUICK = "--scale 0.02 --trials 1 --updates 2"
GIVEN = "--given ebrank:epsilon=20 --given ebrank:epsilon=20,estimator=exposure"
SERVE = "ebrank serve &\n"
LOOK_FIRST = "python look_first.py\n"
TEAS = ["assam", "darjeeling", "oolong", "sencha", "white"]

pytestmark = pytest.mark.slow


def test_the_demo_makes_a_report_that_opens(tmp_path: Path, browser: Chrome) -> None:
    assert "\nmake demo " in README
    installed = f"{sys.prefix}/.installed"  # this environment is
    with shell(tmp_path) as terminal:
        make = f"make -f {PROJECT}/Makefile VENV={sys.prefix} --old-file {installed}"
        terminal.run(f"{make} demo OPTIONS='{QUICK} {GIVEN}'")
    [report] = tmp_path.glob("reproduction/demo/*.html")
    console_errors(browser)  # of pages before
    browser.get(report.as_uri())
    assert "EBRank" in browser.title
    assert browser.find_elements(By.CSS_SELECTOR, "svg, img")
    assert console_errors(browser) == []


def test_the_first_command_shows_new_items_rising(tmp_path: Path, browser: Chrome) -> None:
    [command] = re.findall(r"^ebrank serve --demo", README, re.MULTILINE)
    with shell(tmp_path) as terminal:
        terminal.run(f"{command} &")
        browser.get(terminal.local("http://127.0.0.1:8000"))
        WebDriverWait(browser, PATIENCE_SECONDS).until(
            lambda page: page.find_elements(By.CSS_SELECTOR, "#panel-newest path.rising")
        )
        assert "that arrived" in browser.find_element(By.CLASS_NAME, "lead").text


def _shows_all_teas(browser: Chrome) -> bool:
    text = browser.find_element(By.TAG_NAME, "body").text
    return all(tea in text for tea in TEAS)


def test_a_shop_from_csv_files_to_the_dashboard(tmp_path: Path, browser: Chrome) -> None:
    blocks, printed = BLOCK.findall(SHOP), dict[str, str]()
    with shell(tmp_path) as terminal:

        def follow(some: list[tuple[str, str]]) -> None:
            for kind, text in some:
                if kind == "sh":
                    printed[text] = terminal.run(text)
                else:
                    name = text.splitlines()[0].removeprefix("# file: ")
                    (tmp_path / name).write_text(terminal.local(text), encoding="utf-8")

        served, looked = blocks.index(("sh", SERVE)), blocks.index(("sh", LOOK_FIRST))
        follow(blocks[:served])
        order = [line.split()[0] for line in printed["python try_it.py\n"].splitlines()]
        assert sorted(order) == TEAS
        assert order[0] == "white"  # found, as the page says

        follow(blocks[served:looked])
        assert "accepted=1" in printed["python serve_a_user.py\n"]
        with terminal.client() as client:
            clicks = sum(item.clicks for item in client.query("tea").items)
        log = (tmp_path / "log.csv").read_text().splitlines()[1:]
        assert clicks == 1 + sum(line.endswith(",1") for line in log)  # the history is there
        [page] = re.findall(r"<(http://127.0.0.1:8000/#/queries/tea)>", SHOP)
        browser.get(terminal.local(page))
        WebDriverWait(browser, PATIENCE_SECONDS).until(_shows_all_teas)

        follow(blocks[looked:])
        assert "shown: ['oolong', 'sencha', 'assam']" in printed[LOOK_FIRST]
    assert (tmp_path / "tea.db").exists()
