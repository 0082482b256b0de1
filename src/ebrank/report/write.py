"""A report on disk: the page, the tables, the figures and the ledger, each file whole or not there.

A list of the files (`.report.json`) stands beside them. It tells the next report which files are
its own to replace or remove; whatever else lies in the folder is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ebrank.errors import DataError
from ebrank.experiments.document import Document
from ebrank.experiments.outcome import Figure, Table
from ebrank.files import write_whole
from ebrank.report.ledger import ledger_markdown
from ebrank.report.page import page
from ebrank.report.plots import png_file, svg_file
from ebrank.report.tables.delimited import delimited
from ebrank.report.tables.latex import latex
from ebrank.report.tables.markdown import markdown

LIST = ".report.json"
PAGE = "report.html"
LEDGER = "LEDGER.md"


def write_report(
    document: Document, times: Mapping[str, Any] | None, folder: str | Path
) -> list[Path]:
    """Write a report into a folder and return its files, the page first.

    Files of an earlier report that this one does not have are removed.

    Raises:
        DataError: if a file of somebody else has the name of one of ours; then nothing is written.
        MissingExtraError: if what draws figures is not installed; then nothing is written.
    """
    folder = Path(folder)
    files = dict(_files(document, times))
    earlier = _listed(folder)
    _refuse_others(folder, files.keys() - set(earlier))
    _list(folder, [*files, *earlier])  # all that may be there, should we be stopped half-way
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, content)
    for name in earlier:
        if name not in files:
            (folder / name).unlink(missing_ok=True)
    _list(folder, list(files))
    return [folder / name for name in files]


def _refuse_others(folder: Path, new: Iterable[str]) -> None:
    """Raise if one of the files that no report wrote before is there."""
    for name in sorted(new):
        if (folder / name).exists():
            raise DataError(
                "this is no file of an earlier report, and would be overwritten",
                path=folder / name,
                remedy="Move it away, or write elsewhere by ebrank report DIR --out OTHER.",
            )


def _files(document: Document, times: Mapping[str, Any] | None) -> Iterator[tuple[str, bytes]]:
    yield PAGE, page(document, times).encode()
    yield LEDGER, ledger_markdown(document).encode()
    for table in _all_tables(document):
        name = _file_name(table)
        yield f"tables/{name}.md", markdown(table).encode()
        yield f"tables/{name}.tex", latex(table).encode()
        yield f"tables/{name}.csv", delimited(table).encode()
    for figure in (figure for data in document.datasets for figure in data.figures):
        name = _file_name(figure)
        yield f"figures/{name}.svg", svg_file(figure)
        yield f"figures/{name}.png", png_file(figure)


def _all_tables(document: Document) -> Iterator[Table]:
    yield from document.tables
    for data in document.datasets:
        yield from data.tables


def _file_name(value: Table | Figure) -> str:
    """Return the name; one that would lead out of the folder is no name."""
    if not value.name or value.name.startswith(".") or set(value.name) & set("/\\\0"):
        raise DataError(
            f"{value.name!r} is no name of a file", remedy="Run ebrank reproduce again."
        )
    return value.name


def _listed(folder: Path) -> list[str]:
    """Return the files of an earlier report; a damaged list names none."""
    try:
        names = json.loads((folder / LIST).read_bytes())
    except (FileNotFoundError, ValueError):
        return []
    if not isinstance(names, list):
        return []
    return [name for name in names if isinstance(name, str) and _ours(name)]


def _ours(name: str) -> bool:
    """Return whether a report can have such a file: nobody's list can make us remove another."""
    path = PurePosixPath(name)
    return name in (PAGE, LEDGER) or (
        len(path.parts) == 2
        and ".." not in path.parts
        and (path.parts[0], path.suffix)
        in {("tables", ".md"), ("tables", ".tex"), ("tables", ".csv")}
        | {("figures", ".svg"), ("figures", ".png")}
    )


def _list(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / LIST, (json.dumps(sorted(set(names)), indent=1) + "\n").encode())
