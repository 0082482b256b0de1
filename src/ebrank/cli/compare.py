"""`ebrank compare`: rankers side by side, with significance letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console, lab
from ebrank.cli.options import json_option
from ebrank.cli.simulate import FinishedFolds
from ebrank.cli.verbs import verb
from ebrank.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from ebrank.experiments.comparison import Comparison
    from ebrank.rankers.base import Ranker

PICTURE = "compare"


@verb()
@click.argument("rankers", nargs=-1, required=True, metavar=f"{lab.RANKER}...")
@lab.simulation_options(
    out="Folder for compare.svg, compare.png and the trials; trials it already holds are not run "
    "again.",
)
@json_option
def compare(rankers: tuple[str, ...], as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Compare rankers and show which differences are significant.

    All meet the same users. Rankers that share a letter do not differ significantly.

    --fold all runs every fold and pools their test queries.

    Ctrl-C stops; --out keeps finished trials for the next run. Give the folder of an earlier
    `ebrank simulate` or `compare`, with the same options, and what it holds is not run again.

    Examples:
        ebrank compare bm25 ebrank ebrank:beta=2 --dataset mq2007-like --scale 0.1
        ebrank compare ebrank mymodule:MyRanker --dataset MQ2008 --out mine
        ebrank compare ebrank auto --dataset MQ2008 --trials 20 --cluster local:4
        ebrank compare ebrank auto --dataset MQ2008 --fold all
        ebrank compare bm25 ebrank:epsilon=5 --dataset MQ2008 --json
    """
    from ebrank.experiments.comparison import compared, plain, table

    typed = read_rankers(rankers)
    with lab.one_interrupt_at_a_time(), lab.note_of_compilation():
        finished = FinishedFolds(list(typed), len(lab.folds_to_run(options)))
        try:
            for plan in lab.plan_folds(**options):
                finished.run(plan)
        except KeyboardInterrupt:
            if not finished.by_fold:
                raise
            raise lab.stopped(*finished.progress(options["trials"]), options["out"]) from None
        results = zip(finished.results(), typed.values(), strict=True)
        comparison = compared([replace(result, ranker=text) for result, text in results])
    if as_json:
        console.print_json(plain(comparison))
    else:
        lab.print_table(table(comparison))
    lab.warn_of_unserved(comparison.results)
    if options["out"] is not None:
        draw(comparison, Path(options["out"]))


def read_rankers(texts: Sequence[str]) -> dict[Ranker, str]:
    """Return the rankers that texts name, each once, and how the user calls them."""
    from ebrank.rankers import registry

    typed: dict[Ranker, str] = {}
    for text in texts:
        try:
            typed.setdefault(registry.parse(text), text)
        except ParameterError as problem:
            if not Path(text).is_dir():
                raise
            advice = f"{text} is a folder: name rankers, and --out {text} for the trials it holds"
            raise ParameterError(f"{problem} {advice}") from None
    if len(typed) < 2:
        raise ParameterError("a comparison needs at least two rankers; name another one")
    return typed


def draw(comparison: Comparison, folder: Path) -> None:
    """Draw the picture, or warn that the package that draws it is not installed."""
    from ebrank.environment.files import write_whole
    from ebrank.experiments.comparison import figure
    from ebrank.report.figures.render import FIGURE_FILES

    picture = figure(comparison)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for form, drawn in FIGURE_FILES.items():
            write_whole(folder / f"{PICTURE}.{form}", drawn(picture))
    except MissingExtraError as problem:
        console.warn(f"no picture: {problem}")
        return
    click.echo(f"Picture: {folder / PICTURE}.svg, .png", err=True)
