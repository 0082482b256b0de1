"""Runs that `ebrank simulate --out` stored in a folder, and whether two are comparable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebrank.cli._simulation import SimulationPlan
from ebrank.errors import DataError, ParameterError

if TYPE_CHECKING:
    from ebrank.simulation.config import SimulationConfig
    from ebrank.simulation.result import Result

REMEDY = "Give a folder that `ebrank simulate --out` wrote."
AGAIN = "Run `ebrank simulate` there again."
NOW = "now"


@dataclass(frozen=True)
class Conditions:
    """Everything that decides which users rankers meet; rankers compare only if it is equal.

    Attributes:
        where: the folder, for messages.
        dataset, fingerprint: the dataset's name, and a hash of its content.
        config: the simulation, with the number of sessions.
        versions: of the code that ran it.
    """

    where: str
    dataset: str
    fingerprint: str
    config: dict[str, Any]
    seed: int
    trials: int
    versions: dict[str, str]

    def differences(self, other: Conditions) -> Iterator[str]:
        """Yield the differences from other conditions."""
        if self.fingerprint != other.fingerprint:
            same = " of other content" if self.dataset == other.dataset else ""
            yield f"dataset ({self.dataset}, {other.dataset}{same})"
        for name, value in self.config.items():
            if other.config.get(name) != value:
                yield f"{name} ({value}, {other.config.get(name)})"
        if self.seed != other.seed:
            yield f"seed ({self.seed}, {other.seed})"
        if self.trials != other.trials:
            yield f"trials ({self.trials}, {other.trials})"
        if self.versions["source"] != other.versions["source"]:
            yield f"version of the code ({_release(self.versions)}, {_release(other.versions)})"


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
    def identity(self) -> tuple[str, str]:
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


def conditions_of(plan: SimulationPlan) -> Conditions:
    """Return the conditions under which a plan will run."""
    from ebrank.provenance import fingerprint, versions

    config = _plain(plan.config) | {"sessions": plan.config.session_count(plan.dataset)}
    return Conditions(
        "the new run",
        plan.dataset.name,
        fingerprint(plan.dataset),
        config,
        plan.seed,
        plan.trials,
        versions(),
    )


def read_folder(folder: Path) -> tuple[Conditions, list[ComparedRanker]]:
    """Return the rankers that `ebrank simulate` ran in a folder, and their conditions.

    Raises:
        DataError: if the folder holds no such run, or a trial is missing, damaged or foreign.
    """
    document = _document(folder)
    try:
        config = _config(document["config"], folder)
        conditions = Conditions(
            str(folder),
            document["dataset"]["name"],
            document["dataset"]["fingerprint"],
            _plain(config) | {"sessions": document["rankers"][0]["sessions"]},
            document["seed"],
            min(len(entry["files"]) for entry in document["rankers"]),
            document["versions"],
        )
        entries = [(entry["ranker"], entry["files"]) for entry in document["rankers"]]
    except (KeyError, IndexError, TypeError, ValueError):
        path = folder / "results.json"
        raise DataError("the results are damaged", path=path, remedy=AGAIN) from None
    return conditions, [_stored_ranker(folder, conditions, config, *entry) for entry in entries]


def _document(folder: Path) -> dict[str, Any]:
    path = folder / "results.json"
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
        ours = document["kind"] == "ebrank simulate"
    except FileNotFoundError:
        raise DataError("no results.json in this folder", path=folder, remedy=REMEDY) from None
    except (ValueError, KeyError, TypeError):
        ours = False
    if not ours:
        raise DataError("not the results of a simulation", path=path, remedy=REMEDY)
    return document


def _stored_ranker(
    folder: Path, conditions: Conditions, config: SimulationConfig, ranker: str, files: list[str]
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
    result = Result(conditions.dataset, ranker, config, conditions.seed, tuple(trials))
    return ComparedRanker(ranker, engines.pop(), str(folder), result)


def _config(plain: dict[str, Any], folder: Path) -> SimulationConfig:
    """Return the config that a document describes; users are known by their text."""
    from ebrank.simulation.config import SimulationConfig
    from ebrank.simulation.users import parse

    names = {field.name for field in fields(SimulationConfig)} - {"users", "believed"}
    numbers = {name: plain[name] for name in names}
    tuples = {name: tuple(v) for name, v in numbers.items() if isinstance(v, list)}
    try:
        config = SimulationConfig(**numbers | tuples, users=parse(plain["users"]))
    except ParameterError as problem:
        raise DataError(
            f"has users that this command does not know: {problem}", path=folder
        ) from None
    if _plain(config) != plain:
        raise DataError("not a config of this command", path=folder)
    return config


def _plain(config: SimulationConfig) -> dict[str, Any]:
    """Return a config as JSON has it, with lists for tuples."""
    from ebrank.simulation.summary import about_config

    plain: dict[str, Any] = json.loads(json.dumps(about_config(config)))
    return plain
