"""`ebrank tune`: choose a ranker's parameters on validation queries, never on test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli._simulation import (
    RANKER,
    SimulationPlan,
    given_options,
    mean_and_spread,
    note_of_compilation,
    one_interrupt_at_a_time,
    plan_simulation,
    pool_of,
    read_own,
    right_aligned,
    say_stopped,
    simulation_options,
)
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option

if TYPE_CHECKING:
    from ebrank.rankers.base import Ranker
    from ebrank.simulation.tuning import Grid, Tuning

RESULTS = "tuning.json"
KIND = "ebrank tune"


@click.command(
    "tune",
    epilog=examples(
        "ebrank tune --dataset MQ2008 --ranker ebrank",
        "ebrank tune --dataset MQ2008 --ranker ebrank:estimator=exposure",
        "ebrank tune --dataset MQ2008 --ranker ebrank --param epsilon --grid 0,5,20",
        "ebrank tune --dataset MQ2008 --ranker ebrank --cluster ~/scheduler.json",
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
@simulation_options
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
    """
    from ebrank.rankers import registry
    from ebrank.simulation.parallel import Interrupted
    from ebrank.simulation.tuning import read_grid, tuning_seed

    chosen = registry.parse(ranker)
    grid = read_grid(chosen, params, grids)
    with one_interrupt_at_a_time(), note_of_compilation():
        plan = plan_simulation(**options)
        if not as_json:
            click.echo(f"{plan} (tuning seed {tuning_seed(plan.seed)})")
        try:
            tuning = run(plan, chosen, grid)
        except Interrupted as interrupted:
            say_stopped(plan, interrupted.results)
            raise click.exceptions.Exit(130) from None
    document = report(plan, tuning)
    if plan.out is not None:
        from ebrank.simulation.storage import write_json

        write_json(Path(plan.out) / RESULTS, document)
    if as_json:
        seconds = sum(point.result.seconds for point in tuning.points)
        console.print_json(document | {"seconds": seconds})
    else:
        print_tuning(tuning)


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
    from ebrank.provenance import versions
    from ebrank.simulation.summary import about_config, about_dataset, spread

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


def print_tuning(tuning: Tuning) -> None:
    """Print the grid as a table with the choice marked, and how to use it."""
    from ebrank.parameters import typed

    best = tuning.best
    names = tuple(best.values)
    rows = [
        (
            *(typed(value) for value in point.values.values()),
            mean_and_spread(point.validation_ndcg, 4),
            "best" if point is best else "",
        )
        for point in tuning.points
    ]
    console.print_table((*names, "validation NDCG", ""), right_aligned(rows))
    for name in tuning.at_the_edge:
        console.warn(f"the best {name} is at the edge of its grid; a wider one may do better")
    click.echo(f"Use it: ebrank simulate {given_options()} --ranker {best.text}")
