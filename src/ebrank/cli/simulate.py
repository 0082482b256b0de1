"""`ebrank simulate`: rankers on simulated users, trial by trial."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli._experiment import (
    RANKER,
    Experiment,
    broken,
    experiment,
    experiment_options,
    mean_and_spread,
    note_of_compilation,
    refuse_foreign,
    say_stopped,
    to_the_right,
)
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option

if TYPE_CHECKING:
    from ebrank.rankers.base import Ranker
    from ebrank.simulation.result import Result
    from ebrank.simulation.storage import Store

RESULTS = "results.json"
KIND = "ebrank simulate"
OTHER_COLUMNS = 54
"""Characters of the table that are not the ranker's."""


@click.command(
    "simulate",
    epilog=examples(
        "ebrank simulate --dataset mq2007-like --scale 0.1 --ranker ebrank",
        "ebrank simulate --dataset ~/datasets/MQ2008/Fold1 --ranker bm25 --out run1",
        "ebrank simulate --dataset MQ2008 --ranker bm25 --ranker ebrank:epsilon=5",
        "ebrank simulate --dataset mine --baseline-feature 3 --ranker ebrank --json",
    ),
)
@click.option(
    "--ranker",
    "rankers",
    required=True,
    multiple=True,
    metavar=RANKER,
    help="A ranker as `ebrank rankers` lists them; may be given several times.",
)
@experiment_options
@json_option
def command(rankers: tuple[str, ...], as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Run rankers on simulated users and measure them.

    Users ask, look and click; items enter; the ranker learns. Cold-NDCG ranks new items by what was
    learned from others, Warm-NDCG uses each item's own clicks, Cum-NDCG counts the lists that users
    really saw. All are measured on test queries, by the last model.

    Ctrl-C stops; finished trials are reported, and kept in --out for the next time.
    """
    from ebrank.rankers import registry
    from ebrank.simulation.parallel import Interrupted

    chosen = list(dict.fromkeys(map(registry.parse, rankers)))
    stopped = False
    with note_of_compilation():
        told = experiment(**options)
        try:
            results = run(told, chosen)
        except Interrupted as interrupted:
            results, stopped = interrupted.results, True
    print_results(told, results, as_json)
    if stopped:
        say_stopped(told, results)
        raise click.exceptions.Exit(130)


def run(told: Experiment, rankers: Sequence[Ranker]) -> list[Result]:
    """Run the trials, keeping the results on disk if there is a folder for them."""
    from ebrank.simulation import parallel
    from ebrank.simulation.storage import Store

    store = None
    if told.out is not None:
        store = Store(told.out, told.dataset, told.config, told.seed)
        refuse_foreign(Path(told.out) / RESULTS, KIND)

    def keep(results: list[Result]) -> None:
        if store is not None:
            write_results(store, told, rankers, results)

    with console.progress("simulating") as progress:
        return parallel.run(
            told.dataset,
            rankers,
            told.config,
            told.seed,
            trials=told.trials,
            jobs=told.jobs,
            store=store,
            progress=progress,
            finished=keep,
        )


def write_results(
    store: Store, told: Experiment, rankers: Sequence[Ranker], results: Sequence[Result]
) -> None:
    """Write `results.json`: the results so far, and all that they depend on."""
    from ebrank.simulation.storage import versions, write_json
    from ebrank.simulation.summary import about_config, about_dataset, summary

    document = {
        "kind": KIND,
        "dataset": about_dataset(told.dataset) | {"fingerprint": store.fingerprint},
        "config": about_config(told.config),
        "seed": told.seed,
        "trials": told.trials,
        "complete": all(len(result.trials) == told.trials for result in results),
        "versions": versions(),
        "rankers": [
            {"ranker": result.ranker}
            | (summary(result) if result.trials else {})
            | {"files": [store.path(ranker, trial).name for trial in range(told.trials)]}
            for ranker, result in zip(rankers, results, strict=True)
        ],
    }
    write_json(store.folder / RESULTS, document)


def print_results(told: Experiment, results: Sequence[Result], as_json: bool) -> None:
    """Print what has finished: a table, or one JSON document."""
    from ebrank.simulation.summary import summary

    some = [result for result in results if result.trials]
    if as_json:
        if len(results) == 1 and some:
            console.print_json(summary(some[0]))
        elif len(results) > 1:
            rankers = [{"ranker": result.ranker} | summary(result) for result in some]
            console.print_json({"rankers": rankers})
    elif some:
        click.echo(str(told))
        room = shutil.get_terminal_size().columns - OTHER_COLUMNS
        rows = to_the_right([_row(result, room) for result in some])
        console.print_table(("ranker", "cold", "warm", "cum", "seconds"), rows)


def _row(result: Result, room: int) -> tuple[str, ...]:
    return (
        broken(result.ranker, room),
        mean_and_spread(result.cold_ndcg, 3),
        mean_and_spread(result.warm_ndcg, 3),
        mean_and_spread(result.cum_ndcg, 1),
        f"{result.seconds:.2f}",
    )
