"""Trials on disk: back bit for bit, found by content, never trusted when damaged."""

from __future__ import annotations

import ast
import dataclasses
import json
import shutil
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from ebrank.errors import DataError
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.simulation import stamps
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial
from ebrank.lab.simulation.result import TrialResult
from ebrank.lab.simulation.storage import (
    StorageWarning,
    StoredTrials,
    conditions_of,
    read_trial,
    stored_runs,
    write_trial,
)
from ebrank.lab.simulation.users import parse
from ebrank.testing.rankers import differences
from tests.importing import Folder, folder

__all__ = ["folder"]

BM25 = registry.parse("bm25")
EBRANK = registry.parse("ebrank")
SHORT = SimulationConfig(sessions=60, updates=3)
IDS = np.array(["q1", "q2"])


@pytest.fixture(scope="module")
def trial(dataset: Dataset) -> TrialResult:
    return run_trial(dataset, EBRANK, SHORT, seed=1, trial=0)


def same(one: TrialResult, other: TrialResult) -> bool:
    """Return whether two results agree in every bit, run times included."""
    return differences(one, other) == [] and one.seconds == other.seconds


@given(
    npst.arrays(np.float64, npst.array_shapes(max_dims=2, min_side=0), elements=st.floats()),
    st.floats(),
)
def test_odd_numbers_come_back_too(
    tmp_path_factory: pytest.TempPathFactory,
    trial: TrialResult,
    array: np.ndarray,
    number: float,
) -> None:
    odd = dataclasses.replace(trial, warm_ndcg=array, validation_ndcg=number, weights=None)
    path = tmp_path_factory.mktemp("odd") / "t.npz"
    write_trial(path, odd, {"seed": 1}, IDS)
    read, header = read_trial(path)
    assert same(read, odd)
    assert read.warm_ndcg.shape == array.shape
    assert header["seed"] == 1


def test_the_name_holds_all_that_matters(
    tmp_path: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def path(data: Dataset = dataset, config: SimulationConfig = SHORT, seed: int = 1) -> Path:
        return StoredTrials(tmp_path, data, config, seed).path(EBRANK, 0)

    labels = dataset.labels.copy()
    labels[0] += 1
    store = StoredTrials(tmp_path, dataset, SHORT, 1)
    others = {
        path(seed=2),
        path(data=dataclasses.replace(dataset, labels=labels)),
        path(config=dataclasses.replace(SHORT, discount=0.9)),
        path(config=dataclasses.replace(SHORT, click_rate=0.9)),
        path(config=dataclasses.replace(SHORT, users=parse("cascade"))),
        path(config=dataclasses.replace(SHORT, users=parse("dbn"))),
        path(config=dataclasses.replace(SHORT, users=parse("dbn:perseverance=0.8"))),
        store.path(EBRANK, 1),
        store.path(BM25, 0),
        store.path(registry.parse("ebrank:epsilon=3"), 0),
    }
    usual = path()
    assert path() == usual
    monkeypatch.setattr(stamps, "package_stamp", lambda: "another engine")
    assert len(others | {usual, path()}) == 12


USERS = """
from dataclasses import dataclass, field
from ebrank.kernels.compiled import FirstClass
from ebrank.evidence import Examination
from ebrank.lab.simulation.users import BROWSE
from patience import PATIENCE

def rule(relevance, stopping, examination, minds, length, key, outcomes):
    for rank in range(length):
        outcomes[rank] = rank < PATIENCE and minds[rank] < examination[rank] * relevance[rank]

RULE = FirstClass(rule, BROWSE)

@dataclass(frozen=True)
class Patient:
    examination: Examination = field(default_factory=lambda: Examination(cutoff=5))
    @property
    def browse(self):
        return RULE
"""


def test_the_code_of_users_matters_too(tmp_path: Path, dataset: Dataset, folder: Folder) -> None:
    def path() -> Path:
        config = dataclasses.replace(SHORT, users=folder.load("own_users").Patient())
        return StoredTrials(tmp_path / "store", dataset, config, seed=1).path(EBRANK, 0)

    folder.write({"own_users": USERS, "patience": "PATIENCE = 1"})
    first = path()
    assert path() == first
    folder.write({"own_users": USERS.replace("* relevance", "/ 2 * relevance")})
    edited = path()
    folder.write({"own_users": USERS, "patience": "PATIENCE = 5"})
    assert len({first, edited, path()}) == 3


def test_the_formulas_sessions_may_be_given(tmp_path: Path, dataset: Dataset) -> None:
    formula = SimulationConfig()
    given = dataclasses.replace(formula, sessions=formula.session_count(dataset))
    paths = {
        StoredTrials(tmp_path, dataset, config, 0).path(BM25, 0) for config in (formula, given)
    }
    assert len(paths) == 1


def test_what_a_ranker_remembers_while_it_runs_does_not_matter(
    tmp_path: Path, dataset: Dataset, folder: Folder, trial: TrialResult
) -> None:
    text = """
from dataclasses import dataclass
from ebrank.lab.rankers.bm25 import BM25
from ebrank.lab.rankers.base import Ranker
SEEN = []
@dataclass(frozen=True)
class Mine(Ranker):
    name, help, settings = "mine", "A test's.", ("none",)
    def learner(self, trial):
        SEEN.append(len(SEEN))
        return BM25().learner(trial)
"""
    folder.write({"remembering": text})
    module: Any = folder.load("remembering")
    store = StoredTrials(tmp_path / "store", dataset, SHORT, seed=1)
    assert store.load(module.Mine(), [0]) == {}
    module.SEEN.append(0)
    store.save(module.Mine(), 0, trial)
    assert store.path(module.Mine(), 0).is_file()
    again = folder.load("remembering").Mine()
    assert StoredTrials(tmp_path / "store", dataset, SHORT, seed=1).load(again, [0]).keys() == {0}


def test_a_damaged_file_is_run_again(tmp_path: Path, dataset: Dataset, trial: TrialResult) -> None:
    store = StoredTrials(tmp_path, dataset, SHORT, 1)
    store.save(EBRANK, 0, trial)
    path = store.path(EBRANK, 0)
    good = path.read_bytes()
    lengths = np.linspace(0, len(good) - 1, 40).astype(int)
    damaged = [good[:length] for length in lengths] + [b"", b"PK\x03\x04", b"[1]", good[::-1]]
    for content in damaged:
        path.write_bytes(content)
        with pytest.warns(StorageWarning, match="damaged, or not a trial of a simulation"):
            assert store.load(EBRANK, [0]) == {}


@pytest.mark.slow
def test_no_flipped_bit_goes_unnoticed(
    tmp_path: Path, dataset: Dataset, trial: TrialResult
) -> None:
    store = StoredTrials(tmp_path, dataset, SHORT, 1)
    store.save(EBRANK, 0, trial)
    path = store.path(EBRANK, 0)
    good = bytearray(path.read_bytes())
    for place in np.linspace(0, len(good) - 1, 150).astype(int):
        bad = good.copy()
        bad[place] ^= 0x10
        path.write_bytes(bad)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read = store.load(EBRANK, [0])
        assert not read or same(read[0], trial)  # some bytes of a zip file mean nothing


def test_a_trial_of_something_else_is_not_taken(
    tmp_path: Path, dataset: Dataset, trial: TrialResult
) -> None:
    store = StoredTrials(tmp_path, dataset, SHORT, 1)
    store.save(EBRANK, 0, trial)
    shutil.copy(store.path(EBRANK, 0), store.path(EBRANK, 1))
    with pytest.warns(StorageWarning, match="trial of another run"):
        assert store.load(EBRANK, [1]) == {}


def header_of(path: Path) -> dict[str, Any]:
    with np.load(path) as file:
        header: dict[str, Any] = json.loads(str(file["header"]))
    return header


@pytest.mark.parametrize("change", [{"format": 99}, {"absent": ["nothing"]}, {"absent": 3}])
def test_another_format_is_not_taken(
    tmp_path: Path, trial: TrialResult, change: dict[str, object]
) -> None:
    path = tmp_path / "t.npz"
    write_trial(path, trial, {}, IDS)
    header = header_of(path) | change
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | {
            "header": np.array(json.dumps(header))
        }
    np.savez(path, allow_pickle=False, **arrays)
    with pytest.raises(DataError, match=str(path)):
        read_trial(path)


# --- all runs of a folder ------------------------------------------------------------------------


def test_a_folder_tells_what_was_run_in_it(
    tmp_path: Path, dataset: Dataset, trial: TrialResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = StoredTrials(tmp_path, dataset, SHORT, 1)
    for number in (1, 0):
        store.save(EBRANK, number, dataclasses.replace(trial, seconds=float(number)))
    store.save(BM25, 0, trial)
    runs = {run.result.ranker: run for run in stored_runs(tmp_path)}
    assert runs.keys() == {"ebrank", "bm25"}
    ours = runs["ebrank"]
    assert [each.seconds for each in ours.result.trials] == [0.0, 1.0]
    assert ours.result.dataset == dataset.name
    assert ours.conditions == conditions_of(dataset, SHORT, 1) == runs["bm25"].conditions
    assert ours.engine == stamps.stamp(EBRANK)
    monkeypatch.setattr(stamps, "package_stamp", lambda: "0123456789abcdef")
    newer = StoredTrials(tmp_path, dataset, SHORT, 1)
    newer.save(BM25, 0, trial)
    (only,) = stored_runs(tmp_path)
    assert only.result.ranker == "bm25", "this version's"
    store.path(EBRANK, 0)
    newer.path(BM25, 0).unlink()
    assert len(stored_runs(tmp_path)) == 2, "those there are"
    next(tmp_path.glob("ebrank_trial0_*")).unlink()
    with pytest.raises(DataError, match="trial 0 of ebrank is missing"):
        stored_runs(tmp_path)
    with pytest.raises(DataError, match="no trials in this folder"):
        stored_runs(tmp_path / "none")


# --- threads take turns with Python's parser, which reads the headers of arrays -------------------

THREADS = 4


@pytest.fixture
def most_at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many threads parsed at the same time, at most."""
    parse, inside, counts = ast.literal_eval, set[int](), list[int]()

    def slow_parse(text: str) -> object:
        inside.add(threading.get_ident())
        counts.append(len(inside))
        time.sleep(0.005)
        inside.remove(threading.get_ident())
        return parse(text)

    monkeypatch.setattr(ast, "literal_eval", slow_parse)
    return lambda: max(counts)


def test_one_thread_reads_a_header_at_a_time(
    tmp_path: Path, trial: TrialResult, most_at_once: Callable[[], int]
) -> None:
    file = tmp_path / "trial.npz"
    write_trial(file, trial, {"seed": 1}, IDS)
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(read_trial, [file] * THREADS))
    assert most_at_once() == 1
