"""A report on disk: the page, the tables, the figures and the ledger, each file whole or absent.

A list of the files (`.report.json`) is written beside them. It says which files the next report may
replace or remove; all other files in the folder are left alone.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath

from ebrank.environment.files import write_whole
from ebrank.errors import DataError
from ebrank.experiments.document import RESULTS, Document, document_bytes
from ebrank.experiments.framework.figures import Figure
from ebrank.experiments.framework.outcome import Table
from ebrank.report.figures.render import FIGURE_FILES
from ebrank.report.ledger import ledger_markdown
from ebrank.report.page.html import page
from ebrank.report.tables import TABLE_FILES

LIST = ".report.json"
PAGE = "report.html"
LEDGER = "LEDGER.md"
FORMS: dict[str, Collection[str]] = {"tables": TABLE_FILES, "figures": FIGURE_FILES}


def write_report(document: Document, folder: str | Path) -> list[Path]:
    """Write a report into a folder and return its files, the page first.

    Files of an earlier report that this one does not have are removed.

    Raises:
        DataError: if another file has the name of one of ours; then nothing is written.
        MissingExtraError: if the `report` extra is not installed; then nothing is written.
    """
    folder = Path(folder)
    files = dict(_files(document))
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


def _files(document: Document) -> Iterator[tuple[str, bytes]]:
    """Yield the page first; it contains all others except PNG, which it can draw itself."""
    others = dict(_others(document))
    embedded = {name: content for name, content in others.items() if not name.endswith(".png")}
    results = gzip.compress(document_bytes(document), mtime=0)
    yield PAGE, page(document, embedded | {f"{RESULTS}.gz": results}).encode()
    yield from others.items()


def _others(document: Document) -> Iterator[tuple[str, bytes]]:
    yield LEDGER, ledger_markdown(document).encode()
    own = (table for data in document.datasets for table in data.tables)
    for table in (*document.tables, *own):
        name = _file_name(table)
        for form, write in TABLE_FILES.items():
            yield f"tables/{name}.{form}", write(table).encode()
    for figure in (figure for data in document.datasets for figure in data.figures):
        name = _file_name(figure)
        for form, draw in FIGURE_FILES.items():
            yield f"figures/{name}.{form}", draw(figure)


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
    if not isinstance(names, list):
        return []
    return [name for name in names if isinstance(name, str) and _ours(name)]


def _ours(name: str) -> bool:
    """Return whether a report can have such a file, so that a list cannot make us remove others."""
    path = PurePosixPath(name)
    return name in (PAGE, LEDGER) or (
        len(path.parts) == 2
        and ".." not in path.parts
        and path.suffix.removeprefix(".") in FORMS.get(path.parts[0], {})
    )


def _write_list(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / LIST, (json.dumps(sorted(set(names)), indent=1) + "\n").encode())
