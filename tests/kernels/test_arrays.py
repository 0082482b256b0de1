"""Stored arrays: threads take turns with Python's parser, which reads their headers."""

from __future__ import annotations

import ast
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ebrank.simulation import storage

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


def read_in_threads(read: Callable[[Path], object], path: Path) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(read, [path] * THREADS))


def test_stored_trials(tmp_path: Path, most_at_once: Callable[[], int]) -> None:
    file = tmp_path / "trial.npz"
    np.savez(file, allow_pickle=False, **{storage.QUERY_IDS: np.array(["q1", "q2"])})
    read_in_threads(storage.read_query_ids, file)
    assert most_at_once() == 1
