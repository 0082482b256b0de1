"""The rankers that a reader looks for first, with their figures from Table 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ebrank.experiments.lineup import EBRANK, ENTRANTS, EXPOSURE, NAMES, PAPER, UCBRANK, Entrant
from ebrank.experiments.outcome import Cell, Column, Row, Table

COLD, WARM, CUM = MEASURES = ("Cold-NDCG", "Warm-NDCG", "Cum-NDCG")
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
        """Its label, with the setting where the label alone does not tell.

        >>> Standing(ENTRANTS[1], {}).name
        'DBGD without behavior'
        """
        one = self.entrant
        if one.style not in NAMES:
            return one.label
        return f"{one.label} {'without' if one.group == 'without' else 'with'} behavior"

    def value(self, measure: str) -> float:
        """Return the mean over trials."""
        value = self.cells[measure].value
        assert value is not None
        return value


def standings(table: Table | None, dataset: str) -> dict[str, Standing]:
    """Return how every entrant did on a dataset, by key; none where Table 2 has no such figures."""
    if table is None:
        return {}
    columns = {
        column.title: place for place, column in enumerate(table.columns) if column.group == dataset
    }
    rows = {(row.cells[0], row.group): row for row in table.rows}
    found = {}
    for one in ENTRANTS:
        row = rows.get((one.label, one.heading))
        cells = {} if row is None else _cells(row, columns)
        if len(cells) == len(MEASURES):
            found[one.key] = Standing(one, cells)
    return found


def headline(found: Mapping[str, Standing]) -> list[Standing]:
    """Return those that a reader looks for first, in the order of the table."""
    others = [
        found[one.key]
        for one in PAPER
        if one.key in found and one.key not in ALWAYS and one.group == "with"
    ]
    best = max(others, key=lambda one: one.value(CUM), default=None)
    return [one for key, one in found.items() if key in ALWAYS or one is best]


def headline_table(chosen: Sequence[Standing]) -> Table:
    """Return the figures of some entrants; the best of each measure are bold."""
    best = {measure: max(one.value(measure) for one in chosen) for measure in MEASURES}
    rows = []
    for one in chosen:
        cells = (
            replace(one.cells[measure], best=one.value(measure) == best[measure])
            for measure in MEASURES
        )
        rows.append(Row((one.name, *cells), apart=one.entrant.apart))
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
