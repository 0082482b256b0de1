"""The top of the page: the rankers a reader looks for first, and the results in words.

`golden/` has the words and the short tables of several reproductions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebrank.experiments.document import Document
from ebrank.experiments.exhibits import table2 as table2_exhibit
from ebrank.experiments.framework.outcome import Cell, Row
from ebrank.report.page import summary
from ebrank.report.tables.markdown import markdown
from tests.golden import check_golden
from tests.report.results import MARKS, SCORES, TITLES, reproduction, results, table2, waiting
from tests.report.sample import document

DATA = replace(results(), figures=())
"""Without figures, which take the longest."""
CFTOPK, PDGD = DATA.findings
UNDECIDED = replace(DATA, findings=(replace(CFTOPK, verdict="undecided"), PDGD))
SOME_PDGD = replace(UNDECIDED, findings=(PDGD, replace(PDGD, verdict="confirmed")))
REAL = replace(DATA, name="real", stands_in_for=None, reference="")
BETTER = replace(CFTOPK, name=table2_exhibit.better_than("ucbrank"), ours=True)
WORSE = replace(BETTER, verdict="contradicted")
OURS = replace(DATA, findings=(replace(CFTOPK, ours=True),))
DEEPER = {"cutoffs": [10, 5], "list_length": 5}
OTHER_COLUMNS = replace(waiting(), columns=waiting().columns[:1], rows=())


def words(shown: Document) -> Iterator[str]:
    """Yield everything that the summary says."""
    yield f"# {summary.title(shown)}"
    yield summary.simulated(shown)
    yield summary.measures(shown)
    for each in summary.summaries(shown):
        yield f"## {each.name}"
        yield from each.sentences
        yield "" if each.table is None else markdown(each.table)


@pytest.mark.parametrize(
    ("name", "changes", "scores", "marks"),
    [
        ("usual", {}, {}, {}),
        ("better-lists", {"datasets": (replace(DATA, findings=(BETTER,)),)}, {}, {}),
        ("worse-lists", {"datasets": (replace(DATA, findings=(WORSE,)),)}, {}, {}),
        ("no-ranks", {"config": {}}, {}, {}),
        ("two", {"datasets": (DATA,) * 2, "trials": 1}, {}, {}),
        ("undecided", {"datasets": (UNDECIDED,)}, {}, {("ebrank", 2): "*"}),
        ("two-undecided", {"datasets": (UNDECIDED,) * 2}, {}, {("ebrank", 2): "*"}),
        ("pdgd", {"datasets": (SOME_PDGD,)}, {}, {}),
        ("ucbrank-leads", {}, {"ucbrank": (0.5, 0.8, 165.0)}, {}),
        ("ebrank-third", {}, {"prior": (0.5, 0.9, 100.0)}, {}),
        ("real", {"datasets": (DATA, REAL), "config": DEEPER}, {}, {}),
        ("auto", {"tables": (), "datasets": (OURS,)}, {}, {}),
        ("no-waits", {"datasets": (replace(DATA, tables=(OTHER_COLUMNS,), findings=()),)}, {}, {}),
        ("nothing", {"tables": (), "datasets": ()}, {}, {}),
    ],
)
def test_the_summary_of(
    name: str,
    changes: dict[str, Any],
    scores: dict[str, tuple[float, float, float]],
    marks: dict[tuple[str, int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key, figures in scores.items():
        monkeypatch.setitem(SCORES, key, figures)
    for place, mark in marks.items():
        monkeypatch.setitem(MARKS, place, mark)
    shown = replace(reproduction(), datasets=(DATA,))
    text = "\n\n".join(words(replace(shown, **changes)))
    check_golden(Path(__file__).parent / "golden" / f"{name}.md", text)


def test_figures_are_those_of_table_2() -> None:
    shown = summary.standings(table2(), DATA)
    for key, scores in SCORES.items():
        assert [cell.value for cell in shown[key].cells.values()] == [*scores, scores[2] / 200]
    assert shown.keys() == SCORES.keys()
    assert summary.standings(table2(), replace(DATA, name="another")) == {}
    rows = tuple(
        Row((row.cells[0], *[Cell(None)] * 4), row.group)
        if row.cells[0] == "EBRank (paper)"
        else row
        for row in table2().rows
    )
    without = summary.standings(replace(table2(), rows=rows), DATA)
    assert without.keys() == SCORES.keys() - {"ebrank"}, "it has no figures"


def test_of_the_others_the_best_with_behavior_is_shown() -> None:
    without = summary.standings(table2(without="pdgd:features=concate"), DATA)
    assert "PRIOR" in [standing.name for standing in summary.headline(without)]


def test_it_shows_all_measures_of_the_rankers_in_its_table() -> None:
    (shown,) = summary.summaries(reproduction())
    titles = [panel.partition("<title>")[2].partition("<")[0] for panel in shown.panels]
    assert titles == [f"Performance over time: {title}" for title in TITLES]
    for panel in shown.panels:
        assert ">UCBRank<" in panel
        assert ">PDGD<" in panel
        assert ">MGD<" not in panel


def test_each_part_stands_without_the_others() -> None:
    (drawn,) = summary.summaries(replace(reproduction(), tables=()))
    assert drawn.table is None
    assert ">MGD<" in drawn.panels[0]
    (tabled,) = summary.summaries(replace(reproduction(), datasets=(DATA,)))
    assert not tabled.panels
    assert tabled.table is not None
    assert summary.summaries(document(tables=(), datasets=(DATA,))) == []
