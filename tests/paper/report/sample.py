"""A document with every kind of table and figure, made by hand, whose names try to break out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ebrank.paper.document import Document
from ebrank.paper.framework.display import (
    Cell,
    Column,
    Display,
    Effect,
    Figure,
    Finding,
    Panel,
    Row,
    Series,
    Table,
)
from ebrank.paper.framework.entrants import FIGURES
from ebrank.paper.ledger import LedgerSection, compared

NASTY = "<script>document.title='hit'</script> & \"q\" 'a' | \\x{y} `c` $z$ %_^~#*[1]"
"""What a folder, and so a dataset, might be called."""

PERFORMANCE = Table(
    "table2",
    "Ranking performance",
    "Best in bold. * : better than its group.",
    (
        Column("ranker"),
        *(Column(title, data) for data in ("MQ2007", "MSLR") for title in ("Cold", "Warm", "Cum")),
    ),
    (
        Row(("BM25", *[Cell(0.474, sd=0.004)] * 6), "W/o-Behav"),
        Row(("CFTopK", *[Cell(0.5, sd=0.1234, best=True)] * 6), "W/o-Behav"),
        Row(("EBRank", *[Cell(171.3, sd=10.2, digits=1, best=True, marks="*†")] * 6), "W/-Behav"),
        Row(("Oracle", *[Cell(None)] * 6), "W/-Behav", apart=True),
    ),
)
HOSTILE = Table(
    *("odd", NASTY, NASTY),
    (Column(NASTY), Column("x", NASTY), Column("y")),
    (Row((NASTY, NASTY, Cell(0.5)), NASTY),),
)


def over_time(kind: Any = "lines") -> Panel:  # noqa: ANN401
    """All rankers, ending close together."""
    x = tuple(float(step * 500) for step in range(12))
    series = []
    for place, entrant in enumerate(FIGURES):
        y = tuple(0.5 + 0.002 * place + 0.01 * step for step in range(12))
        series.append(Series(entrant.label, entrant.style, x, y, (0.01,) * 12))
    return Panel("Warm-NDCG", "sessions", "NDCG@5", tuple(series), kind)


def bars(names: tuple[str, ...]) -> Panel:
    heights = tuple(0.1 * (place + 1) for place in range(len(names)))
    errors = (0.02,) * len(names)
    series = (
        Series("CFTopK", "cftopk", names, heights, errors),
        Series("EBRank", "ebrank", names, heights, errors),
    )
    return Panel("Scores", "item", "score", series, "bars")


GRID = Panel(
    *("Cum-NDCG", "η", "Cum-NDCG"),
    (Series("EBRank", "ebrank", (0.1, 0.2, 0.7, 1.0), (1.0, 2.0, 3.0, 2.0)),),
    log_x=True,
)
FIGURE = Figure("time", "Performance over time", "Bands are deviations.", (over_time(),) * 3)
OTHERS = Figure(
    "kinds",
    f"All kinds {NASTY}",
    NASTY,
    (over_time("steps"), bars(tuple("ABC")), bars(("a long name", "b")), GRID),
)
FINDINGS = (
    Finding(
        *("one", "EBRank is first", "confirmed", "p = .01", "Someone is first", "EBRank"),
        effect=Effect(0.1, 0.05, 0.15, "Warm-NDCG"),
    ),
    Finding("two", f"{NASTY} is last", "contradicted", "p = <.0001", NASTY, NASTY),
    Finding(
        *("three", "UCBRank is first", "undecided", "p = .3", "Someone is first", "UCBRank"),
        effect=Effect(-0.1, -0.25, 0.05, NASTY),
    ),
)
LEDGER = (
    LedgerSection("What the paper finds", "", findings=FINDINGS),
    LedgerSection(
        "Table 2",
        "Reference: the paper.",
        Table(
            *("ledger", "Table 2", ""),
            (Column("ranker"), *(Column(name, "Warm") for name in ("reference", "ours", "diff"))),
            (
                Row(("EBRank", *compared(0.849, np.array([0.8, 0.802]))), "with"),
                Row((NASTY, *compared(0.5, None)), "with"),
            ),
        ),
    ),
)


def document(**changes: Any) -> Document:  # noqa: ANN401
    fields: dict[str, Any] = {
        "command": f"ebrank reproduce --dataset '{NASTY}'",
        "seed": 1,
        "trials": 2,
        "versions": {"ebrank": "0.1.0", "numpy": NASTY},
        "config": {
            **{"entering_probability": 1.0, "cutoffs": [5, 10], "sessions": None},
            **{"list_length": 5, "warmup_sessions": 20, "updates": 10},
        },
        **{"name": NASTY, "fingerprint": "00ff", "stands_in_for": "MQ2007", "queries": 1643},
        **{"rows": 67000, "features": 40, "sessions": 59000, "test_queries": 300, "folds": ()},
        **{"headline": "", "tuning": (), "runs": ({"ranker": "ebrank"},)},
        "displays": {
            "table2": Display((PERFORMANCE, HOSTILE), (), FINDINGS),
            "time": Display(figures=(FIGURE, OTHERS)),
        },
        "ledger": LEDGER,
    }
    return Document(**(fields | changes))
