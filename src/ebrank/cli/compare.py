"""`ebrank compare`: rankers side by side, run now or earlier, with significance letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console, lab, stored_runs
from ebrank.cli.options import ALL_FOLDS, json_option, option
from ebrank.cli.protocol import given_options
from ebrank.cli.simulate import FinishedFolds
from ebrank.cli.verbs import verb
from ebrank.errors import DataError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    from ebrank.experiments.comparison import Comparison
    from ebrank.experiments.framework.folds import AnyRanker
    from ebrank.simulation.result import Result

PICTURE = "compare"
WITHOUT_RUNNING = {"runs", "out", "as_json"}
"""What has an effect even if no ranker runs."""


@verb()
@click.argument("runs", nargs=-1, required=True, metavar=f"FOLDER|{lab.RANKER}...")
@lab.simulation_options(
    dataset=option("--dataset NAME|FOLDER", f"{lab.DATASET}; needed to run rankers."),
    out="Folder for compare.svg, compare.png and the trials of rankers that run now; trials it "
    "already holds are not run again.",
)
@json_option
def compare(runs: tuple[str, ...], as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Compare rankers and show which differences are significant.

    Name folders that `ebrank simulate --out` wrote, with all the rankers they hold, and rankers to
    run now on --dataset. All must meet the same users. Rankers that share a letter do not differ
    significantly. If the code of a ranker changed between two runs, both versions are compared, by
    folder. Options about running need a ranker to run.

    --fold all runs every fold and pools their test queries. Folders of different folds of one
    dataset are pooled, too.

    Ctrl-C stops; --out keeps finished trials for the next run.

    Examples:
        ebrank compare bm25 ebrank ebrank:beta=2 --dataset mq2007-like --scale 0.1
        ebrank compare ebrank mymodule:MyRanker --dataset MQ2008 --out mine
        ebrank compare ebrank auto --dataset MQ2008 --trials 20 --cluster local:4
        ebrank compare ebrank auto --dataset MQ2008 --fold all
        ebrank compare run1 run2
        ebrank compare fold1 fold2 fold3
        ebrank compare run1 ebrank:epsilon=5 --dataset MQ2008 --json
    """
    from ebrank.experiments.comparison import compared, plain, table

    with lab.one_interrupt_at_a_time(), lab.note_of_compilation():
        comparison = compared(results_of(runs, options))
    if as_json:
        console.print_json(plain(comparison))
    else:
        lab.print_table(table(comparison))
    lab.warn_of_unserved(comparison.results)
    if options["out"] is not None:
        draw(comparison, Path(options["out"]))


def results_of(runs: Sequence[str], options: dict[str, Any]) -> list[Result]:
    """Return the results of all runs, in their order, each ranker once, over all folds.

    Rankers with the same text but different code are different rankers; their names then include
    their folders.
    """
    stored: list[stored_runs.StoredRun] = []
    entries: dict[stored_runs.Identity, stored_runs.ComparedRanker] = {}
    rankers: dict[stored_runs.Identity, AnyRanker] = {}
    typed: dict[str, str] = {}
    for run in runs:
        if is_folder(run):
            held = stored_runs.read_runs(Path(run))
            stored += held
            named = [entry for own in held for entry in own.rankers]
        else:
            ranker = parsed(run, options)
            named = [stored_runs.ComparedRanker(str(ranker), stamp_of(ranker), stored_runs.NOW)]
            rankers[named[0].identity] = ranker
            typed.setdefault(named[0].ranker, run)
        for entry in named:
            entries.setdefault(entry.identity, entry)
    earlier = stored_runs.StoredFolds(stored)
    entries |= earlier.rankers()
    if len(entries) < 2:
        raise ParameterError("a comparison needs at least two rankers; name another one")
    new = [identity for identity, entry in entries.items() if entry.result is None]
    if not new:
        check_nothing_else_was_meant(bool(rankers), earlier.folds, options)
    else:
        results = run_now([rankers[identity] for identity in new], earlier.folds, options)
        for identity, result in zip(new, results, strict=True):
            entries[identity] = replace(entries[identity], result=result)
    return named_apart(list(entries.values()), typed)


def stamp_of(ranker: AnyRanker) -> str:
    """Return a hash of a ranker's code."""
    from ebrank.experiments.framework.folds import RankerByFold
    from ebrank.kernels.provenance import stamp

    return stamp(*ranker.rankers) if isinstance(ranker, RankerByFold) else stamp(ranker)


def named_apart(
    entries: Sequence[stored_runs.ComparedRanker], typed: Mapping[str, str]
) -> list[Result]:
    """Return the results by ranker text, as the user typed it where they did.

    If several rankers have the same text, their folders are added.
    """
    times = Counter(entry.ranker for entry in entries)
    results = []
    for entry in entries:
        if entry.result is not None:
            name = typed.get(entry.ranker, entry.ranker)
            where = f" ({entry.where})" if times[entry.ranker] > 1 else ""
            results.append(replace(entry.result, ranker=name + where))
    return results


def is_folder(run: str) -> bool:
    """Return whether a run is a folder; the name of a built-in ranker never is."""
    from ebrank.rankers import registry

    return run.partition(":")[0] not in registry.built_in() and Path(run).is_dir()


def parsed(run: str, options: Mapping[str, Any]) -> AnyRanker:
    """Return the ranker that a run names."""
    from ebrank.rankers import registry

    folds = {} if options["dataset"] else {"fold": None}  # only datasets have any
    try:
        return lab.read_rankers([run], {**options, **folds})[0]
    except ParameterError as problem:
        if ":" in run or run in registry.built_in():
            raise
        raise ParameterError(f"folder not found: {run}; and {problem}") from None


def run_now(
    rankers: Sequence[AnyRanker], earlier: Sequence[stored_runs.Conditions], options: dict[str, Any]
) -> list[Result]:
    """Run the rankers that no folder holds, if they will meet the same users as the others."""
    if options["dataset"] is None:
        names = ", ".join(map(str, rankers))
        raise ParameterError(f"to run {names}, set --dataset; only folders bring their own")
    finished = FinishedFolds(rankers, len(lab.folds_to_run(options)))
    try:
        for plan in plans_that_meet(earlier, options):
            finished.run(plan)
    except KeyboardInterrupt:
        if not finished.by_fold:
            raise
        raise lab.stopped(*finished.progress(options["trials"]), options["out"]) from None
    return finished.results()


def plans_that_meet(
    earlier: Sequence[stored_runs.Conditions], options: dict[str, Any]
) -> Iterator[lab.SimulationPlan]:
    """Yield the simulation of each fold; raise if it does not meet the users of the folders."""
    check_folds_at_hand(earlier, options)
    for place, plan in enumerate(lab.plan_pooled_folds(**options)):
        if earlier:
            stored_runs.check_same(earlier[place], stored_runs.conditions_of(plan))
        yield plan


def check_nothing_else_was_meant(
    names_rankers: bool, earlier: Sequence[stored_runs.Conditions], options: dict[str, Any]
) -> None:
    """Raise if nothing runs, but options ask for a run that the folders do not hold."""
    if names_rankers and options["dataset"] is not None:
        for _ in plans_that_meet(earlier, options):
            pass
        return
    idle = [option.opts[0] for option, _ in given_options(WITHOUT_RUNNING)]
    if idle:
        raise click.UsageError(
            f"nothing runs, because the folders hold all the rankers, so {', '.join(idle)} would "
            "have no effect. Leave such options out, or name a ranker to run on --dataset."
        )


def check_folds_at_hand(
    earlier: Sequence[stored_runs.Conditions], options: Mapping[str, Any]
) -> None:
    """Raise if the folders are of other folds than the options say."""
    from ebrank.data.loading import folds_of

    stored = [own.fold for own in earlier]
    if options["fold"] == ALL_FOLDS and earlier:
        folds = folds_of(options["dataset"], options["data_dir"])
        missing = [fold for fold in folds if fold not in stored]
        if missing:
            raise DataError(
                f"no folder holds fold {missing[0]} of {options['dataset']}",
                remedy=f"Run `ebrank simulate --fold {missing[0]}` with the options of the others, "
                "and name its folder too.",
            )
        beyond = [own for own in earlier if own.fold not in folds]
        if beyond:
            raise DataError(
                f"{options['dataset']} has no fold {beyond[0].fold}", path=Path(beyond[0].where)
            )
    elif len(earlier) > 1:
        numbers = ", ".join(map(str, stored))
        raise ParameterError(
            f"the folders hold folds {numbers}; to run rankers too, set --fold all"
        )


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
