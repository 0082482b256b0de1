"""Runs that `ebrank simulate --out` keeps in a folder, and their comparison with others.

Verbs import this when they run, since it imports the simulator.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_type_hints

import click
import msgspec

from ebrank.cli import lab
from ebrank.cli.options import ALL_FOLDS
from ebrank.cli.protocol import given_options
from ebrank.cli.simulate import run_all
from ebrank.errors import DataError, ParameterError
from ebrank.kernels.provenance import fingerprint, stamp, versions
from ebrank.lab.data.loading import folds_in
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import (
    Result,
    TrialResult,
    about_config,
    about_dataset,
    measured,
)
from ebrank.lab.simulation.storage import StoredTrials, read_own, read_trial, write_json
from ebrank.lab.simulation.users import parse

REMEDY = "Give a folder that `ebrank simulate --out` wrote."
AGAIN = "Run `ebrank simulate` there again."
NOW = "now"
RESULTS = "results.json"
KIND = "ebrank simulate"
Identity: TypeAlias = tuple[str, str]
"""A ranker's text, and the stamp of its code."""


class Conditions(NamedTuple):
    """What decides which users rankers meet; rankers compare only if it is equal.

    Attributes:
        where, dataset: the folder and the dataset's name, for messages.
        values: everything that decides, by name; the dataset by its content.
    """

    where: str
    dataset: str
    values: Mapping[str, object]

    def shown(self, name: str) -> str:
        """Return a value as messages show it."""
        value = str(self.values[name])
        return f"{self.dataset} {value[:8]}" if name == "dataset" else value


def conditions_of(
    document: Mapping[str, Any], where: str, trials: int, sessions: int
) -> Conditions:
    """Return the conditions of a document; `trials` have finished, of so many `sessions` each."""
    size = {"trials": trials, "sessions": sessions}
    return Conditions(where, document["dataset"]["name"], {**_same_for_all(document), **size})


def _same_for_all(document: Mapping[str, Any]) -> dict[str, object]:
    """Return what all entries of a document share, by name."""
    made = document["versions"]
    return {
        "dataset": document["dataset"]["fingerprint"],
        **document["config"],
        "seed": document["seed"],
        "version of the code": f"{made['ebrank']} {made['source'][:8]}",
    }


def check_same(first: Conditions, second: Conditions) -> None:
    """Raise if two rankers did not meet the same users."""
    differ = ", ".join(
        f"{name} ({first.shown(name)}, {second.shown(name)})"
        for name, value in first.values.items()
        if value != second.values[name]
    )
    if differ:
        raise DataError(
            f"{first.where} and {second.where} did not meet the same users: they differ in "
            f"{differ}",
            remedy="Compare runs with the same dataset, config, seed, trials and version.",
        )


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

    @property
    def identity(self) -> Identity:
        """What two entries of the same ranker share."""
        return self.ranker, self.engine


def read_run(folder: Path) -> tuple[Conditions, list[ComparedRanker]]:
    """Return what `ebrank simulate` ran in a folder.

    Raises:
        DataError: if the folder holds no such run, or a trial is missing, damaged or foreign.
    """
    foreign = "not the results of a simulation"
    document = read_own(folder / RESULTS, KIND, foreign, REMEDY)
    if not document:
        inside = next((fold for fold in folds_in(folder).values() if (fold / RESULTS).exists()), "")
        remedy = f"It has folds: give one of them, such as {inside}." if inside else REMEDY
        raise DataError("no results.json in this folder", path=folder, remedy=remedy)
    try:
        config = _config(document["config"], folder)
        entries = [(entry["ranker"], entry["files"]) for entry in document["rankers"]]
        trials, sessions = len(entries[0][1]), document["rankers"][0]["sessions"]
        conditions = conditions_of(document, str(folder), trials, sessions)
        run = [document["dataset"]["fingerprint"], document["seed"]]
    except (KeyError, IndexError, TypeError, ValueError):
        path = folder / RESULTS
        raise DataError("the results are damaged", path=path, remedy=AGAIN) from None
    rankers = []
    for ranker, files in entries:
        if not files or len(files) != trials:
            problem = f"{len(files)} finished trials of {ranker}, {trials} of {entries[0][0]}"
            raise DataError(problem, path=folder, remedy=AGAIN)
        results, engine = _stored_trials(folder, [*run, ranker], files)
        result = Result(document["dataset"]["name"], ranker, config, document["seed"], results)
        rankers.append(ComparedRanker(ranker, engine, str(folder), result))
    return conditions, rankers


def _stored_trials(
    folder: Path, run: Sequence[object], files: Sequence[str]
) -> tuple[tuple[TrialResult, ...], str]:
    """Return the trials of a ranker in their order, and the stamp of the code that ran them."""
    trials, engines = [], set()
    for number, name in enumerate(files):
        try:
            trial, identity = read_trial(folder / name)
        except FileNotFoundError:
            raise DataError("no such file", path=folder / name, remedy=AGAIN) from None
        if [identity.get(key) for key in ("dataset", "seed", "ranker", "trial")] != [*run, number]:
            raise DataError("trial of another run", path=folder / name, remedy=AGAIN)
        trials.append(trial)
        engines.add(str(identity.get("engine")))
    if len(engines) > 1:
        raise DataError(f"different code ran the trials of {run[-1]}", path=folder, remedy=AGAIN)
    return tuple(trials), engines.pop()


def _config(plain: dict[str, Any], folder: Path) -> SimulationConfig:
    """Return the config that a document describes; users are given by their text."""
    try:
        users = parse(plain["users"])
    except ParameterError as problem:
        message = f"has users that this command does not know: {problem}"
        raise DataError(message, path=folder) from None
    kinds = get_type_hints(SimulationConfig)
    del kinds["users"]
    fields = {name: msgspec.convert(plain[name], kind) for name, kind in kinds.items()}
    config = SimulationConfig(users=users, **fields)
    if json.loads(json.dumps(about_config(config))) != plain:
        raise DataError("not a config of this command", path=folder)
    return config


# --- comparing -----------------------------------------------------------------------------------

WITHOUT_RUNNING = {"runs", "out", "as_json"}
"""What has an effect even if no ranker runs."""


def results_of(runs: Sequence[str], options: dict[str, Any]) -> list[Result]:
    """Return the results of all runs, in their order, each ranker once.

    Rankers with the same text but different code are different rankers; their names then include
    their folders.
    """
    earlier: Conditions | None = None
    entries: dict[Identity, ComparedRanker] = {}
    for run in runs:
        if is_folder(run):
            conditions, named = read_run(Path(run))
            earlier = earlier or conditions
            check_same(earlier, conditions)
        else:
            ranker = parsed(run)
            named = [ComparedRanker(str(ranker), stamp(ranker), NOW, typed=run)]
        for entry in named:
            known = entries.get(entry.identity, entry)
            kept = entry if known.result is None else known
            entries[entry.identity] = replace(kept, typed=known.typed or entry.typed)
    if len(entries) < 2:
        raise ParameterError("a comparison needs at least two rankers; name another one")
    if earlier is not None and options["fold"] == ALL_FOLDS:
        raise click.UsageError(
            "folders are compared one fold at a time; leave out --fold all, or name rankers alone: "
            "--out keeps their trials in every fold"
        )
    new = [entry for entry in entries.values() if entry.result is None]
    if not new:
        named_any = any(entry.typed for entry in entries.values())
        check_nothing_else_was_meant(named_any, earlier, options)
    else:
        rankers = [registry.parse(entry.typed) for entry in new]
        for entry, result in zip(new, run_now(rankers, earlier, options), strict=True):
            entries[entry.identity] = replace(entry, result=result)
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
    return run.partition(":")[0] not in registry.built_in() and Path(run).is_dir()


def parsed(run: str) -> Ranker:
    """Return the ranker that a run names."""
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
    if options["dataset"] is None:
        names = ", ".join(map(str, rankers))
        raise ParameterError(f"to run {names}, set --dataset; only folders bring their own")
    return run_all(plans_that_meet(earlier, options), rankers, options)


def plans_that_meet(
    earlier: Conditions | None, options: dict[str, Any]
) -> Iterator[lab.SimulationPlan]:
    """Yield the simulation of each fold; raise if it does not meet the users of the folders."""
    for plan in lab.plan_folds(**options):
        if earlier is not None:
            document = document_of(plan, fingerprint(plan.dataset))
            sessions = plan.config.session_count(plan.dataset)
            check_same(earlier, conditions_of(document, "the new run", plan.trials, sessions))
        yield plan


def check_nothing_else_was_meant(
    names_rankers: bool, earlier: Conditions | None, options: dict[str, Any]
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


# --- writing -------------------------------------------------------------------------------------


def write_results(
    store: StoredTrials,
    plan: lab.SimulationPlan,
    rankers: Sequence[Ranker],
    results: Sequence[Result],
) -> None:
    """Write `results.json`: the results so far, and everything they depend on; no times.

    It keeps earlier results of other rankers if all else is the same.
    """
    document = document_of(plan, store.fingerprint)
    document["complete"] = all(len(result.trials) == plan.trials for result in results)
    document["rankers"] = [
        {"ranker": result.ranker}
        | measured(result)
        | {"files": [store.path(ranker, trial).name for trial in range(plan.trials)]}
        for ranker, result in zip(rankers, results, strict=True)
    ]
    path = store.folder / RESULTS
    document["rankers"][:0] = _others(read_own(path, KIND), document)
    for entry in document["rankers"]:
        entry["files"] = [name for name in entry["files"] if (store.folder / name).exists()]
    write_json(path, document)


def document_of(plan: lab.SimulationPlan, fingerprint: str) -> dict[str, Any]:
    """Return the `results.json` of a plan before any trial, as JSON reads it back."""
    document: dict[str, Any] = {
        "kind": KIND,
        "dataset": about_dataset(plan.dataset) | {"fingerprint": fingerprint},
        "config": about_config(plan.config),
        "seed": plan.seed,
        "trials": plan.trials,
        "complete": False,
        "versions": versions(),
        "rankers": [],
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=dict[str, Any])


def _others(earlier: dict[str, Any], document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the earlier entries of rankers that a document lacks, if they are comparable."""
    if not earlier or _same_for_all(earlier) != _same_for_all(document):
        return []
    present = {entry["ranker"] for entry in document["rankers"]}
    return [entry for entry in earlier["rankers"] if entry["ranker"] not in present]
