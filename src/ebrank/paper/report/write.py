"""A report on disk: the page, the tables, the figures and the ledger, each file whole or absent.

A list of the files (`.report.json`) is written beside them. It says which files the next report may
replace or remove; all other files in the folder are left alone.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path

from ebrank.environment.files import write_whole
from ebrank.errors import DataError
from ebrank.paper.document import RESULTS, Document, document_bytes
from ebrank.paper.framework.figures import Figure
from ebrank.paper.framework.outcome import Table
from ebrank.paper.report.figures.render import FIGURE_FILES
from ebrank.paper.report.ledger import ledger_markdown
from ebrank.paper.report.page.html import page
from ebrank.paper.report.tables import TABLE_FILES

LIST = ".report.json"
PAGE = "report.html"
LEDGER = "LEDGER.md"
OURS = re.compile(
    rf"{PAGE}|{LEDGER}"
    rf"|tables/[^/]+\.({'|'.join(TABLE_FILES)})|figures/[^/]+\.({'|'.join(FIGURE_FILES)})"
)
"""The files that a report can have, so that no list makes us remove others."""


def write_report(document: Document, folder: str | Path) -> list[Path]:
    """Write a report into a folder and return its files, the page first.

    Files of an earlier report that this one does not have are removed.

    Raises:
        DataError: if another file has the name of one of ours; then nothing is written.
        MissingExtraError: if the `report` extra is not installed; then nothing is written.
    """
    folder = Path(folder)
    files = _files(document)
    earlier = _listed(folder)
    _refuse_foreign(folder, files.keys() - set(earlier))
    _write_list(folder, [*files, *earlier])  # all that may be there if we are stopped halfway
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, content)
    for name in earlier:
        if name not in files:
            (folder / name).unlink(missing_ok=True)
    _write_list(folder, list(files))
    return [folder / name for name in files]


def _refuse_foreign(folder: Path, new: Iterable[str]) -> None:
    """Raise if one of these files exists, though no report wrote it."""
    for name in sorted(new):
        if (folder / name).exists():
            raise DataError(
                "no earlier report wrote this file; the new report would overwrite it",
                path=folder / name,
                remedy="Move it away, or write elsewhere: `ebrank report DIR --out OTHER`.",
            )


def _files(document: Document) -> dict[str, bytes]:
    """Return the page first; it contains all others except PNG, which it can draw itself."""
    tables = [table for data in document.datasets for table in data.tables]
    figures = [figure for data in document.datasets for figure in data.figures]
    files = {LEDGER: ledger_markdown(document).encode()}
    for table in (*document.tables, *tables):
        for form, write in TABLE_FILES.items():
            files[f"tables/{_file_name(table)}.{form}"] = write(table).encode()
    for figure in figures:
        for form, draw in FIGURE_FILES.items():
            files[f"figures/{_file_name(figure)}.{form}"] = draw(figure)
    embedded = {name: content for name, content in files.items() if not name.endswith(".png")}
    embedded[f"{RESULTS}.gz"] = gzip.compress(document_bytes(document), mtime=0)
    return {PAGE: page(document, embedded).encode(), **files}


def _file_name(value: Table | Figure) -> str:
    """Return the name; raise if it would lead out of the folder."""
    if not value.name or value.name.startswith(".") or set(value.name) & set("/\\\0"):
        raise DataError(
            f"{value.name!r} cannot be the name of a file", remedy="Run `ebrank reproduce` again."
        )
    return value.name


def _listed(folder: Path) -> list[str]:
    """Return the files of an earlier report; a damaged list names none."""
    try:
        names = json.loads((folder / LIST).read_bytes())
    except (FileNotFoundError, ValueError):
        return []
    listed = names if isinstance(names, list) else []
    return [name for name in listed if isinstance(name, str) and OURS.fullmatch(name)]


def _write_list(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / LIST, (json.dumps(sorted(set(names)), indent=1) + "\n").encode())
