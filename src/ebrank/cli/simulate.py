"""`ebrank simulate`: rankers on simulated users, trial by trial."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console, lab
from ebrank.cli.options import AS_JSON
from ebrank.cli.verbs import REQUIRED, opt, verb
from ebrank.errors import EBRankError, ParameterError

if TYPE_CHECKING:
    from ebrank.experiments.framework.outcome import Table
    from ebrank.experiments.query_files import QueryRow
    from ebrank.rankers.base import Ranker
    from ebrank.simulation.result import Result

WIDE = 92
"""The fewest characters that leave room for run times."""


@verb(*lab.simulation_options())
def simulate(
    rankers: tuple[str, ...] = opt(
        REQUIRED,
        "A ranker from `ebrank rankers`, or your own as MODULE:CLASS; repeatable.",
        f"--ranker {lab.RANKER}",
    ),
    per_query: str | None = opt(
        None,
        "CSV file for the measures of each test query.",
        "FILE",
        type=click.Path(dir_okay=False),
    ),
    trec: str | None = opt(
        None,
        "Folder for files in TREC format: qrels.txt, and a run per ranker and trial.",
        "DIR",
        type=click.Path(file_okay=False),
    ),
    as_json: bool = AS_JSON,
    **options: Any,  # noqa: ANN401
) -> None:
    """Run rankers on simulated users and measure them.

    Users ask, look and click; items enter; the ranker learns. Cold-NDCG measures how the final
    model ranks new items, Warm-NDCG how it ranks items with their clicks. Cum-NDCG sums up the
    lists that users saw, with more weight on later ones; Run-NDCG is their mean. All are measured
    on test queries.

    --fold all runs every fold of a dataset and pools their test queries.

    Ctrl-C stops and reports the finished trials; --out keeps them for the next run.

    Examples:
        ebrank simulate --dataset mq2007-like --scale 0.1 --ranker ebrank
        ebrank simulate --dataset ~/datasets/MQ2008/Fold1 --ranker bm25 --out run1
        ebrank simulate --dataset MQ2008 --ranker bm25 --ranker ebrank:epsilon=5
        ebrank simulate --dataset MQ2008 --ranker auto --users dcm --click-rate 0.15
        ebrank simulate --dataset mine --baseline-feature 3 --ranker ebrank --json
        ebrank simulate --dataset MQ2008 --ranker auto --cluster dask://node1:8786
        ebrank simulate --dataset MQ2008 --fold all --ranker auto --trec trec
    """
    from ebrank.experiments.query_files import query_rows, write_table, write_trec
    from ebrank.rankers import registry

    chosen = list(dict.fromkeys(map(registry.parse, rankers)))
    if per_query is not None:
        if not per_query.endswith(".csv"):
            raise ParameterError(f"{per_query}: the name must end with .csv")
        Path(per_query).parent.mkdir(parents=True, exist_ok=True)  # fail now rather than later
    if trec is not None:
        Path(trec).mkdir(parents=True, exist_ok=True)
    finished = FinishedFolds(chosen, len(lab.folds_to_run(options["dataset"], options)))
    rows: list[QueryRow] = []
    with lab.note_of_compilation():
        try:
            for plan in lab.plan_folds(**options):
                if not as_json:
                    click.echo(str(plan))
                results = finished.run(plan)
                if per_query is not None:
                    rows += query_rows(plan.dataset, results, plan.fold)
                if trec is not None:
                    folder = Path(trec) / ("" if plan.fold is None else f"Fold{plan.fold}")
                    write_trec(folder, plan.config.judged(plan.dataset), results)
        except KeyboardInterrupt:
            if not finished.by_fold:
                raise
            finished.print_so_far(as_json)
            raise lab.stopped(*finished.progress(options["trials"]), options["out"]) from None
        except (OSError, EBRankError):
            finished.print_so_far(as_json)
            raise
    print_results(finished.results(), as_json)
    if per_query is not None:
        write_table(Path(per_query), rows)


@dataclass
class FinishedFolds:
    """Runs rankers on one fold after the other, and keeps the results.

    Attributes:
        rankers: all of them.
        folds: how many there are; 1 for a dataset without any.
        by_fold: the results of each fold so far; the last lacks trials if it was stopped.
    """

    rankers: Sequence[Ranker]
    folds: int
    by_fold: dict[int | None, list[Result]] = field(default_factory=dict)

    def run(self, plan: lab.SimulationPlan) -> list[Result]:
        """Run the rankers on the next fold, or on a dataset without folds; return the results."""
        from ebrank.simulation.parallel import Interrupted, NotKept

        try:
            self.by_fold[plan.fold] = run(plan, self.rankers)
        except (Interrupted, NotKept) as problem:
            self.by_fold[plan.fold] = list(problem.results)
            raise
        return self.by_fold[plan.fold]

    def results(self) -> list[Result]:
        """Return the results of each ranker, over all folds if there are several."""
        from ebrank.experiments.framework.folds import pooled

        folds = list(self.by_fold.values())
        return folds[0] if len(folds) == 1 else list(map(pooled, zip(*folds, strict=True)))

    def print_so_far(self, as_json: bool) -> None:
        """Print the results of an only dataset; folds cannot be pooled before all have finished."""
        if self.folds == 1:
            for results in self.by_fold.values():
                print_results(results, as_json)

    def progress(self, trials: int) -> tuple[int, int]:
        """Return how many trials finished, and how many there are in all folds."""
        finished = sum(len(result.trials) for own in self.by_fold.values() for result in own)
        return finished, trials * len(self.rankers) * self.folds


def run(plan: lab.SimulationPlan, rankers: Sequence[Ranker]) -> list[Result]:
    """Run the trials, keeping the results on disk if there is a folder for them."""
    from ebrank.cli.stored_runs import KIND, RESULTS, write_results
    from ebrank.simulation import parallel

    with lab.running(plan, "simulating", RESULTS, KIND, plan.seed) as how:

        def keep(results: list[Result]) -> None:
            if how["store"] is not None:
                write_results(how["store"], plan, rankers, results)

        try:
            return parallel.run(plan.dataset, rankers, plan.config, plan.seed, finished=keep, **how)
        except parallel.Interrupted as interrupted:
            keep(interrupted.results)
            raise


def print_results(results: Sequence[Result], as_json: bool) -> None:
    """Print what has finished: a table, or one JSON document."""
    if as_json:
        console.print_json(plain(results))
    elif any(result.trials for result in results):
        console.print_table(table([result for result in results if result.trials]))
    lab.warn_of_unserved(results)


def table(results: Sequence[Result]) -> Table:
    """Return the measures of each ranker, and run times where the terminal has room for them."""
    from ebrank.experiments.framework.measures import COLUMNS, cells
    from ebrank.experiments.framework.outcome import Cell, Column, Row, Table

    wide = shutil.get_terminal_size().columns >= WIDE
    rows: list[tuple[Cell | str, ...]] = [
        (result.ranker, *cells(result), Cell(result.seconds, digits=2)) for result in results
    ]
    columns = (Column("ranker"), *COLUMNS, Column("seconds"))
    shown = len(columns) if wide else len(columns) - 1
    return Table("simulate", "", "", columns[:shown], tuple(Row(row[:shown]) for row in rows))


def plain(results: Sequence[Result]) -> dict[str, Any]:
    """Return results as plain objects, for JSON."""
    from ebrank.simulation.result import summary

    return {"rankers": [{"ranker": result.ranker} | summary(result) for result in results]}
