"""`ebrank simulate`: rankers on simulated users, trial by trial."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli._simulation import (
    RANKER,
    SimulationPlan,
    mean_and_spread,
    note_of_compilation,
    one_interrupt_at_a_time,
    plan_folds,
    pool_of,
    read_own,
    read_rankers,
    right_aligned,
    say_stopped,
    simulation_options,
    warn_of_unserved,
    wrapped,
)
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option

if TYPE_CHECKING:
    from ebrank.experiments.framework.ranker_by_fold import AnyRanker
    from ebrank.experiments.query_files import QueryRow
    from ebrank.rankers.base import Ranker
    from ebrank.simulation.result import Result
    from ebrank.simulation.storage import Store
    from ebrank.typing import Texts

RESULTS = "results.json"
KIND = "ebrank simulate"
MEASURED_COLUMNS = 58
"""Characters of the table that are not the ranker's."""
WIDE = 92
"""The fewest characters that leave room for run times."""


@click.command(
    "simulate",
    epilog=examples(
        "ebrank simulate --dataset mq2007-like --scale 0.1 --ranker ebrank",
        "ebrank simulate --dataset ~/datasets/MQ2008/Fold1 --ranker bm25 --out run1",
        "ebrank simulate --dataset MQ2008 --ranker bm25 --ranker ebrank:epsilon=5",
        "ebrank simulate --dataset MQ2008 --ranker auto --users dcm --click-rate 0.15",
        "ebrank simulate --dataset mine --baseline-feature 3 --ranker ebrank --json",
        "ebrank simulate --dataset MQ2008 --ranker auto --cluster dask://node1:8786",
        "ebrank simulate --dataset MQ2008 --fold all --ranker auto --trec trec",
        "ebrank simulate --dataset mine --fold all --ranker ebrank:epsilon=20/5/10",
    ),
)
@click.option(
    "--ranker",
    "rankers",
    required=True,
    multiple=True,
    metavar=RANKER,
    help="A ranker from `ebrank rankers`, or your own as MODULE:CLASS; repeatable.",
)
@simulation_options
@click.option(
    "--per-query",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="File for the measures of each test query: FILE.csv or FILE.parquet.",
)
@click.option(
    "--trec",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Folder for files in TREC format: qrels.txt, and a run per ranker and trial.",
)
@json_option
def command(
    rankers: tuple[str, ...],
    per_query: str | None,
    trec: str | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Run rankers on simulated users and measure them.

    Users ask, look and click; items enter; the ranker learns. Cold-NDCG measures how the final
    model ranks new items, Warm-NDCG how it ranks items with their clicks. Cum-NDCG sums up the
    lists that users saw, with more weight on later ones; Run-NDCG is their mean. All are measured
    on test queries.

    --fold all runs every fold of a dataset and pools their test queries. A parameter may then have
    a value for each fold: ebrank:epsilon=20/5/20/10/20.

    Ctrl-C stops and reports the finished trials; --out keeps them for the next run.
    """
    from ebrank.experiments.query_files import check_form, write_table
    from ebrank.simulation.parallel import Interrupted, NotKept

    chosen = read_rankers(rankers, options)
    if per_query is not None:
        check_form(per_query)
    with one_interrupt_at_a_time(), note_of_compilation():
        finished = FinishedFolds(chosen, per_query is not None, trec)
        for plan in plan_folds(**options):
            if not as_json:
                click.echo(str(plan))
            try:
                finished.run(plan)
            except Interrupted as interrupted:
                print_results(interrupted.results, as_json)
                say_stopped(plan, interrupted.results)
                raise click.exceptions.Exit(130) from None
            except NotKept as problem:
                print_results(problem.results, as_json)
                raise
    print_results(finished.results(), as_json)
    if per_query is not None:
        write_table(Path(per_query), finished.rows)


class FinishedFolds:
    """Runs rankers on one fold after the other; keeps the results, and writes files about each."""

    def __init__(
        self, rankers: Sequence[AnyRanker], per_query: bool = False, trec: str | None = None
    ) -> None:
        self.rankers = rankers
        self.per_query = per_query
        self.trec = trec
        self.rows: list[QueryRow] = []
        self._test_ids: dict[str, Texts] = {}
        self._by_fold: list[list[Result]] = []

    def run(self, plan: SimulationPlan) -> None:
        """Run the rankers on the next fold, or on a dataset without folds."""
        from ebrank.experiments.framework.ranker_by_fold import in_fold
        from ebrank.experiments.query_files import query_rows, write_trec

        place = len(self._by_fold)
        own = [in_fold(ranker, place) for ranker in self.rankers]
        each = list(dict.fromkeys(own))  # what differs in one fold may be the same in another
        results = dict(zip(each, run(plan, each), strict=True))
        data = plan.dataset
        self._test_ids[f"fold {plan.fold}"] = data.query_ids[data.queries_in("test")]
        self._by_fold.append([results[ranker] for ranker in own])
        if self.per_query:
            self.rows += query_rows(data, list(results.values()), plan.fold)
        if self.trec is not None:
            folder = Path(self.trec) / ("" if plan.fold is None else f"Fold{plan.fold}")
            write_trec(folder, data, list(results.values()))

    def results(self) -> list[Result]:
        """Return the results of each ranker, over all folds if there are several."""
        from ebrank.experiments.framework.folds import check_disjoint, pooled

        if len(self._by_fold) == 1:
            return self._by_fold[0]
        check_disjoint(self._test_ids)
        by_ranker = zip(*self._by_fold, strict=True)
        return [
            pooled(own, str(ranker)) for ranker, own in zip(self.rankers, by_ranker, strict=True)
        ]


def run(plan: SimulationPlan, rankers: Sequence[Ranker]) -> list[Result]:
    """Run the trials, keeping the results on disk if there is a folder for them."""
    from ebrank.simulation import parallel
    from ebrank.simulation.storage import Store

    store = None
    if plan.out is not None:
        store = Store(plan.out, plan.dataset, plan.config, plan.seed)
        read_own(Path(plan.out) / RESULTS, KIND)  # raises now if the file is foreign

    def keep(results: list[Result]) -> None:
        if store is not None:
            write_results(store, plan, rankers, results)

    try:
        with pool_of(plan) as pool, console.progress("simulating") as progress:
            return parallel.run(
                plan.dataset,
                rankers,
                plan.config,
                plan.seed,
                trials=plan.trials,
                jobs=plan.jobs,
                pool=pool,
                store=store,
                progress=progress,
                finished=keep,
            )
    except parallel.Interrupted as interrupted:
        keep(interrupted.results)
        raise


def write_results(
    store: Store, plan: SimulationPlan, rankers: Sequence[Ranker], results: Sequence[Result]
) -> None:
    """Write `results.json`: the results so far, and everything they depend on; no times.

    It keeps earlier results of other rankers if all else is the same.
    """
    from ebrank.provenance import versions
    from ebrank.simulation.storage import write_json
    from ebrank.simulation.summary import about_config, about_dataset, measured

    document: dict[str, Any] = {
        "kind": KIND,
        "dataset": about_dataset(plan.dataset) | {"fingerprint": store.fingerprint},
        "config": about_config(plan.config),
        "seed": plan.seed,
        "trials": plan.trials,
        "complete": all(len(result.trials) == plan.trials for result in results),
        "versions": versions(),
        "rankers": [
            {"ranker": result.ranker}
            | measured(result)
            | {"files": [store.path(ranker, trial).name for trial in range(plan.trials)]}
            for ranker, result in zip(rankers, results, strict=True)
        ],
    }
    path = store.folder / RESULTS
    document["rankers"] = _others(read_own(path, KIND), document) + document["rankers"]
    for entry in document["rankers"]:
        entry["files"] = [name for name in entry["files"] if (store.folder / name).exists()]
    write_json(path, document)


def _others(earlier: dict[str, Any], document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the earlier entries of rankers that a document lacks, if they are comparable."""
    if not earlier or _compared(earlier) != _compared(document):
        return []
    present = {entry["ranker"] for entry in document["rankers"]}
    return [entry for entry in earlier["rankers"] if entry["ranker"] not in present]


def _compared(document: dict[str, Any]) -> str:
    """Return what entries of one document must share, as text: JSON knows no tuples."""
    data, versions = document["dataset"], document["versions"]
    shared = (data["fingerprint"], document["config"], document["seed"], versions["source"])
    return json.dumps(shared, sort_keys=True)


def print_results(results: Sequence[Result], as_json: bool) -> None:
    """Print what has finished: a table, or one JSON document."""
    from ebrank.simulation.summary import summary

    some = [result for result in results if result.trials]
    if as_json:
        rankers = [{"ranker": result.ranker} | summary(result) for result in results]
        console.print_json({"rankers": rankers})
    elif some:
        width = shutil.get_terminal_size().columns
        columns = ("ranker", "Cold-NDCG", "Warm-NDCG", "Cum-NDCG", "Run-NDCG", "seconds")
        shown = len(columns) if width >= WIDE else len(columns) - 1
        room = width - MEASURED_COLUMNS - (9 if width >= WIDE else 0)
        rows = right_aligned([_row(result, room)[:shown] for result in some])
        console.print_table(columns[:shown], rows)
    warn_of_unserved(results)


def _row(result: Result, room: int) -> tuple[str, ...]:
    return (
        wrapped(result.ranker, room),
        mean_and_spread(result.cold_ndcg, 3),
        mean_and_spread(result.warm_ndcg, 3),
        mean_and_spread(result.cum_ndcg, 1),
        mean_and_spread(result.run_ndcg, 3),
        f"{result.seconds:.2f}",
    )
