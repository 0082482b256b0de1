"""The top of the page: what was simulated, and what came out, in one look."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ebrank.experiments.document import DatasetRecord, Document
from ebrank.experiments.outcome import Figure, Table
from ebrank.report.headline import CUM, WARM, headline, headline_table, standings
from ebrank.report.plots import inline_panels
from ebrank.report.sentences import listed, sentences

MEASURES = (
    "Cold-NDCG judges the last model as if nobody had clicked, Warm-NDCG with the clicks; Cum-NDCG "
    "sums up the lists that users saw, the later ones with more weight. All are at rank 5 and on "
    "test queries."
)


@dataclass(frozen=True)
class Glance:
    """One dataset's results in one look."""

    id: str
    name: str
    panels: Sequence[str]
    table: Table | None
    sentences: Sequence[str]


def glances(document: Document) -> list[Glance]:
    """Return one for each dataset that has something to look at."""
    table = next((one for one in document.tables if one.name == "table2"), None)
    made = []
    for number, data in enumerate(document.datasets):
        found = standings(table, data.name)
        chosen = headline(found)
        styles = {one.entrant.style for one in chosen}
        panels = _panels(data.figures, styles, f"glance-{number}")
        if panels or chosen:
            own = headline_table(chosen) if chosen else None
            told = sentences(data, found)
            made.append(Glance(f"glance-{number}", data.name, panels, own, told))
    return made


def simulated(document: Document) -> str:
    """Return what was simulated, in words."""
    if not document.datasets:
        return ""
    trials = "one trial" if document.trials == 1 else f"each of {document.trials} trials"
    served = [
        f"{data.sessions:,} sessions on {data.name} ({_size(data)})" for data in document.datasets
    ]
    told = f"In {trials}, every ranker served simulated users: {listed(served)}."
    config = document.config
    if "warmup_sessions" in config and "updates" in config:
        told += (
            f" BM25 had served each query {config['warmup_sessions']} times before. New items kept "
            f"entering; rankers learned from clicks, in {config['updates']} updates."
        )
    return told


def _size(data: DatasetRecord) -> str:
    told = f"{data.queries:,} queries, {data.rows:,} items"
    if data.stands_in_for is not None and data.stands_in_for != data.name:
        told += f"; synthetic, in place of {data.stands_in_for}"
    return told


def _panels(figures: Sequence[Figure], styles: Collection[str], prefix: str) -> list[str]:
    """Return Warm- and Cum-NDCG over time of some rankers, of all without any."""
    figure = next((one for one in figures if one.name.partition("-")[0] == "time"), None)
    if figure is None:
        return []
    drawn = tuple(
        replace(
            panel,
            series=tuple(one for one in panel.series if not styles or one.style in styles),
        )
        for panel in figure.panels
        if panel.title in (WARM, CUM)
    )
    return inline_panels(replace(figure, panels=drawn), prefix)
