"""Parsed files, cached: a folder of memory-mapped arrays for the files of a dataset.

An entry holds only the text: what its columns mean (`interpretation`) is applied after reading. So
the same entry serves every choice of baseline, features to drop and largest label.

An entry is a folder named by a hash of the parsed files' paths, with a file for each array, and a
manifest with the size and modification time of each parsed file, a checksum of all arrays, and its
own. It is used only if all of these match, so a damaged one is made again. It is written under
another name and moved into place when complete: no reader ever sees half an entry.

A file with the size and time of the manifest counts as unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from ebrank.environment import paths
from ebrank.lab.data.interpretation import MAX_LABEL
from ebrank.typing import Features, Ints, Labels, Texts

FORMAT = 4
ARRAYS = ("features", "labels", "query_pointers", "query_ids")
MANIFEST = "manifest.json"


@dataclass
class ParsedFile:
    """One file that was read: what identifies it, and what is in it.

    Attributes:
        path, size, mtime_ns: the file as it was when opened.
        queries, rows: their numbers.
        features: largest feature id.
        label_lines: for each label from 0 on, the first line that has it, or 0.
    """

    path: str
    size: int = 0
    mtime_ns: int = 0
    queries: int = 0
    rows: int = 0
    features: int = 0
    label_lines: list[int] = field(default_factory=lambda: [0] * (MAX_LABEL + 1))

    @property
    def max_label(self) -> int:
        """The largest label seen."""
        return max(label for label, line in enumerate(self.label_lines) if line)


@dataclass(frozen=True, eq=False)
class Parsed:
    """All files, parsed: the arrays of a `Dataset` before its columns have a meaning."""

    features: Features
    labels: Labels
    query_pointers: Ints
    query_ids: Texts
    files: tuple[ParsedFile, ...]


class Manifest(msgspec.Struct):
    """What must match for an entry to be used: parsed files, without names, and the arrays."""

    sources: tuple[ParsedFile, ...]
    arrays: dict[str, tuple[str, tuple[int, ...]]]  # type and shape
    checksum: str


def load(files: Sequence[Path]) -> Parsed | None:
    """Return the cached content of these files, or None if missing, outdated or damaged."""
    entry = entry_path(files)
    try:
        text, _, checksum = (entry / MANIFEST).read_bytes().rpartition(b"\n")
        if xxhash.xxh3_64_hexdigest(text).encode() != checksum:
            return None
        manifest = msgspec.json.decode(text, type=Manifest)
        if not all(map(_unchanged, files, manifest.sources)):
            return None
        arrays = {
            name: np.asarray(np.memmap(entry / name, dtype, mode="r", shape=shape))
            for name, (dtype, shape) in manifest.arrays.items()
        }
    except (OSError, ValueError):
        return None
    if _checksum(arrays) != manifest.checksum:
        return None
    sources = zip(manifest.sources, files, strict=True)
    named = (replace(source, path=str(path)) for source, path in sources)  # as the caller does
    return Parsed(files=tuple(named), **arrays)


def save(parsed: Parsed) -> None:
    """Write an entry, in the place of an older one.

    Raises:
        OSError: if the cache cannot be written.
    """
    entry = entry_path([Path(source.path) for source in parsed.files])
    entry.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f"{entry.name}.part-", dir=entry.parent) as folder:
        made = Path(folder) / entry.name
        made.mkdir()
        arrays = {name: np.ascontiguousarray(getattr(parsed, name)) for name in ARRAYS}
        for name, array in arrays.items():
            (made / name).write_bytes(_bytes_of(array).data)
        sources = tuple(replace(source, path="") for source in parsed.files)
        about = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
        text = msgspec.json.encode(Manifest(sources, about, _checksum(arrays)))
        (made / MANIFEST).write_bytes(text + b"\n" + xxhash.xxh3_64_hexdigest(text).encode())
        with contextlib.suppress(FileNotFoundError):  # there was none
            entry.rename(Path(folder) / "old")
        try:
            made.rename(entry)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another process was faster
                raise


def entry_path(files: Sequence[Path]) -> Path:
    """Return the entry for these files."""
    names = "\0".join([str(FORMAT), *(str(path.resolve()) for path in files)])
    return paths.dataset_cache() / xxhash.xxh3_128_hexdigest(os.fsencode(names))


def _unchanged(path: Path, source: ParsedFile) -> bool:
    """Whether a file has the size and time of the manifest."""
    status = path.stat()
    return (status.st_size, status.st_mtime_ns) == (source.size, source.mtime_ns)


def _checksum(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    state = xxhash.xxh3_128()
    for name in ARRAYS:
        state.update(_bytes_of(arrays[name]).data)
    return state.hexdigest()


def _bytes_of(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)
