"""`ebrank tune`: choose a ranker's parameters on validation queries, never on test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli._simulation import (
    RANKER,
    SimulationPlan,
    folds_to_run,
    given_options,
    note_of_compilation,
    one_interrupt_at_a_time,
    plan_folds,
    pool_of,
    print_table,
    read_own,
    say_stopped,
    simulation_options,
)
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option

if TYPE_CHECKING:
    from ebrank.experiments.framework.outcome import Table
    from ebrank.rankers.base import Ranker
    from ebrank.simulation.tuning import Grid, Tuning

RESULTS = "tuning.json"
KIND = "ebrank tune"
WIDER = "a wider one may do better"


@click.command(
    "tune",
    epilog=examples(
        "ebrank tune --dataset MQ2008 --ranker ebrank",
        "ebrank tune --dataset MQ2008 --ranker ebrank:estimator=exposure",
        "ebrank tune --dataset MQ2008 --ranker ebrank --param epsilon --grid 0,5,20",
        "ebrank tune --dataset MQ2008 --ranker ebrank --cluster ~/scheduler.json",
        "ebrank tune --dataset MQ2008 --ranker ebrank --fold all --out tuned",
    ),
)
@click.option("--ranker", required=True, metavar=RANKER, help="A ranker from `ebrank rankers`.")
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME",
    help="Parameter to choose, by default all that have a grid; repeat it to try combinations.",
)
@click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="VALUES",
    help="Values to try, such as 0,1,5: one --grid per --param; by default its own grid.",
)
@simulation_options()
@json_option
def command(
    ranker: str,
    params: tuple[str, ...],
    grids: tuple[str, ...],
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Choose a ranker's parameters on validation queries.

    Simulates every combination of values. The best one has the highest mean NDCG of the lists
    served to validation queries in the second half of the run. Tuning never uses test queries, and
    its trials differ from those that `simulate` runs with any seed.

    --fold all tunes each fold on its own validation queries. They are the test queries of another
    fold, so a single choice for all folds would have seen the queries it is tested on.
    """
    from ebrank.rankers import registry
    from ebrank.simulation.parallel import Interrupted
    from ebrank.simulation.storage import write_json
    from ebrank.simulation.tuning import read_grid, tuning_seed

    chosen = registry.parse(ranker)
    grid = read_grid(chosen, params, grids)
    tunings: list[Tuning] = []
    documents: list[dict[str, Any]] = []
    with one_interrupt_at_a_time(), note_of_compilation():
        for plan in plan_folds(**options):
            if not as_json:
                click.echo(f"{plan} (tuning seed {tuning_seed(plan.seed)})")
            try:
                tunings.append(run(plan, chosen, grid))
            except Interrupted as interrupted:
                done = [*interrupted.results, *(p.result for own in tunings for p in own.points)]
                finished = sum(len(result.trials) for result in done)
                points = len(interrupted.results) * len(folds_to_run(options))
                say_stopped(finished, plan.trials * points, options["out"])
                raise click.exceptions.Exit(130) from None
            documents.append(report(plan, tunings[-1]))
            if plan.out is not None:
                write_json(Path(plan.out) / RESULTS, documents[-1])
    if as_json:
        seconds = sum(point.result.seconds for tuning in tunings for point in tuning.points)
        console.print_json(as_one(documents, tunings) | {"seconds": seconds})
    else:
        print_tuning(tunings, [document["dataset"]["fold"] for document in documents])


def run(plan: SimulationPlan, ranker: Ranker, grid: Grid) -> Tuning:
    """Run every point of the grid."""
    from ebrank.simulation.storage import Store
    from ebrank.simulation.tuning import tune, tuning_seed

    store = None
    if plan.out is not None:
        store = Store(plan.out, plan.dataset, plan.config, tuning_seed(plan.seed))
        read_own(Path(plan.out) / RESULTS, KIND)  # raises now if the file is foreign
    with pool_of(plan) as pool, console.progress("tuning") as progress:
        return tune(
            plan.dataset,
            ranker,
            grid,
            plan.config,
            plan.seed,
            trials=plan.trials,
            jobs=plan.jobs,
            pool=pool,
            store=store,
            progress=progress,
        )


def report(plan: SimulationPlan, tuning: Tuning) -> dict[str, Any]:
    """Return the grid, its results and the choice, as an object for JSON."""
    from ebrank.kernels.provenance import versions
    from ebrank.simulation.result import about_config, about_dataset, spread

    best = tuning.best
    return {
        "kind": KIND,
        "dataset": about_dataset(plan.dataset),
        "config": about_config(plan.config),
        "seed": plan.seed,
        "tuning_seed": tuning.seed,
        "versions": versions(),
        "best": {"ranker": best.text, "values": best.values},
        "at_the_edge": tuning.at_the_edge,
        "grid": [
            {
                "values": point.values,
                "ranker": point.text,
                "validation_ndcg": {
                    "mean": float(point.validation_ndcg.mean()),
                    "sd": spread(point.validation_ndcg),
                    "trials": point.validation_ndcg.tolist(),
                },
            }
            for point in tuning.points
        ],
    }


def as_one(documents: Sequence[dict[str, Any]], tunings: Sequence[Tuning]) -> dict[str, Any]:
    """Return the report of a dataset, or those of its folds with what was chosen in them."""
    if len(documents) == 1:
        return documents[0]
    return {"kind": KIND, "best": {"ranker": best_text(tunings)}, "folds": list(documents)}


def best_text(tunings: Sequence[Tuning]) -> str:
    """Return the ranker with what was chosen, in each fold if that is not the same."""
    from ebrank.experiments.framework.folds import RankerByFold, by_fold

    ranker = by_fold([tuning.best.ranker for tuning in tunings])
    return str(ranker) if isinstance(ranker, RankerByFold) else tunings[0].best.text


def print_tuning(tunings: Sequence[Tuning], folds: Sequence[int | None]) -> None:
    """Print the grid with a column for each fold, the choices marked, and how to use them."""
    print_table(table(tunings, folds))
    for name in tunings[0].best.values:
        pairs = zip(folds, tunings, strict=True)
        edge = [fold for fold, tuning in pairs if name in tuning.at_the_edge]
        if edge:
            where = f" of fold{'s' if len(edge) > 1 else ''} {', '.join(map(str, edge))}"
            where = where if len(folds) > 1 else ""
            console.warn(f"the best {name}{where} is at the edge of its grid; {WIDER}")
    click.echo(f"Use it: ebrank simulate {given_options()} --ranker {best_text(tunings)}")


def table(tunings: Sequence[Tuning], folds: Sequence[int | None]) -> Table:
    """Return the mean validation NDCG of every point, in each fold if there are several."""
    from ebrank.experiments.framework.measures import cell
    from ebrank.experiments.framework.outcome import Column, Row, Table
    from ebrank.parameters import typed

    rows = []
    for points in zip(*(tuning.points for tuning in tunings), strict=True):
        means = [
            replace(cell(point.validation_ndcg, 4), best=best, marks=" *" if best else "")
            for point, best in (
                (point, point is tuning.best) for point, tuning in zip(points, tunings, strict=True)
            )
        ]
        rows.append(Row((*map(typed, points[0].values.values()), *means)))
    headings = [f"fold {fold}" for fold in folds] if len(folds) > 1 else ["validation NDCG"]
    columns = map(Column, (*tunings[0].best.values, *headings))
    own = " of the fold, by its own validation queries" if len(folds) > 1 else ""
    caption = f"Mean NDCG of the lists served to validation queries. * : best{own}."
    return Table("tune", "", caption, tuple(columns), tuple(rows))
