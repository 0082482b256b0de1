"""`report.html`: one page with everything, which needs no network and no other file.

Jinja fills `templates/`, which ask `summary`, `chapters` and `ledger` for what they show, and
escapes all names, captions and files. Figures are SVG within the page, panel by panel, so that a
narrow screen shows them below each other.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ebrank.environment.extras import import_extra
from ebrank.paper.document import Document
from ebrank.paper.framework.entrants import EBRANK
from ebrank.paper.framework.numbers import counted
from ebrank.paper.framework.significance import caution
from ebrank.paper.ledger import RULE
from ebrank.paper.report import ledger
from ebrank.paper.report.figures import render
from ebrank.paper.report.page import chapters, summary
from ebrank.paper.report.tables import TABLE_FILES
from ebrank.paper.report.tables.html import html

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

KINDS = {".csv": "text/csv", ".svg": "image/svg+xml", ".gz": "application/gzip"}
ADDRESS = re.compile(r"\bhttps://[\w./?=%~-]*[\w/]")


def page(document: Document, files: Mapping[str, bytes] | None = None) -> str:
    """Return the page.

    Readers can save `files` from the page itself, by name, so the page can be sent alone.
    """
    embedded = {name: _address(name, content) for name, content in (files or {}).items()}
    return environment().get_template("report.html").render(document=document, files=embedded)


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
    environment.globals |= {"chapters": chapters, "ledger": ledger, "summary": summary}
    environment.globals |= {"render": render, "caution": caution, "focus": EBRANK, "rule": RULE}
    environment.filters |= {
        "counted": counted,
        "html": html,
        "plain": _plain,
        "prose": _prose,
        "table_files": lambda name: [f"tables/{name}.{form}" for form in TABLE_FILES],
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


def _address(name: str, content: bytes) -> str:
    """Return a file as an address that holds all of it.

    >>> _address("a.csv", b"1,2")
    'data:text/csv;base64,MSwy'
    """
    kind = KINDS.get(PurePosixPath(name).suffix, "text/plain")
    return f"data:{kind};base64,{b64encode(content).decode()}"
