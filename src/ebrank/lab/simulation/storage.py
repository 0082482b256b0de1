"""Finished trials on disk, so that a stopped run continues where it stopped.

A trial is one `.npz` file: plain arrays, and a header that says what was run. Its name holds a hash
of everything its outcome depends on: the dataset's content, seed, trial number, ranker and config,
and the code of ranker, users and ebrank itself (`kernels.provenance`). A trial is found again only
if all of this is the same. Files appear whole or not at all.
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
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from ebrank.environment.files import write_whole
from ebrank.errors import DataError
from ebrank.kernels.arrays import header_lock
from ebrank.kernels.provenance import fingerprint, stamp
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import TrialResult
from ebrank.typing import Texts

FORMAT = 5
HEADER = "header"
QUERY_IDS = "query_ids"
"""The original ids of the test queries, for reading the file without the dataset."""
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
        self.fingerprint = fingerprint(dataset)
        self._whole = dataclasses.replace(config, sessions=config.session_count(dataset))
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
            result, identity = read_trial(path)
        except FileNotFoundError:
            return None
        except DataError as problem:
            warnings.warn(f"{problem}; the trial is run again", StorageWarning, stacklevel=2)
            return None
        if identity != self._identity(ranker, trial):
            message = f"{path}: trial of another run; the right one is run"
            warnings.warn(message, StorageWarning, stacklevel=2)
            return None
        return result

    def save(self, ranker: Ranker, trial: int, result: TrialResult) -> None:
        """Write a finished trial."""
        ids = self.dataset.query_ids[self.dataset.queries_in("test")]
        write_trial(self.path(ranker, trial), result, self._identity(ranker, trial), ids)

    def _identity(self, ranker: Ranker, trial: int) -> dict[str, Any]:
        """Return everything a trial's outcome depends on."""
        if ranker not in self._stamps:
            users = stamp(self.config.users, self._whole)  # a click rule is code too
            self._stamps[ranker] = {"config": users, "engine": stamp(ranker)}
        plain = {"dataset": self.fingerprint, "seed": int(self.seed), "trial": trial}
        return plain | {"ranker": str(ranker)} | self._stamps[ranker]


def write_trial(path: Path, result: TrialResult, identity: dict[str, Any], ids: Texts) -> None:
    """Write a trial bit for bit, its identity, and the ids of its test queries."""
    values = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    absent = [name for name, value in values.items() if value is None]
    header = json.dumps({"format": FORMAT, "identity": identity, "absent": absent})
    arrays = {name: np.asarray(value) for name, value in values.items() if value is not None}
    content = io.BytesIO()
    about = {HEADER: np.array(header), QUERY_IDS: ids}
    np.savez(content, allow_pickle=False, **about, **arrays)
    write_whole(path, content.getvalue())


def read_trial(path: Path) -> tuple[TrialResult, dict[str, Any]]:
    """Return a stored trial and its identity.

    Raises:
        FileNotFoundError: if there is none.
        DataError: if the file is damaged, or something else.
    """
    try:
        content = io.BytesIO(path.read_bytes())
        with header_lock, np.load(content, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays.pop(HEADER)))
        arrays.pop(QUERY_IDS)
        if header["format"] != FORMAT:
            raise ValueError("another format")
        values: dict[str, Any] = dict.fromkeys(header["absent"])
        for name, array in arrays.items():
            values[name] = array if array.ndim else array.item()
        return TrialResult(**values), header["identity"]
    except FileNotFoundError:
        raise
    except UNREADABLE as problem:
        raise DataError("damaged, or not a trial of a simulation", path=path) from problem


def write_json(path: Path, value: object) -> None:
    """Write a JSON document."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
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
