"""Table 1: the dataset after filtering, in the paper's columns."""

from __future__ import annotations

from ebrank.data.dataset import SPLITS
from ebrank.experiments.framework.experiment import Experiment, Results, Setup
from ebrank.experiments.framework.outcome import Cell, Column, Outcome, Row, Table


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return a line about the dataset."""
    data = setup.dataset
    sizes = [len(data.queries_in(split)) for split in SPLITS]
    figures: list[tuple[str, Cell | str]] = [
        ("queries", _count(data.n_queries)),
        ("train / vali / test", " / ".join(f"{size:,}" for size in sizes)),
        ("candidates a query", Cell(data.n_rows / data.n_queries, digits=1)),
        ("rows", _count(data.n_rows)),
        ("features", _count(data.n_features)),
        ("labels", f"0–{data.max_label}"),
        ("sessions of a trial", _count(setup.config.session_count(data))),
    ]
    table = Table(
        "table1",
        "Datasets",
        "After filtering: queries with more than five candidates, test queries with a relevant "
        "item, features that are not constant over the training queries.",
        (Column("dataset"), *(Column(title) for title, _ in figures)),
        (Row((data.name, *(figure for _, figure in figures))),),
    )
    return Outcome(tables=(table,))


def _count(number: int) -> Cell:
    return Cell(float(number), digits=0)


EXPERIMENT = Experiment("table1", "Table 1: datasets", outcome)
