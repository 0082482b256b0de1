"""The top of the page: what became of new items, and at what price.

`golden/` has the words of several reproductions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebrank.paper.document import Document
from ebrank.paper.exhibits.table2 import better_than
from ebrank.paper.framework.outcome import Cell, Finding, Row
from ebrank.paper.report.page import summary
from tests.golden import check_golden
from tests.paper.report.results import TITLES, reproduction, results, table2, waiting
from tests.paper.report.sample import document

DATA = replace(results(), figures=())
"""Without figures, which take the longest."""
BETTER = Finding(better_than("ucbrank"), "auto is better", "confirmed", "", ours=True)
WORSE = replace(BETTER, verdict="contradicted")
REAL = replace(DATA, name="real", stands_in_for=None, reference="")
DEEPER = {"cutoffs": [10, 5], "list_length": 5}
OTHER_COLUMNS = replace(waiting(), columns=waiting().columns[:1], rows=())
EMPTY = replace(
    table2(), rows=tuple(Row((row.cells[0], *[Cell(None)] * 4), row.group) for row in table2().rows)
)


def words(shown: Document) -> Iterator[str]:
    """Yield everything that the summary says."""
    yield f"# {summary.title(shown)}"
    yield summary.simulated(shown)
    yield summary.measures(shown)
    for each in summary.summaries(shown):
        yield f"## {each.name}"
        yield from each.sentences


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("usual", {}),
        ("better-lists", {"datasets": (replace(DATA, findings=(BETTER,)),)}),
        ("worse-lists", {"datasets": (replace(DATA, findings=(WORSE,)),)}),
        ("no-ranks", {"config": {}}),
        ("real", {"datasets": (DATA, REAL), "config": DEEPER, "trials": 1}),
        ("auto", {"tables": (), "datasets": (replace(DATA, tables=(), findings=(BETTER,)),)}),
        ("no-waits", {"datasets": (replace(DATA, tables=(OTHER_COLUMNS,)),)}),
        ("no-figures", {"tables": (EMPTY,)}),
        ("nothing", {"tables": (), "datasets": ()}),
    ],
)
def test_the_summary_of(name: str, changes: dict[str, Any]) -> None:
    shown = replace(reproduction(), datasets=(DATA,))
    text = "\n\n".join(words(replace(shown, **changes))) + "\n"
    check_golden(Path(__file__).parent / "golden" / f"{name}.md", text)


def test_it_shows_all_measures_of_the_rankers_that_a_reader_looks_for() -> None:
    (shown,) = summary.summaries(reproduction())
    titles = [panel.partition("<title>")[2].partition("<")[0] for panel in shown.panels]
    assert titles == [f"Performance over time: {title}" for title in TITLES]
    for panel in shown.panels:
        assert ">UCBRank<" in panel
        assert ">PDGD<" not in panel


def test_each_part_stands_without_the_others() -> None:
    without = replace(results(), tables=())
    (drawn,) = summary.summaries(document(tables=(), datasets=(without,)))
    assert (len(drawn.panels), drawn.sentences) == (4, [])
    (told,) = summary.summaries(replace(reproduction(), datasets=(DATA,)))
    assert not told.panels
    assert len(told.sentences) == 2
    assert summary.summaries(document(tables=(), datasets=(replace(DATA, tables=()),))) == []
