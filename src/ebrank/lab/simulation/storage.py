"""Finished trials on disk, so that a stopped run continues where it stopped.

A trial is one `.npz` file: plain arrays, and a header that says what was run. Its name holds a hash
of everything its outcome depends on: the dataset's content, seed, trial number, ranker and config,
and the code of ranker, users and ebrank itself (`lab.simulation.stamps`). A trial is found again
only if all of this is the same. Files appear whole or not at all.

A folder of such files is the store of runs: `simulate`, `compare`, `tune` and `reproduce` keep
trials in one, and `stored_runs` reads whatever they kept.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import xxhash

from ebrank.environment.files import write_whole
from ebrank.errors import DataError
from ebrank.kernels.arrays import header_lock
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import Result, TrialResult, about_config
from ebrank.lab.simulation.stamps import fingerprint, stamp, versions
from ebrank.typing import Texts

FORMAT = 6
HEADER = "header"
QUERY_IDS = "query_ids"
"""The original ids of the test queries, for reading the file without the dataset."""
VERSION = "version of the code"
AGAIN = "Run `ebrank simulate` there again."
UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    RuntimeError,  # a flipped bit says: encrypted, or compressed in an unknown way
    zipfile.BadZipFile,
    zlib.error,
)


class StorageWarning(UserWarning):
    """A stored trial cannot be used, and is run again."""


class StoredTrials:
    """The trials of one experiment in a folder, which is made if needed."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        dataset: Dataset,
        config: SimulationConfig,
        seed: int,
    ) -> None:
        self.dataset = dataset
        self.config = config
        self.seed = seed
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._whole = dataclasses.replace(config, sessions=config.session_count(dataset))
        self._conditions = conditions_of(dataset, config, seed)
        self._stamps: dict[Ranker, dict[str, str]] = {}

    def path(self, ranker: Ranker, trial: int) -> Path:
        """Return the file of a trial, whether or not it exists."""
        text = json.dumps(self._identity(ranker, trial), sort_keys=True).encode()
        readable = re.sub(r"[^\w.=-]+", "_", str(ranker))[:80]
        return self.folder / f"{readable}_trial{trial}_{xxhash.xxh3_64_hexdigest(text)}.npz"

    def load(self, ranker: Ranker, trials: Iterable[int]) -> dict[int, TrialResult]:
        """Return the finished ones of some trials; warn of files that cannot be used.

        Code counts as it is now until the next call: running it may fill its own caches.
        """
        self._stamps.pop(ranker, None)
        loaded = ((trial, self._load(ranker, trial)) for trial in trials)
        return {trial: result for trial, result in loaded if result is not None}

    def _load(self, ranker: Ranker, trial: int) -> TrialResult | None:
        path = self.path(ranker, trial)
        try:
            result, header = read_trial(path)
        except FileNotFoundError:
            return None
        except DataError as problem:
            warnings.warn(f"{problem}; the trial is run again", StorageWarning, stacklevel=2)
            return None
        if header["identity"] != self._identity(ranker, trial):
            message = f"{path}: trial of another run; the right one is run"
            warnings.warn(message, StorageWarning, stacklevel=2)
            return None
        return result

    def save(self, ranker: Ranker, trial: int, result: TrialResult) -> None:
        """Write a finished trial, with all that decided it."""
        ids = self.dataset.query_ids[self.dataset.queries_in("test")]
        about = {"name": self.dataset.name, "conditions": self._conditions}
        header = {"identity": self._identity(ranker, trial), **about}
        write_trial(self.path(ranker, trial), result, header, ids)

    def _identity(self, ranker: Ranker, trial: int) -> dict[str, Any]:
        """Return everything a trial's outcome depends on."""
        if ranker not in self._stamps:
            users = stamp(self.config.users, self._whole)  # a click rule is code too
            self._stamps[ranker] = {"config": users, "engine": stamp(ranker)}
        content = self._conditions["dataset"]
        plain = {"dataset": content, "seed": int(self.seed), "trial": trial}
        return plain | {"ranker": str(ranker)} | self._stamps[ranker]


def write_trial(path: Path, result: TrialResult, header: dict[str, Any], ids: Texts) -> None:
    """Write a trial bit for bit, what decided it, and the ids of its test queries."""
    values = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    absent = [name for name, value in values.items() if value is None]
    text = json.dumps({"format": FORMAT, "absent": absent, **header})
    arrays = {name: np.asarray(value) for name, value in values.items() if value is not None}
    content = io.BytesIO()
    about = {HEADER: np.array(text), QUERY_IDS: ids}
    np.savez(content, allow_pickle=False, **about, **arrays)
    write_whole(path, content.getvalue())


def read_trial(path: Path) -> tuple[TrialResult, dict[str, Any]]:
    """Return a stored trial and its header.

    Raises:
        FileNotFoundError: if there is none.
        DataError: if the file is damaged, or something else.
    """
    try:
        content = io.BytesIO(path.read_bytes())
        with header_lock, np.load(content, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header: dict[str, Any] = json.loads(str(arrays.pop(HEADER)))
        arrays.pop(QUERY_IDS)
        if header["format"] != FORMAT:
            raise ValueError("another format")
        values: dict[str, Any] = dict.fromkeys(header["absent"])
        for name, array in arrays.items():
            values[name] = array if array.ndim else array.item()
        return TrialResult(**values), header
    except FileNotFoundError:
        raise
    except UNREADABLE as problem:
        raise DataError("damaged, or not a trial of a simulation", path=path) from problem


# --- all runs in a folder ------------------------------------------------------------------------


def conditions_of(dataset: Dataset, config: SimulationConfig, seed: int) -> dict[str, Any]:
    """Return what decides which users rankers meet, by name, as JSON reads it back."""
    whole = dataclasses.replace(config, sessions=config.session_count(dataset))
    made = versions()
    conditions = {
        "dataset": fingerprint(dataset),
        **about_config(whole),
        "seed": seed,
        VERSION: f"{made['ebrank']} {made['source'][:8]}",
    }
    return msgspec.json.decode(msgspec.json.encode(conditions), type=dict[str, Any])


@dataclass(frozen=True, eq=False)
class StoredRun:
    """The finished trials of one ranker in a folder.

    Attributes:
        conditions: what decides which users it met, by name.
        engine: stamp of the code that ran it.
    """

    conditions: dict[str, Any]
    engine: str
    result: Result


def stored_runs(folder: Path) -> list[StoredRun]:
    """Return the runs in a folder by name; of several versions of the code, this one's.

    Raises:
        DataError: if there is none, or a trial is missing or damaged.
    """
    read = [read_trial(path) for path in sorted(folder.glob("*.npz"))]
    version = f"{versions()['ebrank']} {versions()['source'][:8]}"
    ours = [own for own in read if own[1]["conditions"][VERSION] == version]
    runs: dict[str, dict[int, tuple[TrialResult, dict[str, Any]]]] = {}
    for trial, header in ours or read:
        identity = dict(header["identity"])
        number = identity.pop("trial")
        runs.setdefault(json.dumps(identity), {})[number] = trial, header
    if not runs:
        raise DataError(
            "no trials in this folder",
            path=folder,
            remedy="Give a folder that `ebrank simulate --out` wrote.",
        )
    return [_stored_run(folder, numbered) for numbered in runs.values()]


def _stored_run(folder: Path, numbered: dict[int, tuple[TrialResult, dict[str, Any]]]) -> StoredRun:
    trials, headers = zip(*(numbered[number] for number in sorted(numbered)), strict=True)
    ranker, conditions = headers[0]["identity"]["ranker"], headers[0]["conditions"]
    absent = set(range(max(numbered))) - numbered.keys()
    if absent:
        problem = f"trial {min(absent)} of {ranker} is missing"
        raise DataError(problem, path=folder, remedy=AGAIN)
    result = Result(headers[0]["name"], ranker, conditions, conditions["seed"], trials)
    return StoredRun(conditions, headers[0]["identity"]["engine"], result)


def write_json(path: Path, value: object) -> None:
    """Write a JSON document."""
    plain = msgspec.to_builtins(value)
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(path, text.encode())


def read_own(
    path: Path,
    kind: str,
    problem: str = "another program wrote this file",
    remedy: str = "Choose another --out.",
) -> dict[str, Any]:
    """Return the JSON document of a kind, {} without a file; raise if a file is something else."""
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
        if document["kind"] == kind:
            return document
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError):
        pass
    raise DataError(problem, path=path, remedy=remedy)
