"""Reading LETOR text: against scikit-learn on one core, and a set of MSLR-WEB30K's size twice.

Real files are read where they are at hand (../shared/data or `EBRANK_DATA`), else text generated in
the same shape. The large set is always generated, in the temporary folder: 6 GB, removed after.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.figure import Figure, best_seconds
from ebrank.lab.data import letor
from ebrank.lab.data.assembly import parse_files

PROJECT = Path(__file__).parents[1]
FACTOR = 5.0
SECONDS = 1.0
MEMORY_SHARE = 0.75
FULL_ROWS = 3_771_125
BLOCK_ROWS, CANDIDATES = 12_000, 120
ID_DIGITS = 8


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name, dataset_cache(Path(name) / "cache"):
        folder = Path(name)
        yield against_scikit_learn("MQ2008 train", folder, "MQ2008", "Fold1", rows=9_630, width=46)
        yield against_scikit_learn(
            "MSLR-WEB30K sample train", folder, "MSLR-WEB30K-sample", rows=14_164, width=136
        )
        yield from twice(folder)


@contextmanager
def dataset_cache(folder: Path) -> Iterator[None]:
    """Keep parsed datasets in this folder for a while."""
    before = os.environ.get("EBRANK_DATASET_CACHE")
    os.environ["EBRANK_DATASET_CACHE"] = str(folder)
    try:
        yield
    finally:
        del os.environ["EBRANK_DATASET_CACHE"]
        if before is not None:
            os.environ["EBRANK_DATASET_CACHE"] = before


def against_scikit_learn(what: str, folder: Path, *parts: str, rows: int, width: int) -> Figure:
    """Return how many times faster than scikit-learn one thread reads a file, without the cache."""
    from sklearn.datasets import load_svmlight_file

    path, kind = real_file(*parts), "real"
    if path is None:
        path, kind = folder / "generated.txt", "generated in its shape"
        write_text(path, rows, width)
    parse_files([path], threads=1)  # compile first
    ours = best_seconds(lambda: parse_files([path], threads=1), repeats=7)
    theirs = best_seconds(lambda: load_svmlight_file(str(path), query_id=True))
    ratio, speed = theirs / ours, path.stat().st_size / 1e6 / ours
    return Figure(
        f"{what} ({kind}), one thread: scikit-learn's time / ours",
        f"{ratio:.1f}× ({speed:.0f} MB/s)",
        f"≥ {FACTOR:.0f}×",
        ratio >= FACTOR,
    )


def real_file(*parts: str) -> Path | None:
    """Return `train.txt` of a real dataset, if it is at hand."""
    roots = [PROJECT.parent / "shared" / "data"]
    if "EBRANK_DATA" in os.environ:
        roots.append(Path(os.environ["EBRANK_DATA"]))
    files = (root.joinpath(*parts, "train.txt") for root in roots)
    return next((file for file in files if file.is_file()), None)


def twice(folder: Path) -> Iterator[Figure]:
    """Read a set of MSLR-WEB30K's size, first from the text and then from the cache."""
    path = folder / "large.txt"
    rows = affordable_rows(folder)
    write_text(path, rows, width=136)
    size = path.stat().st_size
    meter = MemoryMeter()
    start = time.perf_counter()
    data = letor.read(path, progress=meter.note)
    first = time.perf_counter() - start
    second = best_seconds(lambda: letor.read(path))
    shape = f"{data.n_rows:,} × {data.n_features}"
    if rows < FULL_ROWS:
        shape += f" (shrunk from {FULL_ROWS:,} rows: the disk has no room)"
    yield Figure(
        f"{shape}, first read: memory taken / size of the text",
        f"{meter.taken / size:.1%} of {size / 1e9:.1f} GB, at {size / 1e6 / first:.0f} MB/s",
        f"< {MEMORY_SHARE:.0%}",
        meter.taken / size < MEMORY_SHARE,
    )
    yield Figure(
        f"{shape}, second open, all checksums verified",
        f"{second:.2f} s, {first / second:.0f}× faster than the first",
        f"< {SECONDS:.0f} s",
        second < SECONDS,
    )


def affordable_rows(folder: Path) -> int:
    """Return as many rows as leave half of the free disk alone."""
    bytes_per_row = 136 * (8 + 4)  # text and cache
    return min(FULL_ROWS, shutil.disk_usage(folder).free // 2 // bytes_per_row)


@dataclass
class MemoryMeter:
    """The most memory taken beyond what was in use at first; mapped files are not counted."""

    taken: int = 0

    def __post_init__(self) -> None:
        self._before = anonymous_memory()

    def note(self, done: int, total: int) -> None:
        """Look at the meter; fits as a callback for progress."""
        self.taken = max(self.taken, anonymous_memory() - self._before)


def anonymous_memory() -> int:
    """Return the bytes of memory this process uses, or 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)


def write_text(path: Path, rows: int, width: int) -> None:
    """Write rows in the likeness of MSLR: one block over and over, each time with new query ids."""
    block_rows = min(rows, BLOCK_ROWS)
    block = np.frombuffer(block_text(block_rows, width), np.uint8).copy()
    line_ends = np.flatnonzero(block == ord("\n"))
    ids = np.append(0, line_ends[:-1] + 1) + len("0 qid:")
    queries = np.arange(block_rows) // CANDIDATES
    with path.open("wb") as file:
        for repeat in range(-(-rows // block_rows)):
            numbers = queries + repeat * (queries[-1] + 1)
            for digit in range(ID_DIGITS):
                block[ids + digit] = ord("0") + numbers // 10 ** (ID_DIGITS - 1 - digit) % 10
            wanted = min(block_rows, rows - repeat * block_rows)
            file.write(block[: line_ends[wanted - 1] + 1].data)


def block_text(rows: int, width: int) -> bytes:
    """Return rows of text with room for query ids: of the values, half 0, a fifth small numbers."""
    rng = np.random.default_rng(0)
    kinds = rng.random((rows, width))
    values = rng.lognormal(0, 2, (rows, width))
    lines = []
    for row in range(rows):
        tokens = [
            f"{i}:0" if kind < 0.5 else f"{i}:{value:.0f}" if kind < 0.7 else f"{i}:{value:.6f}"
            for i, (kind, value) in enumerate(zip(kinds[row], values[row], strict=True), 1)
        ]
        lines.append(f"{rng.integers(5)} qid:{'0' * ID_DIGITS} {' '.join(tokens)}\n")
    return "".join(lines).encode()
