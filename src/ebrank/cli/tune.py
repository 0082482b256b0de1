"""`ebrank tune`: choose a ranker's parameters on validation queries, never on test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console, lab
from ebrank.cli.options import json_option, option
from ebrank.cli.protocol import as_typed
from ebrank.cli.verbs import verb

if TYPE_CHECKING:
    from ebrank.experiments.framework.outcome import Table
    from ebrank.simulation.tuning import Tuning

RESULTS = "tuning.json"
KIND = "ebrank tune"
OF_ONE_RUN = {"ranker", "params", "grids", "trials", "jobs", "cluster", "out", "as_json"}
"""Options that say what to do with a simulation, rather than what it is."""


@verb()
@option(f"--ranker {lab.RANKER}", "A ranker from `ebrank rankers`.", required=True)
@option(
    "--param NAME",
    "Parameter to choose, by default all that have a grid; repeat it to try combinations.",
    called="params",
    multiple=True,
)
@option(
    "--grid VALUES",
    "Values to try, such as 0,1,5: one --grid per --param; by default its own grid.",
    called="grids",
    multiple=True,
)
@lab.simulation_options()
@json_option
def tune(
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

    Examples:
        ebrank tune --dataset MQ2008 --ranker ebrank
        ebrank tune --dataset MQ2008 --ranker ebrank:estimator=exposure
        ebrank tune --dataset MQ2008 --ranker ebrank --param epsilon --grid 0,5,20
        ebrank tune --dataset MQ2008 --ranker ebrank --cluster ~/scheduler.json
        ebrank tune --dataset MQ2008 --ranker ebrank --fold all --out tuned
    """
    from ebrank.rankers import registry
    from ebrank.simulation import parallel
    from ebrank.simulation.storage import write_json
    from ebrank.simulation.tuning import check_validation, read_grid, tune, tuning_seed

    chosen = registry.parse(ranker)
    grid = read_grid(chosen, params, grids)
    tunings: list[Tuning] = []
    documents: list[dict[str, Any]] = []
    with lab.one_interrupt_at_a_time(), lab.note_of_compilation():
        for plan in lab.plan_folds(**options):
            seed = tuning_seed(plan.seed)
            if not as_json:
                click.echo(f"{plan} (tuning seed {seed})")
            check_validation(plan.dataset)
            try:
                with lab.running(plan, "tuning", RESULTS, KIND, seed) as how:
                    run = partial(parallel.run, plan.dataset, config=plan.config, seed=seed, **how)
                    tunings.append(tune(chosen, grid, run, plan.seed))
            except parallel.Interrupted as interrupted:
                done = [*interrupted.results, *(p.result for own in tunings for p in own.points)]
                finished = sum(len(result.trials) for result in done)
                points = len(interrupted.results) * len(lab.folds_to_run(options))
                raise lab.stopped(finished, plan.trials * points, options["out"]) from None
            documents.append(report(plan, tunings[-1]))
            if plan.out is not None:
                write_json(Path(plan.out) / RESULTS, documents[-1])
    if as_json:
        seconds = sum(point.result.seconds for tuning in tunings for point in tuning.points)
        console.print_json(as_one(documents) | {"seconds": seconds})
    else:
        print_tuning(tunings, [document["dataset"]["fold"] for document in documents])


def report(plan: lab.SimulationPlan, tuning: Tuning) -> dict[str, Any]:
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


def as_one(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the report of a dataset, or the reports of its folds."""
    if len(documents) == 1:
        return documents[0]
    return {"kind": KIND, "folds": list(documents)}


def print_tuning(tunings: Sequence[Tuning], folds: Sequence[int | None]) -> None:
    """Print the grid with a column for each fold, the choices marked, and how to use them."""
    wider = "a wider one may do better"
    lab.print_table(table(tunings, folds))
    for name in tunings[0].best.values:
        pairs = zip(folds, tunings, strict=True)
        edge = [fold for fold, tuning in pairs if name in tuning.at_the_edge]
        if edge:
            where = f" of fold{'s' if len(edge) > 1 else ''} {', '.join(map(str, edge))}"
            where = where if len(folds) > 1 else ""
            console.warn(f"the best {name}{where} is at the edge of its grid; {wider}")
    for fold, tuning in zip(folds, tunings, strict=True):
        simulation = as_typed(OF_ONE_RUN, fold=str(fold))
        click.echo(f"Use it: ebrank simulate {simulation} --ranker {tuning.best.text}")


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
