"""Parsed files, cached: one memory-mapped file for the files of a dataset.

An entry holds only the text: what its columns mean (`interpretation`) is applied after reading. So
the same entry serves every choice of baseline, features to drop and largest label.

An entry is a file named by a hash of the parsed files' paths. It begins with the arrays, features
first, and ends with a manifest, its checksum and its length. The manifest holds the size
and modification time of each parsed file, the place of each array, and the checksums
of all of them. An entry is used only if all of these match, so a damaged one is made again. It is
written under another name and moved into place when complete: no reader ever sees half an entry.

A file with the size and time of the manifest counts as unchanged. The arrays are always checked,
which takes some 0.05 s per GB in the page cache.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from ebrank.data.interpretation import MAX_LABEL
from ebrank.environment import paths
from ebrank.kernels.threads import map_blocks
from ebrank.typing import Features, Ints, Labels, Texts

FORMAT = 2
ARRAYS = ("features", "labels", "query_pointers", "query_ids")
PIECE = 64 << 20  # bytes under one checksum
ALIGNMENT = 64  # bytes; compiled code is made for aligned arrays
END = 8 + 8  # bytes behind the manifest: its checksum and its length
ABANDONED = 24 * 3600  # seconds after which a half-written entry has no writer any more


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


def load(files: Sequence[Path], *, threads: int | None = None) -> Parsed | None:
    """Return the cached content of these files, or None if missing, outdated or damaged."""
    try:
        content = np.asarray(np.memmap(entry_path(files), np.uint8, mode="r"))
        end = len(content) - END
        checksum, length = (int(number) for number in content[end:].view(np.uint64))
        text = content[end - length : end].tobytes()
        if length > end or xxhash.xxh3_64_intdigest(text) != checksum:
            return None
        manifest = json.loads(text)
        sources = tuple(
            ParsedFile(**{**source, "path": str(path)})  # as the caller spells it
            for source, path in zip(manifest["sources"], files, strict=True)
        )
        arrays = content[: end - length]
        if (
            manifest["format"] != FORMAT
            or not all(map(_unchanged, files, sources))
            or _checksums(arrays, threads) != manifest["checksums"]
        ):
            return None
        return Parsed(
            files=sources,
            **{
                name: arrays[start:stop].view(dtype).reshape(shape)
                for name, (start, stop, dtype, shape) in manifest["arrays"].items()
            },
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def staging(files: Sequence[Path]) -> Iterator[Path]:
    """Yield a file to write an entry in; it vanishes unless `publish` moves it into place.

    Raises:
        OSError: if the cache cannot be written.
    """
    root = paths.dataset_cache()
    root.mkdir(parents=True, exist_ok=True)
    _sweep(root)
    handle, name = tempfile.mkstemp(prefix=entry_path(files).stem, suffix=".part", dir=root)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def publish(parsed: Parsed, entry: Path, *, threads: int | None = None) -> None:
    """Complete the entry in a `staging` file that has the features, and move it into place.

    Raises:
        OSError: if the cache cannot be written.
    """
    places: dict[str, tuple[int, int, str, tuple[int, ...]]] = {}
    with entry.open("r+b") as file:
        for name in ARRAYS:
            array = getattr(parsed, name)
            start = file.tell()
            if name == "features":
                file.seek(array.nbytes)
            else:
                file.write(np.ascontiguousarray(array).view(np.uint8).data)
            places[name] = (start, file.tell(), array.dtype.str, array.shape)
            file.write(bytes(-file.tell() % ALIGNMENT))
        file.flush()
        manifest = {
            "format": FORMAT,
            "sources": [asdict(source) for source in parsed.files],
            "arrays": places,
            "checksums": _checksums(np.memmap(entry, np.uint8, mode="r"), threads),
        }
        text = json.dumps(manifest).encode()
        text += b" " * (-len(text) % ALIGNMENT)
        file.write(text)
        file.write(np.array([xxhash.xxh3_64_intdigest(text), len(text)], np.uint64).tobytes())
    entry.replace(entry_path([Path(source.path) for source in parsed.files]))


def entry_path(files: Sequence[Path]) -> Path:
    """Return the entry for these files."""
    names = "\0".join(str(path.resolve()) for path in files)
    return paths.dataset_cache() / f"{xxhash.xxh3_128_hexdigest(os.fsencode(names))}.parsed"


def _unchanged(path: Path, source: ParsedFile) -> bool:
    """Whether a file has the size and time of the manifest."""
    status = path.stat()
    return (status.st_size, status.st_mtime_ns) == (source.size, source.mtime_ns)


def _checksums(content: npt.NDArray[np.uint8], threads: int | None) -> list[str]:
    """Return the checksum of each piece of the content."""
    return map_blocks(
        lambda start, stop: xxhash.xxh3_64_hexdigest(content[start:stop].data),
        total=len(content),
        block=PIECE,
        threads=threads,
    )


def _sweep(root: Path) -> None:
    """Remove what killed writers left behind."""
    for leftover in root.glob("*.part"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > ABANDONED:
                leftover.unlink()
