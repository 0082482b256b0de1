"""`ebrank tune`: choose a ranker's parameters on validation queries, never on test."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console, lab
from ebrank.cli.options import ALL_FOLDS, AS_JSON
from ebrank.cli.protocol import as_typed
from ebrank.cli.verbs import REQUIRED, opt, verb

if TYPE_CHECKING:
    from ebrank.lab.simulation.tuning import Tuning
    from ebrank.paper.framework.outcome import Table

RESULTS = "tuning.json"
KIND = "ebrank tune"
OF_ONE_RUN = {"ranker", "params", "grids", "trials", "jobs", "cluster", "out", "as_json"}
"""Options that say what to do with a simulation, rather than what it is."""


@verb(*lab.simulation_options())
def tune(
    ranker: str = opt(REQUIRED, "A ranker from `ebrank rankers`.", lab.RANKER),
    params: tuple[str, ...] = opt(
        (),
        "Parameter to choose, by default all that have a grid; repeat it to try combinations.",
        "--param NAME",
    ),
    grids: tuple[str, ...] = opt(
        (),
        "Values to try, such as 0,1,5: one --grid per --param; by default its own grid.",
        "--grid VALUES",
    ),
    as_json: bool = AS_JSON,
    **options: Any,  # noqa: ANN401
) -> None:
    """Choose a ranker's parameters on validation queries.

    Simulates every combination of values. The best one has the highest mean NDCG of the lists
    served to validation queries in the second half of the run. Tuning never uses test queries, and
    its trials differ from those that `simulate` runs with any seed.

    Tune each fold by itself: its validation queries are the test queries of another fold.

    Examples:
        ebrank tune --dataset MQ2008 --ranker ebrank
        ebrank tune --dataset MQ2008 --ranker ebrank:estimator=exposure
        ebrank tune --dataset MQ2008 --ranker ebrank --param epsilon --grid 0,5,20
        ebrank tune --dataset MQ2008 --ranker ebrank --cluster ~/scheduler.json
        ebrank tune --dataset MQ2008 --ranker ebrank --fold 2 --out tuned/Fold2
    """
    from ebrank.lab.rankers import registry
    from ebrank.lab.simulation import parallel
    from ebrank.lab.simulation.storage import write_json
    from ebrank.lab.simulation.tuning import check_validation, read_grid, tune, tuning_seed

    if options["fold"] == ALL_FOLDS:
        raise click.UsageError("parameters are chosen in one fold at a time; choose one")
    chosen = registry.parse(ranker)
    grid = read_grid(chosen, params, grids)
    with lab.note_of_compilation():
        (plan,) = lab.plan_folds(**options)
        seed = tuning_seed(plan.seed)
        if not as_json:
            click.echo(f"{plan} (tuning seed {seed})")
        check_validation(plan.dataset)
        try:
            with lab.running(plan, "tuning", RESULTS, KIND, seed) as how:
                run = partial(parallel.run, plan.dataset, config=plan.config, seed=seed, **how)
                tuning = tune(chosen, grid, run, plan.seed)
        except parallel.Interrupted as interrupted:
            finished = sum(len(result.trials) for result in interrupted.results)
            planned = plan.trials * len(interrupted.results)
            raise lab.stopped(finished, planned, plan.out) from None
        document = report(plan, tuning)
        if plan.out is not None:
            write_json(Path(plan.out) / RESULTS, document)
    if as_json:
        seconds = sum(point.result.seconds for point in tuning.points)
        console.print_json(document | {"seconds": seconds})
        return
    console.print_table(table(tuning))
    for name in tuning.at_the_edge:
        console.warn(f"the best {name} is at the edge of its grid; a wider one may do better")
    click.echo(f"Use it: ebrank simulate {as_typed(OF_ONE_RUN)} --ranker {tuning.best.text}")


def report(plan: lab.SimulationPlan, tuning: Tuning) -> dict[str, Any]:
    """Return the grid, its results and the choice, as an object for JSON."""
    from ebrank.kernels.provenance import versions
    from ebrank.lab.simulation.result import about_config, about_dataset, spread

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


def table(tuning: Tuning) -> Table:
    """Return the mean validation NDCG of every point, the best one marked."""
    from ebrank.paper.framework.measures import cell
    from ebrank.paper.framework.outcome import Column, Row, Table
    from ebrank.parameters import typed

    rows = []
    for point in tuning.points:
        best = point is tuning.best
        mean = replace(cell(point.validation_ndcg, 4), best=best, marks=" *" if best else "")
        rows.append(Row((*map(typed, point.values.values()), mean)))
    columns = map(Column, (*tuning.best.values, "validation NDCG"))
    caption = "Mean NDCG of the lists served to validation queries. * : best."
    return Table("tune", "", caption, tuple(columns), tuple(rows))
