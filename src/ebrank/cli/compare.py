"""`ebrank compare`: rankers side by side, run now or earlier, with significance letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console, lab
from ebrank.cli.lab_options import ALL_FOLDS, DATASET, RANKER, given_options, simulation_options
from ebrank.cli.options import AS_JSON
from ebrank.cli.verbs import arg, opt, verb
from ebrank.errors import DataError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    from ebrank.lab.rankers.base import Ranker
    from ebrank.lab.simulation.result import Result
    from ebrank.paper.comparison import Comparison

PICTURE = "compare.svg"
NOW = "now"
WITHOUT_RUNNING = {"runs", "out", "as_json"}
"""Options that have an effect even if no ranker runs."""


@verb(
    simulation_options(
        dataset=opt(None, f"{DATASET}; needed to run rankers.", "NAME|FOLDER"),
        out="Folder for compare.svg and the trials of rankers that run now; trials it already "
        "holds are not run again.",
    )
)
def compare(
    runs: tuple[str, ...] = arg(f"FOLDER|{RANKER}..."),
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
    from ebrank.paper.report.figures import svg

    folder.mkdir(parents=True, exist_ok=True)
    try:
        write_whole(folder / PICTURE, svg(figure(comparison)))
    except MissingExtraError as problem:
        console.warn(f"no picture: {problem}")
        return
    click.echo(f"Picture: {folder / PICTURE}", err=True)


# --- what is compared ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ComparedRanker:
    """A ranker in a comparison; the same text may stand for different code in another folder.

    Attributes:
        ranker: its text.
        engine: stamp of the code that runs its trials.
        where: the folder of its trials, `NOW` if they have not run yet.
        result: of its trials, None if they have not run yet.
        typed: as the user typed it; "" if only a folder names it.
    """

    ranker: str
    engine: str
    where: str
    result: Result | None = None
    typed: str = ""


@dataclass(frozen=True)
class Conditions:
    """What decides which users rankers meet, by name, and where that is; trials included."""

    where: str
    dataset: str
    values: Mapping[str, object]

    def check_same(self, other: Conditions) -> None:
        """Raise if rankers did not meet the same users."""
        differ = ", ".join(
            f"{name} ({self._shown(name)}, {other._shown(name)})"
            for name, value in self.values.items()
            if value != other.values.get(name)
        )
        if differ:
            raise DataError(
                f"{self.where} and {other.where} did not meet the same users: they differ in "
                f"{differ}",
                remedy="Compare runs with the same dataset, config, seed, trials and version.",
            )

    def _shown(self, name: str) -> str:
        value = str(self.values.get(name))
        return f"{self.dataset} {value[:8]}" if name == "dataset" else value


def read_folder(folder: Path) -> tuple[list[Conditions], list[ComparedRanker]]:
    """Return the runs that a folder keeps, and the conditions of each."""
    from ebrank.lab.simulation.storage import stored_runs

    where, conditions, rankers = str(folder), [], []
    for run in stored_runs(folder):
        size = {"trials": len(run.result.trials)}
        conditions.append(Conditions(where, run.result.dataset, run.conditions | size))
        rankers.append(ComparedRanker(run.result.ranker, run.engine, where, run.result))
    return conditions, rankers


def results_of(runs: Sequence[str], options: dict[str, Any]) -> list[Result]:
    """Return the results of all runs, in their order, each ranker once.

    Rankers with the same text but different code are different rankers; their names then include
    their folders.
    """
    from ebrank.lab.rankers import registry
    from ebrank.lab.simulation.stamps import stamp

    earlier: Conditions | None = None
    entries: dict[tuple[str, str], ComparedRanker] = {}
    for run in runs:
        if is_folder(run):
            conditions, named = read_folder(Path(run))
            earlier = earlier or conditions[0]
            for each in conditions:
                earlier.check_same(each)
        else:
            ranker = parsed(run)
            named = [ComparedRanker(str(ranker), stamp(ranker), NOW, typed=run)]
        for entry in named:
            known = entries.get((entry.ranker, entry.engine), entry)
            kept = entry if known.result is None else known
            kept = replace(kept, typed=known.typed or entry.typed)
            entries[entry.ranker, entry.engine] = kept
    if len(entries) < 2:
        raise ParameterError("a comparison needs at least two rankers; name another one")
    if earlier is not None and options["fold"] == ALL_FOLDS:
        raise click.UsageError(
            "folders are compared one fold at a time; leave out --fold all, or name rankers alone: "
            "--out keeps their trials in every fold"
        )
    new = {identity: entry for identity, entry in entries.items() if entry.result is None}
    if new or (options["dataset"] is not None and any(entry.typed for entry in entries.values())):
        rankers = [registry.parse(entry.typed) for entry in new.values()]
        for identity, result in zip(new, run_now(rankers, earlier, options), strict=True):
            entries[identity] = replace(entries[identity], result=result)
    else:
        refuse_idle_options()
    times = Counter(entry.ranker for entry in entries.values())
    return [
        replace(entry.result, ranker=_called(entry, alone=times[entry.ranker] == 1))
        for entry in entries.values()
        if entry.result is not None
    ]


def _called(entry: ComparedRanker, *, alone: bool) -> str:
    """Return the ranker as the user typed it; with its folder if others have the same text."""
    return (entry.typed or entry.ranker) + ("" if alone else f" ({entry.where})")


def is_folder(run: str) -> bool:
    """Return whether a run is a folder; the name of a built-in ranker never is."""
    from ebrank.lab.rankers import registry

    return run.partition(":")[0] not in registry.built_in() and Path(run).is_dir()


def parsed(run: str) -> Ranker:
    """Return the ranker that a run names."""
    from ebrank.lab.rankers import registry

    try:
        return registry.parse(run)
    except ParameterError as problem:
        if ":" in run or run in registry.built_in():
            raise
        raise ParameterError(f"folder not found: {run}; and {problem}") from None


def run_now(
    rankers: Sequence[Ranker], earlier: Conditions | None, options: dict[str, Any]
) -> list[Result]:
    """Run the rankers that no folder holds, if they will meet the same users as the others."""
    from ebrank.cli.simulate import run_all

    if options["dataset"] is None:
        names = ", ".join(map(str, rankers))
        raise ParameterError(f"to run {names}, set --dataset; only folders bring their own")
    return run_all(plans_that_meet(earlier, options), rankers, options)


def plans_that_meet(
    earlier: Conditions | None, options: dict[str, Any]
) -> Iterator[lab.SimulationPlan]:
    """Yield the simulation of each fold; raise if it does not meet the users of the folders."""
    from ebrank.lab.simulation.storage import conditions_of

    for plan in lab.plan_folds(**options):
        if earlier is not None:
            values = conditions_of(plan.dataset, plan.config, plan.seed)
            new = Conditions("the new run", plan.dataset.name, {**values, "trials": plan.trials})
            earlier.check_same(new)
        yield plan


def refuse_idle_options() -> None:
    """Raise if options ask for a run, but nothing runs."""
    idle = [option.opts[0] for option, _ in given_options(WITHOUT_RUNNING)]
    if idle:
        raise click.UsageError(
            f"nothing runs, because the folders hold all the rankers, so {', '.join(idle)} would "
            "have no effect. Leave such options out, or name a ranker to run on --dataset."
        )
