"""Table 1: the dataset after filtering, in the paper's columns."""

from __future__ import annotations

from ebrank.paper.framework.display import Cell, Column, Display, Row, Table
from ebrank.paper.framework.exhibit import Exhibit, NamedResults, Setup
from ebrank.paper.framework.folds import Fold


def display(setup: Setup, results: NamedResults) -> Display:
    """Return a line about the dataset, or about each of its folds."""
    rows = [_figures(part) for part in setup.parts]
    table = Table(
        "table1",
        "Datasets",
        "After filtering: queries with more than five candidates, test queries with a relevant "
        "item, features that are not constant over the training queries.",
        (Column("dataset"), *map(Column, rows[0])),
        tuple(
            Row((part.name, *figures.values()))
            for part, figures in zip(setup.parts, rows, strict=True)
        ),
    )
    return Display(tables=(table,))


def _figures(part: Fold) -> dict[str, Cell | str]:
    return {
        "queries": _count(part.queries),
        "train / vali / test": " / ".join(f"{size:,}" for size in part.splits),
        "candidates a query": Cell(part.rows / part.queries, digits=1),
        "rows": _count(part.rows),
        "features": _count(part.features),
        "labels": f"0–{part.max_label}",
        "sessions of a trial": _count(part.sessions),
    }


def _count(number: int) -> Cell:
    return Cell(float(number), digits=0)


EXHIBIT = Exhibit("table1", display)
