"""How the page is divided: findings, chapters of exhibits, the ledger's pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ebrank.experiments.document import DatasetRecord, Document
from ebrank.experiments.ledger import Section
from ebrank.experiments.outcome import Figure, Table
from ebrank.experiments.power import caution
from ebrank.report.plots import inline_panels
from ebrank.report.themes import Theme, themes


@dataclass(frozen=True)
class Exhibit:
    """A figure, tables, or both, of one name."""

    id: str
    title: str
    figure: Figure | None
    panels: Sequence[str]
    tables: Sequence[Table]


@dataclass(frozen=True)
class Chapter:
    """What belongs to one dataset, or to all."""

    id: str
    title: str
    about: str
    exhibits: Sequence[Exhibit]


@dataclass(frozen=True)
class Verdict:
    """What the paper says, on one dataset, theme by theme."""

    name: str
    count: str
    themes: Sequence[Theme]
    caution: str = ""


@dataclass(frozen=True)
class LedgerPage:
    """The ledger of one dataset."""

    id: str
    title: str
    sections: Sequence[Section]


def verdict(data: DatasetRecord, trials: int) -> Verdict:
    """Return the findings on a dataset, and whether so many trials can tell."""
    held = sum(finding.holds for finding in data.findings)
    count = f"{held} of {len(data.findings)}"
    return Verdict(data.name, count, themes(data.findings), caution(data.test_queries, trials))


def chapters(document: Document) -> list[Chapter]:
    """Return the tables that datasets share, then each dataset's own tables and figures."""
    made = []
    if document.tables:
        shared = _exhibits(document.tables, (), document.only)
        title = "Datasets and performance" if len(document.datasets) > 1 else "Performance"
        made.append(Chapter("shared", title, "", shared))
    for data in document.datasets:
        own = _exhibits(data.tables, data.figures, document.only)
        made.append(Chapter(f"data-{identifier(data.name)}", data.name, size(data), own))
    return made


def ledger_pages(document: Document) -> list[LedgerPage]:
    """Return the ledger without the findings, which stand at the top of the page."""
    pages = [(data.name, data.ledger) for data in document.datasets]
    pages += [("Not at hand", document.missing)]
    return [
        LedgerPage(f"ledger-{number}", title, [one for one in sections if not one.findings])
        for number, (title, sections) in enumerate(pages)
        if sections
    ]


def size(data: DatasetRecord) -> str:
    """Return how large a dataset is, in words."""
    told = (
        f"{data.queries:,} queries, {data.rows:,} rows, {data.features} features; "
        f"{data.sessions:,} sessions a trial."
    )
    if data.stands_in_for is not None and data.stands_in_for != data.name:
        told += f" It is synthetic and stands in for {data.stands_in_for}."
    return told


def identifier(name: str) -> str:
    """Return a name that can be an element's id; other names give other ids.

    >>> identifier("time"), identifier("mq2007-like×0.1")
    ('time', 'mq2007-like_d7_0_2e_1')
    """
    return re.sub("[^a-zA-Z0-9-]", lambda found: f"_{ord(found[0]):x}_", name)


def _exhibits(
    tables: Sequence[Table], figures: Sequence[Figure], only: Sequence[str]
) -> list[Exhibit]:
    """Return figures and tables, those of one name together, in the order of the experiments."""
    drawn = {figure.name: figure for figure in figures}
    names = dict.fromkeys([*drawn, *(table.name for table in tables)])
    exhibits = []
    for name in sorted(names, key=lambda name: _place(name, only)):
        figure = drawn.get(name)
        own = [table for table in tables if table.name == name]
        title = figure.title if figure is not None else own[0].title
        panels = [] if figure is None else inline_panels(figure, f"f-{identifier(name)}")
        exhibits.append(Exhibit(identifier(name), title, figure, panels, own))
    return exhibits


def _place(name: str, only: Sequence[str]) -> int:
    """Return where a table or figure stands: with its experiment, whose name its own begins with.

    >>> _place("ablation-exposure", ["table2", "ablation"]), _place("tuning", ["table2"])
    (1, 1)
    """
    whose = [place for place, one in enumerate(only) if name == one or name.startswith(f"{one}-")]
    return whose[-1] if whose else len(only)
