"""What `ebrank simulate --out` left in a folder, and whether it met the users that others met."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebrank.cli._experiment import Experiment
from ebrank.errors import DataError

if TYPE_CHECKING:
    from ebrank.simulation.config import SimulationConfig
    from ebrank.simulation.result import Result

REMEDY = "Give a folder written by ebrank simulate --out."
AGAIN = "Run ebrank simulate there again."
NOW = "now"


@dataclass(frozen=True)
class Meeting:
    """All that decides which users rankers meet.

    Attributes:
        where: whose it is, for messages.
        dataset, fingerprint: the dataset's name, and a hash of its content.
        config: the experiment, with the number of sessions.
        versions: of what ran it.
    """

    where: str
    dataset: str
    fingerprint: str
    config: dict[str, Any]
    seed: int
    trials: int
    versions: dict[str, str]

    def differences(self, other: Meeting) -> Iterator[str]:
        """Yield in what another one differs."""
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
class Entry:
    """A ranker's part in a comparison: the same text may stand for other code elsewhere.

    Attributes:
        ranker: its text.
        engine: stamp of the code that made its trials, or will.
        where: the folder they are in, `NOW` if it is yet to be run.
        result: of its trials, None if it is yet to be run.
    """

    ranker: str
    engine: str
    where: str
    result: Result | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """What makes two the same."""
        return self.ranker, self.engine


def _release(versions: dict[str, str]) -> str:
    return f"{versions['ebrank']} {versions['source'][:8]}"


def check_same(first: Meeting, second: Meeting) -> None:
    """Raise where two did not meet the same users."""
    differ = ", ".join(first.differences(second))
    if differ:
        raise DataError(
            f"{first.where} and {second.where} do not meet the same users; they differ in {differ}",
            remedy="Compare runs of one dataset, config, seed, number of trials and version.",
        )


def meeting_of(told: Experiment) -> Meeting:
    """Return whom the rankers of an experiment will meet."""
    from ebrank.provenance import fingerprint, versions

    config = _plain(told.config) | {"sessions": told.config.session_count(told.dataset)}
    data, where = told.dataset, "what is to be run"
    return Meeting(where, data.name, fingerprint(data), config, told.seed, told.trials, versions())


def read_folder(folder: Path) -> tuple[Meeting, list[Entry]]:
    """Return what a folder of `ebrank simulate` holds, and whom its rankers met.

    Raises:
        DataError: if it is none, or a trial is missing, damaged, or of something else.
    """
    document = _document(folder)
    try:
        config = _config(document["config"], folder)
        meeting = Meeting(
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
        raise DataError("not as ebrank simulate writes it", path=path, remedy=AGAIN) from None
    return meeting, [_entry(folder, meeting, config, *entry) for entry in entries]


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
        raise DataError("no results of a simulation", path=path, remedy=REMEDY)
    return document


def _entry(
    folder: Path, meeting: Meeting, config: SimulationConfig, ranker: str, files: list[str]
) -> Entry:
    from ebrank.simulation.result import Result
    from ebrank.simulation.storage import read_trial

    if not files or len(files) != meeting.trials:
        problem = f"no finished trial of {ranker}"
        if files:
            problem = f"{len(files)} finished trials of {ranker}, {meeting.trials} of others"
        raise DataError(problem, path=folder, remedy=AGAIN)
    trials, engines = [], set()
    for number, name in enumerate(files):
        try:
            trial, identity = read_trial(folder / name)
        except FileNotFoundError:
            raise DataError("no such file", path=folder / name, remedy=AGAIN) from None
        told = [identity.get(key) for key in ("dataset", "seed", "ranker", "trial")]
        if told != [meeting.fingerprint, meeting.seed, ranker, number]:
            raise DataError("a trial of something else", path=folder / name, remedy=AGAIN)
        trials.append(trial)
        engines.add(str(identity.get("engine")))
    if len(engines) > 1:
        raise DataError(f"trials of {ranker} made by different code", path=folder, remedy=AGAIN)
    result = Result(meeting.dataset, ranker, config, meeting.seed, tuple(trials))
    return Entry(ranker, engines.pop(), str(folder), result)


def _config(plain: dict[str, Any], folder: Path) -> SimulationConfig:
    """Return the config that a document tells of; users are always those of the command line."""
    from ebrank.simulation.config import SimulationConfig

    names = {field.name for field in fields(SimulationConfig)} - {"users", "believed"}
    numbers = {name: plain[name] for name in names}
    tuples = {name: tuple(v) for name, v in numbers.items() if isinstance(v, list)}
    config = SimulationConfig(**numbers | tuples)
    if _plain(config) != plain:
        raise DataError("has users that this command does not know", path=folder)
    return config


def _plain(config: SimulationConfig) -> dict[str, Any]:
    """Return a config as JSON has it, which knows no tuples."""
    from ebrank.simulation.summary import about_config

    told: dict[str, Any] = json.loads(json.dumps(about_config(config)))
    return told
