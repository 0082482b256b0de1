"""The parts of the page: chapters of exhibits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ebrank.paper.document import DatasetRecord, Document
from ebrank.paper.framework.figures import Figure
from ebrank.paper.framework.folds import in_words
from ebrank.paper.framework.outcome import Table
from ebrank.paper.report.figures.render import inline_panels


@dataclass(frozen=True)
class Exhibit:
    """A figure, tables, or both, with one name."""

    id: str
    title: str
    figure: Figure | None
    panels: Sequence[str]
    tables: Sequence[Table]


@dataclass(frozen=True)
class Chapter:
    """The exhibits of one dataset, or of all."""

    id: str
    title: str
    about: str
    exhibits: Sequence[Exhibit]


def chapters(document: Document) -> list[Chapter]:
    """Return the tables that datasets share, then each dataset's own."""
    made = []
    if document.tables:
        shared = _exhibits(document.tables, (), document.only)
        title = "Datasets and performance" if len(document.datasets) > 1 else "Performance"
        made.append(Chapter("shared", title, "", shared))
    for data in document.datasets:
        own = _exhibits(data.tables, data.figures, document.only)
        if own:
            made.append(Chapter(f"data-{identifier(data.name)}", data.name, size(data), own))
    return made


def size(data: DatasetRecord) -> str:
    """Return how large a dataset is, in words."""
    folds = f"{in_words(data.folds).capitalize()}, pooled, of up to " if data.folds else ""
    text = (
        f"{folds}{data.queries:,} queries, {data.rows:,} rows, {data.features} features; "
        f"{data.sessions:,} sessions a trial{' in all' if folds else ''}."
    )
    if data.stands_in_for is not None and data.stands_in_for != data.name:
        text += f" It is synthetic and stands in for {data.stands_in_for}."
    return text


def identifier(name: str) -> str:
    """Return a name as an element's id; different names give different ids.

    >>> identifier("time"), identifier("mq2007-like×0.1")
    ('time', 'mq2007-like_d7_0_2e_1')
    """
    return re.sub("[^a-zA-Z0-9-]", lambda match: f"_{ord(match[0]):x}_", name)


def _exhibits(
    tables: Sequence[Table], figures: Sequence[Figure], only: Sequence[str]
) -> list[Exhibit]:
    """Return figures and tables, grouped by name, in the order of the experiments."""
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
    """Return the position of a table or figure: its experiment's, whose name is its prefix.

    >>> _place("ablation-exposure", ["table2", "ablation"]), _place("tuning", ["table2"])
    (1, 1)
    """
    own = [
        place
        for place, experiment in enumerate(only)
        if name == experiment or name.startswith(f"{experiment}-")
    ]
    return own[-1] if own else len(only)
