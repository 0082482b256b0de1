"""How each ranker did in Table 2, and the few that a reader looks for first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ebrank.experiments.document import DatasetRecord
from ebrank.experiments.framework.entrants import (
    EBRANK,
    ENTRANTS,
    OURS,
    PAPER,
    UCBRANK,
    Entrant,
)
from ebrank.experiments.framework.outcome import Cell, Column, Row, Table

COLD, WARM, CUM, RUN = MEASURES = ("Cold-NDCG", "Warm-NDCG", "Cum-NDCG", "Run-NDCG")
CLICKS_AS_FEATURE = "cftopk:features=concate"
ALWAYS = ("bm25", CLICKS_AS_FEATURE, UCBRANK, *OURS)
CAPTION = (
    "Some rows of the table of all rankers, with its marks. Bold is the best of the rows here. Of "
    "the other rankers with clicks as a feature, only the best by Cum-NDCG is here."
)


@dataclass(frozen=True)
class Standing:
    """How an entrant did on one dataset: a cell for each measure.

    Attributes:
        published: the figures to compare ours with, by measure, if there are any.
    """

    entrant: Entrant
    cells: Mapping[str, Cell]
    published: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its label, with the setting where the label alone is ambiguous."""
        return self.entrant.name

    def value(self, measure: str) -> float:
        """Return the mean over trials."""
        value = self.cells[measure].value
        assert value is not None
        return value

    def ends(self, measure: str) -> tuple[float, float]:
        """Return the mean less and plus one standard deviation."""
        value, deviation = self.value(measure), self.cells[measure].sd or 0.0
        return value - deviation, value + deviation


def standings(table: Table | None, data: DatasetRecord) -> dict[str, Standing]:
    """Return how every entrant did on a dataset, by key; empty without a Table 2."""
    if table is None:
        return {}
    dataset, published = data.name, _published(data)
    columns = {
        column.title: place for place, column in enumerate(table.columns) if column.group == dataset
    }
    rows = {(row.cells[0], row.group): row for row in table.rows}
    standings = {}
    for entrant in ENTRANTS:
        row = rows.get((entrant.label, entrant.heading))
        cells = {} if row is None else _cells(row, columns)
        if len(cells) == len(MEASURES):
            theirs = published.get((entrant.label, entrant.setting), {})
            standings[entrant.key] = Standing(entrant, cells, {} if entrant.apart else theirs)
    return standings


def _published(data: DatasetRecord) -> dict[tuple[str, str], dict[str, float]]:
    """Return the published figures by label and setting, then by measure."""
    figures: dict[tuple[str, str], dict[str, float]] = {}
    for entry in (entry for section in data.ledger for entry in section.entries):
        if entry.group and entry.reference is not None:
            figures.setdefault((entry.name, entry.group), {})[entry.figure] = entry.reference
    return figures


def headline(standings: Mapping[str, Standing]) -> list[Standing]:
    """Return the entrants that a reader looks for first, in the order of the table."""
    others = [
        standings[entrant.key]
        for entrant in PAPER
        if entrant.key in standings and entrant.key not in ALWAYS and entrant.group == "with"
    ]
    best = max(others, key=lambda standing: standing.value(CUM), default=None)
    return [standing for key, standing in standings.items() if key in ALWAYS or standing is best]


def headline_table(chosen: Sequence[Standing], reference: str = "") -> Table:
    """Return the figures of some entrants beside published ones; the best are bold."""
    best = {measure: max(standing.value(measure) for standing in chosen) for measure in MEASURES}
    published = {measure for standing in chosen for measure in standing.published}
    rows = []
    for standing in chosen:
        cells: list[Cell | str] = [standing.name]
        for measure in MEASURES:
            cell = standing.cells[measure]
            cells.append(replace(cell, best=standing.value(measure) == best[measure]))
            if measure in published:
                cells.append(Cell(standing.published.get(measure), digits=cell.digits))
        entrant = standing.entrant
        rows.append(Row(tuple(cells), apart=entrant.apart, focus=entrant.key == EBRANK))
    columns = [Column("ranker")]
    for measure in MEASURES:
        beside = [Column("ours", measure), Column(reference, measure)]
        columns += beside if measure in published else [Column(measure)]
    return Table("headline", "Some rankers", CAPTION, tuple(columns), tuple(rows))


def _cells(row: Row, columns: Mapping[str, int]) -> dict[str, Cell]:
    """Return the measures that a row has."""
    cells = {title: row.cells[columns[title]] for title in MEASURES if title in columns}
    return {
        title: cell
        for title, cell in cells.items()
        if isinstance(cell, Cell) and cell.value is not None
    }
