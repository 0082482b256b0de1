"""How each ranker did in Table 2, and the few that a reader looks for first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ebrank.experiments.framework.entrants import (
    EBRANK,
    ENTRANTS,
    EXPOSURE,
    PAPER,
    UCBRANK,
    Entrant,
)
from ebrank.experiments.framework.outcome import Cell, Column, Row, Table

COLD, WARM, CUM, RUN = MEASURES = ("Cold-NDCG", "Warm-NDCG", "Cum-NDCG", "Run-NDCG")
CLICKS_AS_FEATURE = "cftopk:features=concate"
ALWAYS = ("bm25", CLICKS_AS_FEATURE, UCBRANK, EBRANK, EXPOSURE)
CAPTION = (
    "Some rows of the table of all rankers, with its marks. Bold is the best of the rows here. Of "
    "the other rankers with behavior, only the best by Cum-NDCG is here."
)


@dataclass(frozen=True)
class Standing:
    """How an entrant did on one dataset: a cell for each measure."""

    entrant: Entrant
    cells: Mapping[str, Cell]

    @property
    def name(self) -> str:
        """Its label, with the setting where the label alone is ambiguous."""
        return self.entrant.name

    def value(self, measure: str) -> float:
        """Return the mean over trials."""
        value = self.cells[measure].value
        assert value is not None
        return value


def standings(table: Table | None, dataset: str) -> dict[str, Standing]:
    """Return how every entrant did on a dataset, by key; without a Table 2 there are none."""
    if table is None:
        return {}
    columns = {
        column.title: place for place, column in enumerate(table.columns) if column.group == dataset
    }
    rows = {(row.cells[0], row.group): row for row in table.rows}
    standings = {}
    for entrant in ENTRANTS:
        row = rows.get((entrant.label, entrant.heading))
        cells = {} if row is None else _cells(row, columns)
        if len(cells) == len(MEASURES):
            standings[entrant.key] = Standing(entrant, cells)
    return standings


def headline(standings: Mapping[str, Standing]) -> list[Standing]:
    """Return those that a reader looks for first, in the order of the table."""
    others = [
        standings[entrant.key]
        for entrant in PAPER
        if entrant.key in standings and entrant.key not in ALWAYS and entrant.group == "with"
    ]
    best = max(others, key=lambda standing: standing.value(CUM), default=None)
    return [standing for key, standing in standings.items() if key in ALWAYS or standing is best]


def headline_table(chosen: Sequence[Standing]) -> Table:
    """Return the figures of some entrants; the best of each measure are bold."""
    best = {measure: max(standing.value(measure) for standing in chosen) for measure in MEASURES}
    rows = []
    for standing in chosen:
        cells = (
            replace(standing.cells[measure], best=standing.value(measure) == best[measure])
            for measure in MEASURES
        )
        rows.append(Row((standing.name, *cells), apart=standing.entrant.apart))
    columns = (Column("ranker"), *map(Column, MEASURES))
    return Table("headline", "Some rankers", CAPTION, columns, tuple(rows))


def _cells(row: Row, columns: Mapping[str, int]) -> dict[str, Cell]:
    """Return the measures that a row has."""
    cells = {title: row.cells[columns[title]] for title in MEASURES if title in columns}
    return {
        title: cell
        for title, cell in cells.items()
        if isinstance(cell, Cell) and cell.value is not None
    }
