"""The dense table of features, written block by block: to memory, or to a file larger than memory.

The width of the table is known only at the end. Blocks are written as wide as the features seen so
far; if a later one is wider, zeros widen the earlier ones when the table is finished. The file
holds nothing but the numbers.

>>> table = FeatureTable(None)
>>> table.append(np.array([2, 3]), np.array([1, 2, 1], np.int32), np.array([5, 6, 7], np.float32))
>>> table.append(np.array([1]), np.array([3], np.int32), np.array([8], np.float32))
>>> table.finish()
array([[5., 6., 0.],
       [7., 0., 0.],
       [0., 0., 8.]], dtype=float32)
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ebrank.errors import DataError
from ebrank.kernels.arrays import read_only
from ebrank.kernels.compiled import kernel
from ebrank.typing import Features, Ints, SmallInts

BLOCK = 4 << 20  # bytes of the table made at a time
ITEM = np.dtype(np.float32).itemsize
SPARSE_BYTES = 1 << 30
SPARSE_SHARE = 1000
"""A table over `SPARSE_BYTES` must have a value in at least one of this many cells."""


class FeatureTable:
    """Rows of float32 features, appended sparse and stored dense.

    Args:
        path: the file to write, a new one, or None to keep the table in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._blocks: list[tuple[int, int]] = []  # rows and width of each stretch of equal width
        self._entries = 0
        self.rows = 0
        self.width = 0
        self._file: BinaryIO = io.BytesIO() if path is None else path.open("w+b")

    def append(self, row_ends: Ints, ids: SmallInts, values: Features) -> None:
        """Add rows; `row_ends` says where each row's entries end in `ids` and `values`."""
        if len(row_ends) == 0:
            return
        self.rows += len(row_ends)
        self.width = max(self.width, int(ids.max()))
        self._entries += len(ids)
        self._check_size()
        for start, stop in _stretches(len(row_ends), self.width):
            block = np.zeros((stop - start, self.width), np.float32)
            spread(row_ends, ids, values, start, block)
            self._file.write(block.data)
        if self._blocks and self._blocks[-1][1] == self.width:
            self._blocks[-1] = (self._blocks[-1][0] + len(row_ends), self.width)
        else:
            self._blocks.append((len(row_ends), self.width))

    def finish(self) -> Features:
        """Return the whole table, read-only; if it is in a file, memory-mapped."""
        if len(self._blocks) > 1:
            self._widen()
        shape = (self.rows, self.width)
        if isinstance(self._file, io.BytesIO):
            table = np.frombuffer(self._file.getbuffer(), np.float32)
        else:
            self.close()
            table = np.asarray(np.memmap(self._file.name, np.float32, mode="r"))
        return read_only(table.reshape(shape))

    def close(self) -> None:
        """Give up the file, if there is one."""
        if not isinstance(self._file, io.BytesIO):
            self._file.close()

    def _widen(self) -> None:
        """Widen all rows to the final width, in place: from the last block to the first.

        A row only moves towards the end, so no row that is still to be read is overwritten.
        """
        source = sum(rows * width for rows, width in self._blocks) * ITEM
        target = self.rows * self.width * ITEM
        for rows, width in reversed(self._blocks):
            for start, stop in reversed(list(_stretches(rows, self.width))):
                source -= (stop - start) * width * ITEM
                target -= (stop - start) * self.width * ITEM
                self._file.seek(source)
                cells = self._file.read((stop - start) * width * ITEM)
                block = np.zeros((stop - start, self.width), np.float32)
                block[:, :width] = np.frombuffer(cells, np.float32).reshape(-1, width)
                self._file.seek(target)
                self._file.write(block.data)

    def _check_size(self) -> None:
        """Raise if the table is too sparse to be worth its space, or too large for memory."""
        cells = self.rows * self.width
        shape = f"{self.rows:,} rows of {self.width:,} features"
        if cells * ITEM > SPARSE_BYTES and cells > SPARSE_SHARE * self._entries:
            raise DataError(
                f"{shape} have too few values for a dense table: {self._entries:,}",
                remedy="Renumber the features from 1 without gaps.",
            )
        if self._path is None and cells * ITEM > _memory():
            raise DataError(
                f"{shape} do not fit in memory",
                remedy="Use the cache: set EBRANK_DATASET_CACHE to a folder with enough space.",
            )


@kernel
def spread(row_ends: Ints, ids: SmallInts, values: Features, first: int, block: Features) -> None:
    """Write the entries of the rows from `first` on into a block of zeros."""
    entry = row_ends[first - 1] if first > 0 else 0
    for row in range(len(block)):
        while entry < row_ends[first + row]:
            block[row, ids[entry] - 1] = values[entry]
            entry += 1


def _stretches(rows: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of stretches of rows of about `BLOCK` bytes each."""
    step = max(1, BLOCK // (width * ITEM))
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


def _memory() -> int:
    """Return the bytes of the machine's memory, or a petabyte if unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError):
        return 1 << 50
