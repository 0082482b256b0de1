"""Files of a report: all of them, whole, and nobody else's touched."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ebrank.environment.files import write_whole
from ebrank.errors import DataError
from ebrank.paper.document import Document, read_document
from ebrank.paper.framework.figures import Figure
from ebrank.paper.report.write import LIST, write_report
from tests.paper.report.sample import GRID, PERFORMANCE, dataset, document

SMALL = Figure("small", "Small", "", (GRID,))


def small(*names: str) -> Document:
    """Return a document with figures of these names, which take the longest."""
    figures = tuple(replace(SMALL, name=name) for name in names)
    return document(datasets=(replace(dataset("d"), figures=figures),))


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_all_files_are_there_and_the_same_again(tmp_path: Path) -> None:
    each, other = tmp_path / "a" / "b", tmp_path / "c"
    written = write_report(small("time"), each)
    assert written[0] == each / "report.html"
    assert files_in(each) == {
        *("report.html", "LEDGER.md", LIST, "figures/time.svg", "figures/time.png"),
        *(f"tables/{name}.{form}" for name in ("table2", "odd") for form in ("md", "tex", "csv")),
    }
    assert {path.relative_to(each) for path in written} == {
        Path(name) for name in files_in(each) - {LIST}
    }
    write_report(small("time"), str(other))
    for name in files_in(each):
        assert (each / name).read_bytes() == (other / name).read_bytes(), name


def test_the_page_holds_every_file_but_png(tmp_path: Path) -> None:
    written = write_report(small("time"), tmp_path)
    page = written[0].read_text()
    linked = dict(re.findall(r'<a download="([^"]+)" href="data:[^,]+,([^"]+)"', page))
    for path in written[1:]:
        if path.suffix != ".png":
            assert base64.b64decode(linked.pop(path.name)) == path.read_bytes()
    document = gzip.decompress(base64.b64decode(linked.pop("results.json.gz")))
    assert linked == {}
    (tmp_path / "results.json").write_bytes(document)
    assert read_document(tmp_path) == small("time")
    outside = re.findall(r'href="(?!#|data:|https://)([^"]*)"', page)
    assert outside == [], "a page sent alone has no links to files that are not there"


@pytest.mark.slow
def test_files_no_longer_in_the_report_are_removed_and_foreign_files_stay(tmp_path: Path) -> None:
    write_report(small("time", "old"), tmp_path)
    for name in ("notes.txt", "figures/mine.png", "tables/mine.csv", "results.json"):
        (tmp_path / name).write_text("mine")
    before = files_in(tmp_path)
    write_report(small("time"), tmp_path)
    assert before - files_in(tmp_path) == {"figures/old.svg", "figures/old.png"}
    assert (tmp_path / "figures/mine.png").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report.html", "LEDGER.md", "tables/odd.csv", "figures/time.png"])
def test_a_file_of_somebody_else_is_never_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    drawn = small("time") if name.startswith("figures") else small()
    with pytest.raises(DataError, match="no earlier report wrote this file") as caught:
        write_report(drawn, tmp_path)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert files_in(tmp_path) == {name}
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.slow
def test_a_report_that_was_stopped_is_cleared_up_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(path: Path, content: bytes) -> None:
        if path.name == "time.svg":
            raise KeyboardInterrupt
        write_whole(path, content)

    monkeypatch.setattr("ebrank.paper.report.write.write_whole", stop)
    with pytest.raises(KeyboardInterrupt):
        write_report(small("earlier", "time"), tmp_path)
    assert (tmp_path / "figures/earlier.svg").exists()
    monkeypatch.undo()
    write_report(small("time"), tmp_path)
    assert not (tmp_path / "figures/earlier.svg").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "listed",
    ["nonsense", "{}", json.dumps(["../precious.md", "/etc/x", "notes.txt", "tables/../x.md", 7])],
)
def test_no_list_makes_it_remove_what_no_report_has(tmp_path: Path, listed: str) -> None:
    folder = tmp_path / "report"
    folder.mkdir()
    (tmp_path / "precious.md").write_text("mine")
    for name in ("notes.txt", "x.md"):
        (folder / name).write_text("mine")
    (folder / LIST).write_text(listed)
    write_report(small(), folder)
    assert (tmp_path / "precious.md").exists()
    assert {"notes.txt", "x.md"} <= files_in(folder)


@pytest.mark.parametrize("name", ["../out", "a/b", "", ".hidden", "a\\b"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    tables = (replace(PERFORMANCE, name=name),)
    with pytest.raises(DataError, match="cannot be the name of a file"):
        write_report(document(tables=tables, datasets=()), tmp_path / "r")
    assert files_in(tmp_path) == set()
