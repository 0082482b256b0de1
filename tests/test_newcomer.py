"""A newcomer's first hour, with nothing but lines copied from the README and the tutorials."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from ebrank import Client
from tests.browser import console_errors
from tests.serving import free_port

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
SHOP = (PROJECT / "docs" / "tutorials" / "shop.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.DOTALL)
SERVE = "ebrank serve --port 8000 &\n"
LOOK_FIRST = "python look_first.py\n"
TEAS = ["assam", "darjeeling", "oolong", "sencha", "white"]
PATIENCE_SECONDS = 60.0

pytestmark = pytest.mark.slow


def environment(**more: str) -> dict[str, str]:
    """Return the variables of a shell in which `. .venv/bin/activate` was said."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, **more}


def run(line: str, folder: Path) -> str:
    """Return what a line of shell prints; it must succeed."""
    done = subprocess.run(
        ["sh", "-e", "-c", line],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_demo_makes_a_report_that_opens(tmp_path: Path, browser: Chrome) -> None:
    assert "\nmake demo " in README
    installed = f"{sys.prefix}/.installed"  # this environment is
    run(f"make -f {PROJECT}/Makefile demo VENV={sys.prefix} --old-file {installed}", tmp_path)
    [report] = tmp_path.glob("reproduction/demo/*.html")
    browser.get(report.as_uri())
    assert "EBRank" in browser.title
    assert browser.find_elements(By.CSS_SELECTOR, "svg, img")
    assert console_errors(browser) == []


@contextmanager
def service(line: str, port: int, folder: Path, **variables: str) -> Iterator[Client]:
    """Do what a line says that starts the service, until the end."""
    command = line.replace("8000", str(port)).rstrip("&\n ")
    process = subprocess.Popen(
        ["sh", "-c", f"exec {command}"], cwd=folder, env=environment(**variables)
    )
    try:
        with Client(f"http://127.0.0.1:{port}") as client:
            _wait_for(client)
            yield client
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _wait_for(client: Client) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            client.models()
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def _shows_all_teas(browser: Chrome) -> bool:
    text = browser.find_element(By.TAG_NAME, "body").text
    return all(tea in text for tea in TEAS)


def test_a_shop_from_csv_files_to_the_dashboard(tmp_path: Path, browser: Chrome) -> None:
    port, printed = free_port(), dict[str, str]()
    blocks = BLOCK.findall(SHOP)
    assert blocks.count(("sh", SERVE)) == 1

    def follow(some: list[tuple[str, str]]) -> None:
        for kind, text in some:
            local = text.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
            if kind == "sh":
                printed[text] = run(local, tmp_path)
            else:
                name = text.splitlines()[0].removeprefix("# file: ")
                (tmp_path / name).write_text(local, encoding="utf-8")

    started, looked = blocks.index(("sh", SERVE)), blocks.index(("sh", LOOK_FIRST))
    follow(blocks[:started])
    order = [line.split()[0] for line in printed["python try_it.py\n"].splitlines()]
    assert sorted(order) == TEAS
    assert order.index("white") < 4  # found, as the page says

    with service(SERVE, port, tmp_path) as client:
        follow(blocks[started + 1 : looked])
        assert "accepted=1" in printed["python serve_a_user.py\n"]
        assert sum(item.clicks for item in client.query("tea").items) == 1
        page = f"http://127.0.0.1:{port}/#/queries/tea"
        assert page.replace(str(port), "8000") in SHOP
        browser.get(page)
        WebDriverWait(browser, PATIENCE_SECONDS).until(_shows_all_teas)
    assert "EBRANK_SERVE_RANKING_MODE=shadow" in SHOP
    with service(SERVE, port, tmp_path, EBRANK_SERVE_RANKING_MODE="shadow"):
        follow(blocks[looked : looked + 1])
        assert "shown: ['oolong', 'sencha', 'assam']" in printed[LOOK_FIRST]
    with service(SERVE, port, tmp_path):
        follow(blocks[looked + 1 :])
    assert (tmp_path / "tea.db").exists()
