"""`ebrank compare`: rankers side by side, run now or earlier, with significance letters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console, lab
from ebrank.cli.options import AS_JSON
from ebrank.cli.verbs import arg, option, verb
from ebrank.errors import MissingExtraError

if TYPE_CHECKING:
    from ebrank.paper.comparison import Comparison

PICTURE = "compare"


@verb(
    *lab.simulation_options(
        dataset=option("--dataset NAME|FOLDER", f"{lab.DATASET}; needed to run rankers."),
        out="Folder for compare.svg, compare.png and the trials of rankers that run now; trials it "
        "already holds are not run again.",
    )
)
def compare(
    runs: tuple[str, ...] = arg(f"FOLDER|{lab.RANKER}..."),
    as_json: bool = AS_JSON,
    **options: Any,  # noqa: ANN401
) -> None:
    """Compare rankers and show which differences are significant.

    Name folders that `ebrank simulate --out` wrote, with all the rankers they hold, and rankers to
    run now on --dataset. All must meet the same users. Rankers that share a letter do not differ
    significantly. If the code of a ranker changed between two runs, both versions are compared, by
    folder. Options about running need a ranker to run.

    --fold all runs every fold and pools their test queries.

    Ctrl-C stops; --out keeps finished trials for the next run.

    Examples:
        ebrank compare bm25 ebrank ebrank:beta=2 --dataset mq2007-like --scale 0.1
        ebrank compare ebrank mymodule:MyRanker --dataset MQ2008 --out mine
        ebrank compare ebrank auto --dataset MQ2008 --trials 20 --cluster local:4
        ebrank compare ebrank auto --dataset MQ2008 --fold all
        ebrank compare run1 run2
        ebrank compare run1 ebrank:epsilon=5 --dataset MQ2008 --json
    """
    from ebrank.cli.stored_runs import results_of
    from ebrank.paper.comparison import compared, plain, table

    with lab.note_of_compilation():
        comparison = compared(results_of(runs, options))
    if as_json:
        console.print_json(plain(comparison))
    else:
        console.print_table(table(comparison))
    lab.warn_of_unserved(comparison.results)
    if options["out"] is not None:
        draw(comparison, Path(options["out"]))


def draw(comparison: Comparison, folder: Path) -> None:
    """Draw the picture, or warn that the package that draws it is not installed."""
    from ebrank.environment.files import write_whole
    from ebrank.paper.comparison import figure
    from ebrank.paper.report.figures.render import FIGURE_FILES

    picture = figure(comparison)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for form, drawn in FIGURE_FILES.items():
            write_whole(folder / f"{PICTURE}.{form}", drawn(picture))
    except MissingExtraError as problem:
        console.warn(f"no picture: {problem}")
        return
    click.echo(f"Picture: {folder / PICTURE}.svg, .png", err=True)
