"""The files of a report; `report.html` is one page with everything, and needs no other file.

Jinja fills `templates/` and escapes all names and captions; figures are images within the page.
Each file is whole or absent. Files of the same name are replaced, all others are left alone.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ebrank.environment.extras import import_extra
from ebrank.environment.files import write_whole
from ebrank.errors import DataError
from ebrank.paper.document import Document
from ebrank.paper.framework.folds import in_words
from ebrank.paper.framework.measures import ndcg_at
from ebrank.paper.framework.numbers import counted
from ebrank.paper.framework.significance import caution
from ebrank.paper.ledger import RULE
from ebrank.paper.report import ledger
from ebrank.paper.report.figures import svg
from ebrank.paper.report.tables import TABLE_FILES

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

PAGE = "report.html"
LEDGER = "LEDGER.md"
ADDRESS = re.compile(r"\bhttps://[\w./?=%~-]*[\w/]")


def write_report(document: Document, folder: Path) -> list[Path]:
    """Write a report into a folder and return its files, the page first.

    Raises:
        MissingExtraError: if the `report` extra is not installed; then nothing is written.
    """
    pictures: dict[str, bytes] = {}
    files = {LEDGER: ledger.ledger_markdown(document).encode()}
    for shown in document.displays.values():
        for table in shown.tables:
            for form, write in TABLE_FILES.items():
                files[f"tables/{_file_name(table.name)}.{form}"] = write(table).encode()
        for figure in shown.figures:
            pictures[figure.name] = svg(figure)
            files[f"figures/{_file_name(figure.name)}.svg"] = pictures[figure.name]
    files = {PAGE: page(document, pictures).encode(), **files}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, content)
    return [folder / name for name in files]


def _file_name(name: str) -> str:
    """Return a name; raise if it would lead out of the folder."""
    if not name or name.startswith(".") or set(name) & set("/\\\0"):
        raise DataError(
            f"{name!r} cannot be the name of a file", remedy="Run `ebrank reproduce` again."
        )
    return name


def page(document: Document, pictures: Mapping[str, bytes]) -> str:
    """Return the page; `pictures` are its figures as SVG, by name."""
    title = document.headline or f"EBRank reproduced: {document.name}"
    template = environment().get_template("report.html")
    return template.render(document=document, pictures=pictures, title=title)


def environment() -> Environment:
    """Return the templates, with what they may call."""
    jinja2 = import_extra("jinja2", extra="report", purpose="to write report.html")
    environment: Environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"caution": caution, "in_words": in_words, "ndcg_at": ndcg_at}
    environment.globals |= {"ledger": ledger, "rule": RULE}
    environment.filters |= {
        "counted": counted,
        "image": lambda picture: f"data:image/svg+xml;base64,{b64encode(picture).decode()}",
        "plain": _plain,
        "prose": _prose,
    }
    return environment


def _prose(text: str) -> Markup:
    """Return a text with code for text in backticks, and links for addresses.

    >>> _prose("run `a < b`")
    Markup('run <code>a &lt; b</code>')
    >>> _prose("from https://a.example/b?c; then")
    Markup('from <a href="https://a.example/b?c">https://a.example/b?c</a>; then')
    """
    from markupsafe import Markup, escape

    coded = re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text)))
    return Markup(ADDRESS.sub(r'<a href="\g<0>">\g<0></a>', coded))


def _plain(value: object) -> str:
    """Return a value of the config in words.

    >>> _plain([5, 10]), _plain(None), _plain({"cutoff": 5, "severity": 2.0})
    ('5, 10', 'by default', 'cutoff 5, severity 2')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    if isinstance(value, float):
        return f"{value:g}"
    return "by default" if value is None else str(value)
