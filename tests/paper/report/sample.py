"""A document with every kind of table and figure, made by hand, whose names try to break out."""

from __future__ import annotations

from typing import Any

from ebrank.paper.document import DatasetRecord, Document, RunRecord
from ebrank.paper.framework.entrants import FIGURES
from ebrank.paper.framework.figures import Figure, Panel, Series
from ebrank.paper.framework.outcome import Cell, Column, Effect, Finding, Row, Table
from ebrank.paper.ledger import LedgerEntry, LedgerSection

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
    *("Cum-NDCG", "ε", "Cum-NDCG"),
    (Series("EBRank", "ebrank", (0.0, 1.0, 50.0, 70.0, 100.0), (1.0, 2.0, 3.0, 2.0, 1.0)),),
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
        effect=Effect(0.1, 0.05, 0.15, "Warm-NDCG", whole=0.5),
    ),
    Finding("two", f"{NASTY} is last", "contradicted", "p = <.0001", NASTY, NASTY),
    Finding(
        *("three", "UCBRank is first", "undecided", "p = .3", "Someone is first", "UCBRank"),
        effect=Effect(-0.1, -0.25, 0.05, NASTY, border=-0.02, whole=0.5),
    ),
)
LEDGER = (
    LedgerSection("What the paper finds", "", findings=FINDINGS),
    LedgerSection(
        "Table 2",
        "Reference: the paper.",
        (
            LedgerEntry("EBRank", "Warm", 0.849, 0.852, 0.004, group="with"),
            LedgerEntry("EBRank", "Cum", 171.3, 100.0, 3.0, digits=1, group="with"),
            LedgerEntry(NASTY, "Warm", 0.5, None, group="with"),
        ),
    ),
    LedgerSection("Table 1", "", (LedgerEntry("data", "queries", 1643.0, 164.0, digits=0),)),
)


def dataset(name: str = NASTY) -> DatasetRecord:
    trials = (0.5, 0.6)
    run = RunRecord(
        *("ebrank", "EBRank", "ebrank:epsilon=5.0", 1.0, None, "pbm", 1.0, 9000),
        *(trials, trials, trials, trials),
    )
    columns, row = (Column(NASTY), Column("y", NASTY)), Row((NASTY, Cell(0.5)), NASTY)
    return DatasetRecord(
        *(name, "00ff", "MQ2007", 1643, 67000, 40, 59000, (), (run,)),
        tables=(Table("odd", NASTY, NASTY, columns, (row,)),),
        figures=(FIGURE, OTHERS),
        findings=FINDINGS,
        ledger=LEDGER,
    )


def document(**changes: Any) -> Document:  # noqa: ANN401
    fields: dict[str, Any] = {
        "command": f"ebrank reproduce --dataset '{NASTY}'",
        "seed": 1,
        "trials": 2,
        "only": ("table2", "time"),
        "versions": {"ebrank": "0.1.0", "numpy": NASTY},
        "config": {"entering_probability": 1.0, "cutoffs": [5, 10], "sessions": None},
        "tables": (PERFORMANCE,),
        "datasets": (dataset(),),
    }
    return Document(**(fields | changes))
