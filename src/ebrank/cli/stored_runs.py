"""Runs that `ebrank simulate --out` keeps in a folder, and their comparison with others.

Verbs import this when they run, since it imports the simulator.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, get_type_hints

import click
import msgspec

from ebrank.cli import lab
from ebrank.cli.options import ALL_FOLDS
from ebrank.cli.protocol import given_options
from ebrank.cli.simulate import FinishedFolds
from ebrank.data.loading import folds_in, folds_of
from ebrank.errors import DataError, ParameterError
from ebrank.experiments.framework.folds import (
    AnyRanker,
    RankerByFold,
    check_disjoint,
    pooled,
    set_name,
)
from ebrank.kernels.provenance import fingerprint, stamp, versions
from ebrank.rankers import registry
from ebrank.rankers.base import Ranker
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.result import Result, about_config, about_dataset, measured
from ebrank.simulation.storage import (
    StoredTrials,
    read_own,
    read_query_ids,
    read_trial,
    write_json,
)
from ebrank.simulation.users import parse
from ebrank.typing import Texts

REMEDY = "Give a folder that `ebrank simulate --out` wrote."
AGAIN = "Run `ebrank simulate` there again."
NOW = "now"
RESULTS = "results.json"
KIND = "ebrank simulate"
Identity: TypeAlias = tuple[str, str]
"""A ranker's text, and the stamp of its code."""


@dataclass(frozen=True)
class Conditions:
    """Everything that decides which users rankers meet; rankers compare only if it is equal.

    Attributes:
        where: the folder, for messages.
        dataset, fingerprint: the dataset's name, and a hash of its content.
        fold: which fold of it; None where that is unknown.
        config: the simulation; its sessions are None where the dataset decides.
        sessions: of a trial.
        versions: of the code that ran it.
    """

    where: str
    dataset: str
    fingerprint: str
    fold: int | None
    config: SimulationConfig
    sessions: int
    seed: int
    trials: int
    versions: dict[str, str]

    def differences(self, other: Conditions, *, folds: bool = False) -> Iterator[str]:
        """Yield the differences from other conditions.

        Folds of one dataset may differ in their data, and in sessions that follow from it.
        """
        if not folds and self.fingerprint != other.fingerprint:
            same = " of other content" if self.dataset == other.dataset else ""
            yield f"dataset ({self.dataset}, {other.dataset}{same})"
        others = about_config(other.config)
        for name, value in about_config(self.config).items():
            if name != "sessions" and others[name] != value:
                yield f"{name} ({value}, {others[name]})"
        for name in ("seed", "trials"):
            if getattr(self, name) != getattr(other, name):
                yield f"{name} ({getattr(self, name)}, {getattr(other, name)})"
        if self.versions["source"] != other.versions["source"]:
            yield f"version of the code ({_release(self.versions)}, {_release(other.versions)})"
        ours, theirs = (each.config.sessions if folds else each.sessions for each in (self, other))
        if ours != theirs:
            first, second = ("by the dataset" if n is None else n for n in (ours, theirs))
            yield f"sessions ({first}, {second})"

    def is_another_fold_of(self, other: Conditions) -> bool:
        """Return whether two are different folds of one dataset, by their names and numbers."""
        apart = self.fold is not None and other.fold is not None and self.fold != other.fold
        return apart and set_name(self.dataset) == set_name(other.dataset)


@dataclass(frozen=True)
class ComparedRanker:
    """A ranker in a comparison; the same text may stand for different code in another folder.

    Attributes:
        ranker: its text.
        engine: stamp of the code that runs its trials.
        where: the folder of its trials, `NOW` if they have not run yet.
        result: of its trials, None if they have not run yet.
    """

    ranker: str
    engine: str
    where: str
    result: Result | None = None

    @property
    def identity(self) -> Identity:
        """What two entries of the same ranker share."""
        return self.ranker, self.engine


def _release(versions: dict[str, str]) -> str:
    return f"{versions['ebrank']} {versions['source'][:8]}"


def check_same(first: Conditions, second: Conditions) -> None:
    """Raise if two rankers did not meet the same users."""
    differ = ", ".join(first.differences(second))
    if differ:
        raise DataError(
            f"{first.where} and {second.where} did not meet the same users: they differ in "
            f"{differ}",
            remedy="Compare runs with the same dataset, config, seed, trials and version.",
        )


def conditions_of(plan: lab.SimulationPlan) -> Conditions:
    """Return the conditions under which a plan will run."""
    return Conditions(
        "the new run",
        plan.dataset.name,
        fingerprint(plan.dataset),
        plan.dataset.fold,
        plan.config,
        plan.config.session_count(plan.dataset),
        plan.seed,
        plan.trials,
        versions(),
    )


@dataclass(frozen=True)
class StoredRun:
    """What `ebrank simulate` ran in one folder."""

    conditions: Conditions
    rankers: list[ComparedRanker]
    test_queries: Texts


def read_runs(folder: Path) -> list[StoredRun]:
    """Return the runs in a folder: one, or one per fold if `--fold all` wrote it.

    Raises:
        DataError: if the folder holds no such run, or a trial is missing, damaged or foreign.
    """
    folds = [fold for fold in folds_in(folder).values() if (fold / RESULTS).exists()]
    if folds and not (folder / RESULTS).exists():
        return [_read_run(fold) for fold in folds]
    return [_read_run(folder)]


def _read_run(folder: Path) -> StoredRun:
    foreign = "not the results of a simulation"
    document = read_own(folder / RESULTS, KIND, foreign, REMEDY)
    if not document:
        raise DataError("no results.json in this folder", path=folder, remedy=REMEDY)
    try:
        conditions = Conditions(
            str(folder),
            document["dataset"]["name"],
            document["dataset"]["fingerprint"],
            document["dataset"]["fold"],
            _config(document["config"], folder),
            document["rankers"][0]["sessions"],
            document["seed"],
            min(len(entry["files"]) for entry in document["rankers"]),
            document["versions"],
        )
        entries = [(entry["ranker"], entry["files"]) for entry in document["rankers"]]
    except (KeyError, IndexError, TypeError, ValueError):
        path = folder / RESULTS
        raise DataError("the results are damaged", path=path, remedy=AGAIN) from None
    rankers = [_stored_ranker(folder, conditions, *entry) for entry in entries]
    return StoredRun(conditions, rankers, read_query_ids(folder / entries[0][1][0]))


class StoredFolds:
    """Runs by fold: within a fold they met the same users, and folds are pooled.

    Attributes:
        folds: the conditions of each, in the order of their numbers.
    """

    def __init__(self, runs: Iterable[StoredRun]) -> None:
        groups: dict[str, list[StoredRun]] = {}
        for run in runs:
            groups.setdefault(run.conditions.fingerprint, []).append(run)
        self._groups = sorted(groups.values(), key=lambda own: own[0].conditions.fold or 0)
        self.folds = [own[0].conditions for own in self._groups]
        for own in self._groups:
            for run in own[1:]:
                check_same(own[0].conditions, run.conditions)
        for other in self.folds[1:]:
            check_folds(self.folds[0], other)
        check_disjoint(
            {own[0].conditions.where: own[0].test_queries for own in self._groups},
            "Leave one of them out.",
        )

    def rankers(self) -> dict[Identity, ComparedRanker]:
        """Return each ranker once, its results pooled over folds, in the order of the runs."""
        by_fold = [
            {entry.identity: entry for run in reversed(own) for entry in run.rankers}
            for own in self._groups
        ]
        everyone = {}
        for identity in dict.fromkeys(
            entry.identity for own in self._groups for run in own for entry in run.rankers
        ):
            self._check_everywhere(identity, by_fold)
            entries = [own[identity] for own in by_fold]
            results = [entry.result for entry in entries if entry.result is not None]
            whole = pooled(results) if len(results) > 1 else results[0]
            everyone[identity] = replace(entries[0], result=whole)
        return everyone

    def _check_everywhere(
        self, identity: Identity, by_fold: Sequence[Mapping[Identity, ComparedRanker]]
    ) -> None:
        """Raise if a ranker is in one fold but not in another."""
        present = [own[identity].where for own in by_fold if identity in own]
        for fold, own in zip(self.folds, by_fold, strict=True):
            if identity not in own:
                ranker = identity[0]
                changed = any(ranker == text for text, _ in own)
                problem = "was run by other code" if changed else "was not run"
                raise DataError(
                    f"{ranker}, which {present[0]} has, {problem} in fold {fold.fold}",
                    path=Path(fold.where),
                    remedy=f"Run `ebrank simulate --fold {fold.fold} --ranker {ranker} --out "
                    f"{fold.where}` with the options of the other folds.",
                )


def check_folds(first: Conditions, second: Conditions) -> None:
    """Raise if two are not folds of one dataset that were run alike."""
    if not first.is_another_fold_of(second):
        check_same(first, second)
    differ = ", ".join(first.differences(second, folds=True))
    if differ:
        raise DataError(
            f"{first.where} and {second.where} are folds {first.fold} and {second.fold}, but "
            f"differ in {differ}",
            remedy=f"Run `ebrank simulate --fold {second.fold}` again with the options of "
            f"{first.where}.",
        )


def _stored_ranker(
    folder: Path, conditions: Conditions, ranker: str, files: list[str]
) -> ComparedRanker:
    if not files or len(files) != conditions.trials:
        problem = f"no finished trial of {ranker}"
        if files:
            problem = f"{len(files)} finished trials of {ranker}, {conditions.trials} of others"
        raise DataError(problem, path=folder, remedy=AGAIN)
    trials, engines = [], set()
    for number, name in enumerate(files):
        try:
            trial, identity = read_trial(folder / name)
        except FileNotFoundError:
            raise DataError("no such file", path=folder / name, remedy=AGAIN) from None
        stored = [identity.get(key) for key in ("dataset", "seed", "ranker", "trial")]
        if stored != [conditions.fingerprint, conditions.seed, ranker, number]:
            raise DataError("trial of another run", path=folder / name, remedy=AGAIN)
        trials.append(trial)
        engines.add(str(identity.get("engine")))
    if len(engines) > 1:
        raise DataError(f"different code ran the trials of {ranker}", path=folder, remedy=AGAIN)
    result = Result(conditions.dataset, ranker, conditions.config, conditions.seed, tuple(trials))
    return ComparedRanker(ranker, engines.pop(), str(folder), result)


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
    """Return the results of all runs, in their order, each ranker once, over all folds.

    Rankers with the same text but different code are different rankers; their names then include
    their folders.
    """
    stored: list[StoredRun] = []
    entries: dict[Identity, ComparedRanker] = {}
    rankers: dict[Identity, AnyRanker] = {}
    typed: dict[str, str] = {}
    for run in runs:
        if is_folder(run):
            held = read_runs(Path(run))
            stored += held
            named = [entry for own in held for entry in own.rankers]
        else:
            ranker = parsed(run, options)
            named = [ComparedRanker(str(ranker), stamp_of(ranker), NOW)]
            rankers[named[0].identity] = ranker
            typed.setdefault(named[0].ranker, run)
        for entry in named:
            entries.setdefault(entry.identity, entry)
    earlier = StoredFolds(stored)
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
    return stamp(*ranker.rankers) if isinstance(ranker, RankerByFold) else stamp(ranker)


def named_apart(entries: Sequence[ComparedRanker], typed: Mapping[str, str]) -> list[Result]:
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
    return run.partition(":")[0] not in registry.built_in() and Path(run).is_dir()


def parsed(run: str, options: Mapping[str, Any]) -> AnyRanker:
    """Return the ranker that a run names."""
    folds = {} if options["dataset"] else {"fold": None}  # only datasets have any
    try:
        return lab.read_rankers([run], {**options, **folds})[0]
    except ParameterError as problem:
        if ":" in run or run in registry.built_in():
            raise
        raise ParameterError(f"folder not found: {run}; and {problem}") from None


def run_now(
    rankers: Sequence[AnyRanker], earlier: Sequence[Conditions], options: dict[str, Any]
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
    earlier: Sequence[Conditions], options: dict[str, Any]
) -> Iterator[lab.SimulationPlan]:
    """Yield the simulation of each fold; raise if it does not meet the users of the folders."""
    check_folds_at_hand(earlier, options)
    for place, plan in enumerate(lab.plan_pooled_folds(**options)):
        if earlier:
            check_same(earlier[place], conditions_of(plan))
        yield plan


def check_nothing_else_was_meant(
    names_rankers: bool, earlier: Sequence[Conditions], options: dict[str, Any]
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


def check_folds_at_hand(earlier: Sequence[Conditions], options: Mapping[str, Any]) -> None:
    """Raise if the folders are of other folds than the options say."""
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
    document: dict[str, Any] = {
        "kind": KIND,
        "dataset": about_dataset(plan.dataset) | {"fingerprint": store.fingerprint},
        "config": about_config(plan.config),
        "seed": plan.seed,
        "trials": plan.trials,
        "complete": all(len(result.trials) == plan.trials for result in results),
        "versions": versions(),
        "rankers": [
            {"ranker": result.ranker}
            | measured(result)
            | {"files": [store.path(ranker, trial).name for trial in range(plan.trials)]}
            for ranker, result in zip(rankers, results, strict=True)
        ],
    }
    path = store.folder / RESULTS
    document["rankers"] = _others(read_own(path, KIND), document) + document["rankers"]
    for entry in document["rankers"]:
        entry["files"] = [name for name in entry["files"] if (store.folder / name).exists()]
    write_json(path, document)


def _others(earlier: dict[str, Any], document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the earlier entries of rankers that a document lacks, if they are comparable."""
    if not earlier or _compared(earlier) != _compared(document):
        return []
    present = {entry["ranker"] for entry in document["rankers"]}
    return [entry for entry in earlier["rankers"] if entry["ranker"] not in present]


def _compared(document: dict[str, Any]) -> str:
    """Return what entries of one document must share, as text: JSON knows no tuples."""
    data, versions = document["dataset"], document["versions"]
    shared = (data["fingerprint"], document["config"], document["seed"], versions["source"])
    return json.dumps(shared, sort_keys=True)
