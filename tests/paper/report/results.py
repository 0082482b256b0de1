"""A dataset's Table 2, its waits and its figure over time, with figures known beforehand."""

from __future__ import annotations

from dataclasses import replace

from ebrank.paper.document import DatasetRecord, Document
from ebrank.paper.framework.entrants import ENTRANTS, FIGURES
from ebrank.paper.framework.figures import Figure, Panel, Series
from ebrank.paper.framework.outcome import Cell, Column, Finding, Row, Table
from tests.paper.report.sample import dataset, document

NAME = "data"
TITLES = ("Cold-NDCG", "Warm-NDCG", "Cum-NDCG", "Run-NDCG")
SCORES = {
    "bm25": (0.4, 0.4, 80.0),
    "cftopk:features=none": (0.5, 0.5, 100.0),
    "cftopk:features=concate": (0.3, 0.45, 95.0),
    "pdgd:features=none": (0.55, 0.55, 140.0),
    "pdgd:features=concate": (0.53, 0.7, 130.0),
    "prior": (0.5, 0.72, 125.0),
    "ucbrank": (0.5, 0.8, 150.0),
    "ebrank": (0.51, 0.79, 160.0),
    "ebrank:estimator=exposure": (0.52, 0.85, 170.0),
    "auto": (0.52, 0.86, 172.0),
    "thompson": (0.5, 0.75, 145.0),
    "random": (0.35, 0.35, 70.0),
    "oracle": (1.0, 1.0, 190.0),
}
"""Cold-, Warm- and Cum-NDCG by key; Run-NDCG follows from the last."""
SHOWN_SOON = {"auto": 0.95, "ebrank": 0.894, "ucbrank": 1.0, "cftopk:features=concate": 0.09}
"""The share of new relevant items that were shown within ten sessions, by key."""
FINDINGS = (Finding("x", "it holds", "confirmed", "", "Claims", "CFTopK"),)


def table2() -> Table:
    rows = []
    for entrant in ENTRANTS:
        if entrant.key in SCORES:
            scores = SCORES[entrant.key]
            cells = (
                Cell(score, 0.01, 1 if place == 2 else 3)
                for place, score in enumerate((*scores, scores[2] / 200))
            )
            rows.append(Row((entrant.label, *cells), entrant.heading, entrant.apart))
    columns = (Column("ranker"), *(Column(title, NAME) for title in TITLES))
    return Table("table2", "Ranking performance", "", columns, tuple(rows))


def waiting() -> Table:
    columns = [Column("ranker"), Column("items")]
    for name in ("first impression", "top 5"):
        columns += [Column("median wait", name), Column("by 10 sessions", name)]
    rows = []
    for entrant in (each for each in ENTRANTS if each.key in SHOWN_SOON):
        cells = map(Cell, (50.0, 0.0, SHOWN_SOON[entrant.key], 1.0, 0.8))
        rows.append(Row((entrant.label, *cells), entrant.heading))
    return Table("waiting", "Waiting", "", tuple(columns), tuple(rows))


def over_time() -> Figure:
    series = tuple(
        Series(each.label, each.style, (100.0, 200.0), (0.1, 0.2), (0.01, 0.01)) for each in FIGURES
    )
    panels = tuple(Panel(title, "sessions", title, series) for title in TITLES)
    return Figure("time", "Performance over time", "", panels)


def results() -> DatasetRecord:
    return replace(
        dataset(NAME),
        tables=(waiting(),),
        figures=(over_time(),),
        findings=FINDINGS,
        ledger=(),
        reference="paper",
    )


def reproduction() -> Document:
    config = {"warmup_sessions": 20, "updates": 10}
    return document(tables=(table2(),), datasets=(results(),), config=config)
