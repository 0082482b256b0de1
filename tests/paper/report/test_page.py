"""The page in a real browser: quiet, complete, in the dark, on a phone, and with hostile names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from ebrank.errors import DataError
from ebrank.paper.document import Document
from ebrank.paper.framework.display import Display, Figure
from ebrank.paper.report.ledger import ledger_markdown
from ebrank.paper.report.page import page, write_report
from tests.browser import COLORS, console_errors, violations
from tests.golden import check_golden
from tests.paper.report.sample import FINDINGS, GRID, HOSTILE, NASTY, document


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report(document(), tmp_path_factory.mktemp("page"))[0].as_uri()


@pytest.fixture
def opened(browser: Chrome, address: str) -> Iterator[Chrome]:
    """The page on a light screen; whatever a test sets is taken back."""
    show(browser, width=1400, scheme="light")
    browser.get(address)
    yield browser
    for command in ("Emulation.clearDeviceMetricsOverride", "Emulation.setEmulatedMedia"):
        browser.execute_cdp_cmd(command, {})


def show(browser: Chrome, *, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def ask(browser: Chrome, expression: str) -> Any:  # noqa: ANN401
    return browser.execute_script(f"return {expression}")


def brightness(browser: Chrome) -> int:
    rgb = ask(browser, "getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in rgb.removeprefix("rgb(").rstrip(")").split(",")[:3])


def test_everybody_can_read_it_in_the_light_and_in_the_dark(opened: Chrome) -> None:
    assert violations(opened) == []
    assert brightness(opened) > 700
    show(opened, width=1400, scheme="dark")
    assert violations(opened, COLORS) == []
    assert brightness(opened) < 150
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert brightness(opened) > 700


def test_it_is_quiet_and_needs_no_network(opened: Chrome) -> None:
    console_errors(opened)  # those of other pages
    opened.refresh()
    assert console_errors(opened) == []
    loaded = ask(opened, "performance.getEntriesByType('resource').map(one => one.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []
    assert ask(opened, "document.images.length") == 2
    assert ask(opened, "[...document.images].every(one => one.complete && one.naturalWidth)")


def test_every_table_and_claim_is_there(opened: Chrome) -> None:
    for shown in document().displays.values():
        for table in shown.tables:
            found = opened.find_element(By.ID, f"table-{table.name}")
            rows = found.find_elements(By.CSS_SELECTOR, "tbody tr:not(.heading)")
            assert len(rows) == len(table.rows)
    words = " ".join(opened.find_element(By.ID, "findings").text.split())
    for said in ("1 confirmed, 1 undecided, 1 contradicted", "p = .3", "+.100 [+.050, +.150]"):
        assert said in words
    rows = opened.find_elements(By.CSS_SELECTOR, "#findings tbody tr:not(.heading)")
    assert len(rows) == len(FINDINGS)


def test_links_lead_somewhere_and_names_are_text(opened: Chrome) -> None:
    lost = """[...document.querySelectorAll('a[href^="#"]')].map(one => one.getAttribute('href'))
        .filter(to => !document.getElementById(decodeURIComponent(to.slice(1))))"""
    assert ask(opened, lost) == []
    twice = """(() => { const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
        return ids.filter((id, place) => ids.indexOf(id) !== place) })()"""
    assert ask(opened, twice) == []
    assert opened.title == f"EBRank reproduced: {NASTY}"
    assert len(opened.find_elements(By.TAG_NAME, "script")) == 0


@pytest.mark.parametrize("width", [360, 800])
def test_narrow_screens_scroll_tables_not_the_page(opened: Chrome, width: int) -> None:
    show(opened, width=width, scheme="light")
    opened.refresh()
    assert ask(opened, "document.documentElement.scrollWidth") <= width
    wide = "document.getElementById('table-table2').closest('.scroll')"
    if width < 500:
        assert ask(opened, f"{wide}.scrollWidth > {wide}.clientWidth")
        first = "document.querySelector('#table-table2 th[scope=row]').getBoundingClientRect().left"
        before = ask(opened, first)
        opened.execute_script(f"{wide}.scrollLeft = 200")
        assert ask(opened, first) == pytest.approx(before, abs=1), "the names stay"


def test_the_title_is_the_result_and_what_was_not_run_is_left_out() -> None:
    bare = page(document(headline="auto is first", displays={}, ledger=(), trials=1), {})
    assert "<h1>auto is first</h1>" in bare
    assert "None of the exhibits made here checks a claim" in bare
    assert "<p>1 trial, seed 1." in bare


# --- files ---------------------------------------------------------------------------------------


def small(name: str) -> Document:
    """Return a document with a figure and a table of this name."""
    shown = Display((HOSTILE,), (Figure(name, "Small", "", (GRID,)),))
    return document(displays={"time": shown})


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_all_files_are_there_and_the_same_again_and_others_stay(tmp_path: Path) -> None:
    each, other = tmp_path / "a" / "b", tmp_path / "c"
    written = write_report(small("time"), each)
    assert written[0] == each / "report.html"
    names = {"report.html", "LEDGER.md", "figures/time.svg", "tables/odd.md", "tables/odd.csv"}
    assert files_in(each) == {str(path.relative_to(each)) for path in written} == names
    write_report(small("time"), other)
    for name in names:
        assert (each / name).read_bytes() == (other / name).read_bytes(), name
    (each / "tables" / "mine.csv").write_text("mine")
    write_report(small("time"), each)
    assert (each / "tables" / "mine.csv").read_text() == "mine"


@pytest.mark.parametrize("name", ["../out", "a/b", "", ".hidden", "a\\b"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="cannot be the name of a file"):
        write_report(small(name), tmp_path / "r")
    assert files_in(tmp_path) == set()


def test_the_ledger_tells_all_and_names_are_no_markup() -> None:
    text = ledger_markdown(document())
    check_golden(Path(__file__).parent / "golden" / "LEDGER.md", text)
    assert NASTY not in text.replace(document().command, "")
    assert "1 trial, seed 1" in ledger_markdown(document(trials=1))
