"""The dense table of features, written block by block: to memory, or to a file larger than memory.

The width of the table is known only at the end. Blocks are written as wide as the features seen so
far; if a later one is wider, zeros widen the earlier ones when the table is finished.

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

from ebrank.arrays import header_lock
from ebrank.compiled import kernel
from ebrank.errors import DataError
from ebrank.typing import Features, Ints, SmallInts

BLOCK = 4 << 20  # bytes of the table made at a time
ITEM = np.dtype(np.float32).itemsize
HEADER = 128  # bytes of the .npy header of any table
SPARSE_BYTES = 1 << 30
SPARSE_SHARE = 1000
"""A table over `SPARSE_BYTES` must have a value in at least one of this many cells."""


class FeatureTable:
    """Rows of float32 features, appended sparse and stored dense.

    Args:
        path: the `.npy` file to write, or None to keep the table in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._blocks: list[tuple[int, int]] = []  # rows and width of each stretch of equal width
        self._entries = 0
        self.rows = 0
        self.width = 0
        self._file = self._new_file(path)

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
        if isinstance(self._file, io.BytesIO):
            table = np.frombuffer(self._file.getbuffer(), np.float32, offset=HEADER)
            table.flags.writeable = False
            return table.reshape(self.rows, self.width)
        self._file.seek(0)
        self._file.write(_header((self.rows, self.width)))
        self.close()
        assert self._path is not None
        with header_lock:
            return np.asarray(np.load(self._path, mmap_mode="r"))

    def close(self) -> None:
        """Give up the file, if there is one."""
        if not isinstance(self._file, io.BytesIO):
            self._file.close()

    def _widen(self) -> None:
        """Copy the table to a new file with all rows equally wide."""
        narrow, wide_path = self._file, None
        if self._path is not None:
            wide_path = self._path.with_suffix(".wide")
        self._file = self._new_file(wide_path)
        with narrow:
            narrow.seek(HEADER)
            for rows, width in self._blocks:
                for start, stop in _stretches(rows, self.width):
                    block = np.zeros((stop - start, self.width), np.float32)
                    cells = narrow.read((stop - start) * width * ITEM)
                    block[:, :width] = np.frombuffer(cells, np.float32).reshape(-1, width)
                    self._file.write(block.data)
        if self._path is not None and wide_path is not None:
            wide_path.replace(self._path)

    @staticmethod
    def _new_file(path: Path | None) -> BinaryIO:
        file: BinaryIO = io.BytesIO() if path is None else path.open("w+b")
        file.seek(HEADER)  # which is written last, when the shape is known
        return file

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


def _header(shape: tuple[int, int]) -> bytes:
    """Return the header of a `.npy` file of float32."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header,
        {
            "descr": np.lib.format.dtype_to_descr(np.dtype(np.float32)),
            "fortran_order": False,
            "shape": shape,
        },
    )
    assert header.tell() == HEADER, "NumPy pads the header to a multiple of 64 bytes"
    return header.getvalue()


def _memory() -> int:
    """Return the bytes of the machine's memory, or a petabyte if unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError):
        return 1 << 50
