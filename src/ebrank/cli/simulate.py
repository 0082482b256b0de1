"""`ebrank simulate`: rankers on simulated users, trial by trial."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console, lab
from ebrank.cli.lab_options import RANKER, simulation_options
from ebrank.cli.options import AS_JSON
from ebrank.cli.verbs import REQUIRED, opt, verb
from ebrank.errors import ParameterError

if TYPE_CHECKING:
    from ebrank.lab.rankers.base import Ranker
    from ebrank.lab.simulation.result import Result
    from ebrank.paper.framework.display import Table
    from ebrank.paper.query_files import QueryRow

RESULTS = "results.json"
KIND = "ebrank simulate"
WIDE = 92
"""The fewest characters that leave room for run times."""


@verb(simulation_options())
def simulate(
    rankers: tuple[str, ...] = opt(
        REQUIRED,
        "A ranker from `ebrank rankers`, or your own as MODULE:CLASS; repeatable.",
        f"--ranker {RANKER}",
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
    from ebrank.lab.rankers import registry
    from ebrank.paper.query_files import query_rows, write_table, write_trec

    chosen = list(dict.fromkeys(map(registry.parse, rankers)))
    if per_query is not None:
        if not per_query.endswith(".csv"):
            raise ParameterError(f"{per_query}: the name must end with .csv")
        Path(per_query).parent.mkdir(parents=True, exist_ok=True)  # fail now rather than later
    if trec is not None:
        Path(trec).mkdir(parents=True, exist_ok=True)
    rows: list[QueryRow] = []

    def write(plan: lab.SimulationPlan, results: Sequence[Result]) -> None:
        if per_query is not None:
            rows.extend(query_rows(plan.dataset, results, plan.fold))
        if trec is not None:
            folder = Path(trec) / ("" if plan.fold is None else f"Fold{plan.fold}")
            write_trec(folder, plan.config.judged(plan.dataset), results)

    def announced(plan: lab.SimulationPlan) -> lab.SimulationPlan:
        if not as_json:
            click.echo(str(plan))
        return plan

    with lab.note_of_compilation():
        plans = map(announced, lab.plan_folds(**options))
        results = run_all(plans, chosen, options, write, lambda own: print_results(own, as_json))
    print_results(results, as_json)
    if per_query is not None:
        write_table(Path(per_query), rows)


def run_all(
    plans: Iterable[lab.SimulationPlan],
    rankers: Sequence[Ranker],
    options: Mapping[str, Any],
    write: Callable[[lab.SimulationPlan, Sequence[Result]], None] = lambda plan, results: None,
    show: Callable[[Sequence[Result]], None] = lambda results: None,
) -> list[Result]:
    """Run rankers on a dataset, or fold by fold; return the results of each over all folds.

    If it ends early, `show` gets what an only dataset has; folds cannot be pooled before the end.
    """
    from ebrank.lab.simulation.parallel import Interrupted
    from ebrank.paper.framework.folds import pooled

    finished: list[list[Result]] = []
    folds = len(lab.folds_to_run(options["dataset"], options))
    try:
        for plan in plans:
            finished.append(run(plan, rankers))
            write(plan, finished[-1])
    except KeyboardInterrupt as stopped:
        if isinstance(stopped, Interrupted):
            finished.append(stopped.results)  # of the fold in which it ended
        if not finished:
            raise
        if folds == 1:
            show(finished[0])
        trials = sum(len(result.trials) for own in finished for result in own)
        planned = options["trials"] * len(rankers) * folds
        raise lab.stopped(trials, planned, options["out"]) from None
    return finished[0] if folds == 1 else list(map(pooled, zip(*finished, strict=True)))


def run(plan: lab.SimulationPlan, rankers: Sequence[Ranker]) -> list[Result]:
    """Run the trials; with a folder, keep them there, and write `results.json` in the end."""
    from ebrank.lab.simulation import parallel

    with lab.running(plan, "simulating", RESULTS, KIND, plan.seed) as how:
        try:
            results = parallel.run(plan.dataset, rankers, plan.config, plan.seed, **how)
        except parallel.Interrupted as interrupted:
            write_results(plan, interrupted.results)
            raise
    write_results(plan, results)
    return results


def write_results(plan: lab.SimulationPlan, results: Sequence[Result]) -> None:
    """Write `results.json`: the results so far, and everything they depend on; no times."""
    from ebrank.lab.simulation.result import about_config, about_dataset, measured
    from ebrank.lab.simulation.stamps import versions
    from ebrank.lab.simulation.storage import write_json

    if plan.out is None:
        return
    document = {
        "kind": KIND,
        "dataset": about_dataset(plan.dataset),
        "config": about_config(plan.config),
        "seed": plan.seed,
        "trials": plan.trials,
        "complete": all(len(result.trials) == plan.trials for result in results),
        "versions": versions(),
        "rankers": [{"ranker": result.ranker} | measured(result) for result in results],
    }
    write_json(Path(plan.out) / RESULTS, document)


def print_results(results: Sequence[Result], as_json: bool) -> None:
    """Print what has finished: a table, or one JSON document."""
    if as_json:
        console.print_json(plain(results))
    elif any(result.trials for result in results):
        console.print_table(table([result for result in results if result.trials]))
    lab.warn_of_unserved(results)


def table(results: Sequence[Result]) -> Table:
    """Return the measures of each ranker, and run times where the terminal has room for them."""
    from ebrank.paper.framework.display import Cell, Column, Row, Table
    from ebrank.paper.framework.measures import COLUMNS, cells

    wide = shutil.get_terminal_size().columns >= WIDE
    rows: list[tuple[Cell | str, ...]] = [
        (result.ranker, *cells(result), Cell(result.seconds, digits=2)) for result in results
    ]
    columns = (Column("ranker"), *COLUMNS, Column("seconds"))
    shown = len(columns) if wide else len(columns) - 1
    return Table("simulate", "", "", columns[:shown], tuple(Row(row[:shown]) for row in rows))


def plain(results: Sequence[Result]) -> dict[str, Any]:
    """Return results as plain objects, for JSON."""
    from ebrank.lab.simulation.result import summary

    return {"rankers": [{"ranker": result.ranker} | summary(result) for result in results]}
