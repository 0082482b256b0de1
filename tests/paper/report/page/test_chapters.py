"""How the page is divided."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ebrank.paper.framework.figures import Figure
from ebrank.paper.report.page.chapters import chapters, identifier
from tests.paper.report.sample import PERFORMANCE, dataset, document


def test_exhibits_follow_the_experiments_with_a_figures_table_beside_it() -> None:
    names = ("tuning", "time", "table3", "ablation-x")
    data = replace(
        dataset("d"),
        tables=tuple(replace(PERFORMANCE, name=name) for name in names),
        figures=tuple(Figure(name, name, "", ()) for name in ("ablation", "time")),
    )
    only = ("table2", "table3", "time", "ablation")
    shared, own = chapters(document(datasets=(data,), only=only))
    assert [exhibit.id for exhibit in shared.exhibits] == ["table2"]
    ids = [exhibit.id for exhibit in own.exhibits]
    assert ids == ["table3", "time", "ablation", "ablation-x", "tuning"]
    time = own.exhibits[1]
    assert time.figure is not None
    assert [table.name for table in time.tables] == ["time"]


@given(st.text(max_size=8), st.text(max_size=8))
def test_other_names_have_other_ids(name: str, other: str) -> None:
    assert (identifier(name) == identifier(other)) == (name == other)
    assert re.fullmatch("[a-zA-Z0-9_-]*", identifier(name))
