"""The page in a real browser: quiet, complete, in the dark, on a phone, and with hostile names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from ebrank.paper.document import Document
from ebrank.paper.report.page.chapters import identifier
from ebrank.paper.report.page.html import page
from tests.browser import COLORS, console_errors, violations
from tests.paper.report.results import reproduction
from tests.paper.report.sample import NASTY, document


@pytest.fixture(scope="module")
def reproduced() -> Document:
    return document()


@pytest.fixture(scope="module")
def address(page_file: Path) -> str:
    return page_file.as_uri()


@pytest.fixture
def opened(browser: Chrome, address: str) -> Iterator[Chrome]:
    """The page on a light screen; whatever a test sets is taken back."""
    show(browser, width=1400, scheme="light")
    browser.get(address)
    yield browser
    browser.execute_script("try { localStorage.clear() } catch {}")
    for command in ("Emulation.clearDeviceMetricsOverride", "Emulation.setEmulatedMedia"):
        browser.execute_cdp_cmd(command, {})


def undrawn(drawn: Document) -> Document:
    """Return a document without figures, which take the longest."""
    return replace(drawn, datasets=tuple(replace(data, figures=()) for data in drawn.datasets))


def show(browser: Chrome, *, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def ask(browser: Chrome, expression: str) -> Any:  # noqa: ANN401
    return browser.execute_script(f"return {expression}")


def color(browser: Chrome, selector: str, name: str) -> str:
    asked = f"getComputedStyle(document.querySelector('{selector}')).getPropertyValue('{name}')"
    return str(ask(browser, asked))


def test_everybody_can_read_it(browser: Chrome, opened: Chrome) -> None:
    assert violations(browser) == []
    show(browser, width=1400, scheme="dark")
    assert violations(browser, COLORS) == []


def test_it_is_quiet_and_needs_no_network(opened: Chrome) -> None:
    console_errors(opened)  # those of other pages
    opened.refresh()
    assert console_errors(opened) == []
    loaded = ask(opened, "performance.getEntriesByType('resource').map(one => one.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []
    assert ask(opened, "[...document.images].every(one => one.complete && one.naturalWidth)")


def test_every_table_and_figure_is_there(opened: Chrome, reproduced: Document) -> None:
    (data,) = reproduced.datasets
    for table in (*reproduced.tables, *data.tables):
        found = opened.find_element(By.ID, f"table-{identifier(table.name)}")
        rows = found.find_elements(By.CSS_SELECTOR, "tbody tr:not(.heading)")
        assert len(rows) == len(table.rows)
        assert (
            found.find_element(By.TAG_NAME, "caption").get_attribute("textContent") == table.title
        )
    for figure in data.figures:
        found = opened.find_element(By.ID, f"figure-{figure.name}")
        pictures = found.find_elements(By.TAG_NAME, "svg")
        assert len(pictures) == len(figure.panels)
        assert all(picture.size["width"] > 100 for picture in pictures)
        written = "return [...arguments[0].querySelectorAll('text')].map(one => one.textContent)"
        names = {name.strip() for name in opened.execute_script(written, found)}
        assert {one.label for panel in figure.panels for one in panel.series} <= names


def test_each_claim_is_a_row_with_its_verdict_and_effect(opened: Chrome) -> None:
    shown = " ".join(opened.find_element(By.ID, "findings").text.split())
    for words in ("1 confirmed, 1 undecided, 1 contradicted", "p = .3", "+.100 [+.050, +.150]"):
        assert words in shown
    rows = opened.find_elements(By.CSS_SELECTOR, "#findings tbody tr:not(.heading)")
    assert len(rows) == 3


def test_every_link_within_the_page_leads_somewhere(opened: Chrome) -> None:
    lost = """[...document.querySelectorAll('a[href^="#"]')].map(one => one.getAttribute('href'))
        .filter(to => !document.getElementById(decodeURIComponent(to.slice(1))))"""
    assert ask(opened, lost) == []
    twice = """(() => { const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
        return ids.filter((id, place) => ids.indexOf(id) !== place) })()"""
    assert ask(opened, twice) == []


def test_names_are_text(opened: Chrome) -> None:
    assert opened.title == f"EBRank reproduced: {NASTY}"
    opened.execute_script("document.querySelector('.only button:last-child').click()")
    assert len(opened.find_elements(By.TAG_NAME, "script")) == 1
    assert NASTY in opened.find_element(By.TAG_NAME, "h1").text


def test_light_and_dark_by_the_system_and_by_the_button(opened: Chrome, address: str) -> None:
    def brightness(selector: str, name: str) -> int:
        rgb = color(opened, selector, name).removeprefix("rgb(").rstrip(")").split(",")
        return sum(int(part) for part in rgb[:3])

    text = "#figure-time svg text"
    assert brightness("body", "background-color") > 700
    assert brightness(text, "fill") < 150
    line = color(opened, "body", "--series-0")
    opened.find_element(By.ID, "theme").click()
    assert brightness("body", "background-color") < 150
    assert brightness(text, "fill") > 600
    assert color(opened, "body", "--series-0") != line
    opened.find_element(By.ID, "theme").send_keys(Keys.ENTER)
    assert brightness("body", "background-color") > 700
    opened.execute_script("localStorage.clear()")
    show(opened, width=1400, scheme="dark")
    opened.get(address)
    assert brightness("body", "background-color") < 150
    assert opened.find_element(By.ID, "theme").text == "Light"


def test_deviations_can_be_hidden(opened: Chrome) -> None:
    table = opened.find_element(By.ID, "table-table2")
    assert "± .004" in table.text
    opened.find_element(By.ID, "deviations").click()
    assert "±" not in table.text
    assert opened.find_element(By.ID, "deviations").get_attribute("aria-pressed") == "false"


@pytest.mark.parametrize("width", [360, 400, 800])
def test_narrow_screens_scroll_tables_not_the_page(
    opened: Chrome, address: str, width: int
) -> None:
    show(opened, width=width, scheme="light")
    opened.get(address)
    assert ask(opened, "document.documentElement.scrollWidth") <= width
    wide = "document.getElementById('table-table2').closest('.scroll')"
    if width < 500:
        assert ask(opened, f"{wide}.scrollWidth > {wide}.clientWidth")
        first = "document.querySelector('#table-table2 th[scope=row]').getBoundingClientRect().left"
        before = ask(opened, first)
        opened.execute_script(f"{wide}.scrollLeft = 200")
        assert ask(opened, first) == pytest.approx(before, abs=1), "the names stay"


def test_it_prints_in_black_on_white_without_its_buttons(opened: Chrome) -> None:
    opened.find_element(By.ID, "theme").click()
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert color(opened, "body", "background-color") == "rgb(255, 255, 255)"
    assert color(opened, "#figure-time svg text", "fill") == "rgb(27, 30, 35)"
    assert not opened.find_element(By.ID, "theme").is_displayed()


@pytest.fixture(scope="module")
def reproduction_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reproduction") / "report.html"
    path.write_text(page(reproduction()))
    return path


@pytest.fixture
def reproduction_page(browser: Chrome, reproduction_file: Path) -> Iterator[Chrome]:
    """A page with a result, on a wide screen."""
    show(browser, width=1400, scheme="light")
    browser.get(reproduction_file.as_uri())
    yield browser
    for command in ("Emulation.clearDeviceMetricsOverride", "Emulation.setEmulatedMedia"):
        browser.execute_cdp_cmd(command, {})


def test_it_opens_with_one_look(reproduction_page: Chrome) -> None:
    browser = reproduction_page
    assert ask(browser, "document.querySelector('main > section').id") == "summary"
    title = browser.title.replace("\N{NO-BREAK SPACE}", " ")
    assert title == browser.find_element(By.TAG_NAME, "h1").text
    assert title.startswith("EBRank auto shows 95 % of the good new items within 10 searches")
    look = browser.find_element(By.ID, "summary")
    panels = look.find_elements(By.CSS_SELECTOR, ".panels svg")
    assert len({(panel.location["x"], panel.location["y"]) for panel in panels}) == 4
    assert len({panel.location["y"] for panel in panels}) == 2, "two beside each other"
    assert "Price: the lists that users saw have a mean NDCG" in look.text
    header = browser.find_element(By.TAG_NAME, "header").text
    assert "59,000 sessions" in header
    assert "Exploitation bias: a ranker that" in header
    assert violations(browser) == []


def test_values_are_shown_under_the_pointer(reproduction_page: Chrome) -> None:
    browser = reproduction_page
    svg = browser.find_element(By.CSS_SELECTOR, "#summary .panels svg")
    browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", svg
    )
    where = """(() => { const svg = document.querySelector('#summary .panels svg');
        const one = JSON.parse(svg.dataset.series).find((each) => each.label === 'EBRank (paper)');
        const [x, y] = one.points[1];
        const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
        return [at.x, at.y] })()"""
    x, y = ask(browser, where)
    move = {"type": "mouseMoved", "x": x + 1, "y": y + 1}
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", move)
    tip = browser.find_element(By.CLASS_NAME, "tip")
    WebDriverWait(browser, 5).until(lambda _: tip.is_displayed())
    assert "0.2 ± 0.01\nsessions: 200" in tip.text
    ring = svg.find_element(By.CLASS_NAME, "at")
    assert abs(ring.rect["x"] + ring.rect["width"] / 2 - ask(browser, "scrollX") - x) < 2
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", move | {"x": 1, "y": 1})
    WebDriverWait(browser, 5).until(lambda _: not tip.is_displayed())


def test_a_line_can_be_shown_alone_and_all_again(reproduction_page: Chrome) -> None:
    browser = reproduction_page
    dimmed = "document.querySelectorAll('#summary .panels svg .dim[id$=\"-line\"]').length"
    drawn = ask(browser, "document.querySelectorAll('#summary svg [id$=\"-line\"]').length")
    button = browser.find_element(By.XPATH, "//p[@class='only']/button[text()='UCBRank']")
    button.send_keys(Keys.ENTER)
    assert button.get_attribute("aria-pressed") == "true"
    assert ask(browser, dimmed) == drawn - 4, "one line of each panel is left"
    label = "[...document.querySelectorAll('#summary svg [id$=\"-label\"]')]"
    find = f"{label}.find((each) => each.textContent.trim() === 'UCBRank')"
    assert not ask(browser, f"{find}.classList.contains('dim')")
    browser.execute_script(f"{find}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert ask(browser, dimmed) == 0
    assert button.get_attribute("aria-pressed") == "false"


def test_a_table_that_goes_on_beyond_a_phone_says_so(reproduction_page: Chrome) -> None:
    show(reproduction_page, width=390, scheme="light")
    reproduction_page.refresh()
    region = "document.querySelector('#shared .scroll')"
    assert ask(reproduction_page, f"{region}.scrollWidth > {region}.clientWidth")
    words = reproduction_page.find_element(By.CSS_SELECTOR, "#shared .more")
    assert "More columns" in words.text
    reproduction_page.execute_script(f"{region}.scrollLeft = 9999")
    WebDriverWait(reproduction_page, 5).until(lambda _: not words.is_displayed())


@pytest.mark.slow
def test_one_trial_is_one_trial() -> None:
    assert "<p>1 trial, seed 1." in page(undrawn(document(trials=1)))


@pytest.mark.slow
def test_claims_of_our_own_are_called_so() -> None:
    plain = undrawn(document())
    assert "What the paper says, checked" in page(plain)
    first = plain.datasets[0]
    ours = replace(first, findings=(replace(first.findings[0], ours=True),))
    text = page(replace(plain, datasets=(ours,)))
    assert "What the paper says, and what EBRank auto must show, checked" in text


def test_it_does_without_what_was_not_run() -> None:
    bare = page(document(tables=(), datasets=()))
    assert "Run times" not in bare
    assert "None of the experiments run here checks one" in bare
