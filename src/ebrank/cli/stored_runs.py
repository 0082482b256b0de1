"""Runs that `ebrank simulate --out` keeps in a folder, and whether two are comparable."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_type_hints

from ebrank.cli import lab
from ebrank.errors import DataError, ParameterError

if TYPE_CHECKING:
    from ebrank.rankers.base import Ranker
    from ebrank.simulation.config import SimulationConfig
    from ebrank.simulation.result import Result
    from ebrank.simulation.storage import StoredTrials
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
        from ebrank.simulation.result import about_config

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
        from ebrank.experiments.framework.folds import set_name

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
    from ebrank.kernels.provenance import fingerprint, versions

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
    from ebrank.data.loading import folds_in

    folds = [fold for fold in folds_in(folder).values() if (fold / RESULTS).exists()]
    if folds and not (folder / RESULTS).exists():
        return [_read_run(fold) for fold in folds]
    return [_read_run(folder)]


def _read_run(folder: Path) -> StoredRun:
    from ebrank.simulation.storage import read_query_ids

    foreign = "not the results of a simulation"
    document = lab.read_own(folder / RESULTS, KIND, foreign, REMEDY)
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
        from ebrank.experiments.framework.folds import check_disjoint

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
        from ebrank.experiments.framework.folds import pooled

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
    from ebrank.simulation.result import Result
    from ebrank.simulation.storage import read_trial

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
    import msgspec

    from ebrank.simulation.config import SimulationConfig
    from ebrank.simulation.result import about_config
    from ebrank.simulation.users import parse

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
    from ebrank.kernels.provenance import versions
    from ebrank.simulation.result import about_config, about_dataset, measured
    from ebrank.simulation.storage import write_json

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
    document["rankers"] = _others(lab.read_own(path, KIND), document) + document["rankers"]
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
