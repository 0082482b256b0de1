"""`ebrank tune`: choose a ranker's parameters on validation queries, never on test."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from ebrank.cli import console, lab
from ebrank.cli.lab_options import ALL_FOLDS, RANKER, as_typed, simulation_options
from ebrank.cli.options import AS_JSON
from ebrank.cli.verbs import REQUIRED, opt, verb

RESULTS = "tuning.json"
KIND = "ebrank tune"
OF_ONE_RUN = {"ranker", "params", "grids", "trials", "jobs", "cluster", "out", "as_json"}
"""Options that say what to do with a simulation, rather than what it is."""


@verb(simulation_options())
def tune(
    ranker: str = opt(REQUIRED, "A ranker from `ebrank rankers`.", RANKER),
    params: tuple[str, ...] = opt(
        (),
        "Parameter to choose, by default all that have a grid; repeatable.",
        "--param NAME",
    ),
    grids: tuple[str, ...] = opt(
        (),
        "Values to try, such as 0,1,5: one --grid per --param; by default its own grid, and more "
        "values where its end is best.",
        "--grid VALUES",
    ),
    as_json: bool = AS_JSON,
    **options: Any,  # noqa: ANN401
) -> None:
    """Choose a ranker's parameters on validation queries.

    Tries one parameter after the other, until none changes any more. The best has the highest mean
    NDCG of the lists served to validation queries in the second half of the run. Tuning never uses
    test queries, and its trials differ from those that `simulate` runs with any seed.

    Tune each fold by itself: its validation queries are the test queries of another fold.

    Examples:
        ebrank tune --dataset MQ2008 --ranker ebrank
        ebrank tune --dataset MQ2008 --ranker ebrank:estimator=exposure
        ebrank tune --dataset MQ2008 --ranker ebrank --param epsilon --grid 0,5,20
        ebrank tune --dataset MQ2008 --ranker ebrank --cluster ~/scheduler.json
        ebrank tune --dataset MQ2008 --ranker ebrank --fold 2 --out tuned/Fold2
    """
    from ebrank.lab.rankers import registry
    from ebrank.lab.simulation import parallel, tuning
    from ebrank.lab.simulation.result import about_config, about_dataset
    from ebrank.lab.simulation.stamps import versions
    from ebrank.lab.simulation.storage import write_json
    from ebrank.paper.framework.tuning import table

    if options["fold"] == ALL_FOLDS:
        raise click.UsageError("parameters are chosen in one fold at a time; choose one")
    chosen = registry.parse(ranker)
    grid = tuning.read_grid(chosen, params, grids)
    with lab.note_of_compilation():
        (plan,) = lab.plan_folds(**options)
        seed = tuning.tuning_seed(plan.seed)
        if not as_json:
            click.echo(f"{plan} (tuning seed {seed})")
        tuning.check_validation(plan.dataset)
        try:
            with lab.running(plan, "tuning", RESULTS, KIND, seed) as how:
                run = partial(parallel.run, plan.dataset, config=plan.config, seed=seed, **how)
                wider = 0 if grids else tuning.WIDER
                tuned = tuning.search(chosen, grid, run, plan.seed, wider=wider)
        except parallel.Interrupted as interrupted:
            finished = sum(len(result.trials) for result in interrupted.results)
            planned = plan.trials * len(interrupted.results)
            raise lab.stopped(finished, planned, plan.out) from None
    document = {
        "kind": KIND,
        "dataset": about_dataset(plan.dataset),
        "config": about_config(plan.config),
        "seed": plan.seed,
        "versions": versions(),
        "tuning": tuned,
    }
    if plan.out is not None:
        write_json(Path(plan.out) / RESULTS, document)
    if as_json:
        console.print_json(document)
        return
    shown = table(list(tuned.records(str(chosen), plan.config.entering_probability)))
    if shown is not None:
        console.print_table(replace(shown, title=""))
    click.echo(f"Use it: ebrank simulate {as_typed(OF_ONE_RUN)} --ranker {tuned.best.ranker}")
