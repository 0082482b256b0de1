"""Parsed files, cached as memory-mapped `.npy` arrays with a manifest.

An entry holds only the text: what its columns mean (`interpretation`) is applied after reading. So
the same entry serves every choice of baseline, features to drop and largest label.

An entry is a folder named by a hash of the files' paths. Its manifest holds the size, modification
time and content hash of each file, the checksums of each array, and its own checksum. An entry is
used only if all of these match, so a damaged one is made again. It is written under another name
and moved into place when complete: no reader ever sees half an entry.

A file with the size and time of the manifest counts as unchanged; if the time differs, its content
decides. The arrays are always checked, which takes some 0.05 s per GB in the page cache.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from ebrank import paths
from ebrank.arrays import header_lock
from ebrank.data.parsed import Parsed, ParsedFile
from ebrank.data.text_reader import content_hash
from ebrank.threads import map_blocks

FORMAT = 1
MANIFEST = "manifest.json"
FEATURES = "features.npy"
ARRAYS = ("features", "labels", "query_pointers", "query_ids")
PIECE = 64 << 20  # bytes under one checksum
ABANDONED = 24 * 3600  # seconds after which a half-written entry has no writer any more
ATTEMPTS = 100  # to move an entry into place, if other writers keep getting in between
OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
MAX_HEADER = 4096  # bytes, more than any .npy header here


def load(files: Sequence[Path], *, threads: int | None = None) -> Parsed | None:
    """Return the cached content of these files, or None if missing, outdated or damaged."""
    folder = entry_folder(files)
    try:
        statuses = [path.stat() for path in files]
        manifest = _read_manifest(folder / MANIFEST)
        sources = tuple(
            ParsedFile(**{**source, "path": str(path)})  # as the caller spells it
            for source, path in zip(manifest["sources"], files, strict=True)
        )
        if not _unchanged(files, statuses, sources):
            return None
        arrays = {
            name: _checked_array(folder / f"{name}.npy", manifest["checksums"][name], threads)
            for name in ARRAYS
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None
    _refresh_times(folder, manifest, statuses)
    return Parsed(files=sources, **arrays)


@contextlib.contextmanager
def staging(files: Sequence[Path]) -> Iterator[Path]:
    """Yield a folder to write an entry in; it vanishes unless `publish` moves it into place.

    Raises:
        OSError: if the cache cannot be written.
    """
    root = paths.dataset_cache()
    root.mkdir(parents=True, exist_ok=True)
    _sweep(root)
    folder = Path(tempfile.mkdtemp(prefix=entry_folder(files).name, suffix=".part", dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(parsed: Parsed, folder: Path, *, threads: int | None = None) -> None:
    """Complete the entry in a `staging` folder that has the features, and move it into place.

    Raises:
        OSError: if the cache cannot be written.
    """
    for name in ARRAYS[1:]:
        np.save(folder / f"{name}.npy", getattr(parsed, name), allow_pickle=False)
    checksums = {
        name: _checksums(np.memmap(folder / f"{name}.npy", np.uint8, mode="r"), threads)
        for name in ARRAYS
    }
    sources = [asdict(source) for source in parsed.files]
    _write_manifest(folder, {"sources": sources, "checksums": checksums})
    _move(folder, entry_folder([Path(source.path) for source in parsed.files]))


def entry_folder(files: Sequence[Path]) -> Path:
    """Return the folder of the entry for these files."""
    names = "\0".join(str(path.resolve()) for path in files)
    return paths.dataset_cache() / xxhash.xxh3_128_hexdigest(os.fsencode(names))


def _read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest's content, if its format and checksum are right."""
    outer = json.loads(path.read_bytes())
    if outer["format"] != FORMAT or outer["checksum"] != _text_checksum(outer["content"]):
        raise ValueError("not a manifest of this format, or damaged")
    content: dict[str, Any] = outer["content"]
    return content


def _write_manifest(folder: Path, content: dict[str, Any]) -> None:
    outer = {"format": FORMAT, "checksum": _text_checksum(content), "content": content}
    handle, name = tempfile.mkstemp(dir=folder, prefix=MANIFEST)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(outer, file, indent=1)
        Path(name).replace(folder / MANIFEST)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _text_checksum(content: object) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(content, sort_keys=True).encode())


def _unchanged(
    files: Sequence[Path], statuses: Sequence[os.stat_result], sources: Sequence[ParsedFile]
) -> bool:
    """Whether the files match the manifest: by size and time, else by content."""
    return all(
        status.st_size == source.size
        and (status.st_mtime_ns == source.mtime_ns or content_hash(path) == source.content_hash)
        for path, status, source in zip(files, statuses, sources, strict=True)
    )


def _refresh_times(
    folder: Path, manifest: dict[str, Any], statuses: Sequence[os.stat_result]
) -> None:
    """Record the files' new times, so that their content is not hashed again."""
    times = [status.st_mtime_ns for status in statuses]
    if times != [source["mtime_ns"] for source in manifest["sources"]]:
        for source, mtime_ns in zip(manifest["sources"], times, strict=True):
            source["mtime_ns"] = mtime_ns
        with contextlib.suppress(OSError):  # a read-only cache still works
            _write_manifest(folder, manifest)


def _checked_array(path: Path, checksums: list[str], threads: int | None) -> npt.NDArray[Any]:
    """Return a memory-mapped array; raise unless its bytes have these checksums."""
    content = np.asarray(np.memmap(path, np.uint8, mode="r"))
    if _checksums(content, threads) != checksums:
        raise ValueError("damaged")
    header = io.BytesIO(content[:MAX_HEADER].tobytes())
    np.lib.format.read_magic(header)
    with header_lock:
        shape, _, dtype = np.lib.format.read_array_header_1_0(header)
    return content[header.tell() :].view(dtype).reshape(shape)


def _checksums(content: npt.NDArray[np.uint8], threads: int | None) -> list[str]:
    """Return the checksum of each piece of a file's content."""
    return map_blocks(
        lambda start, stop: xxhash.xxh3_64_hexdigest(content[start:stop].data),
        total=len(content),
        block=PIECE,
        threads=threads,
    )


def _move(folder: Path, place: Path) -> None:
    """Put a complete entry in place of any other; of several writers, the last wins."""
    for _ in range(ATTEMPTS):
        try:
            folder.rename(place)
            return
        except OSError as error:
            if error.errno not in OCCUPIED:
                raise
        outdated = folder.with_suffix(".old")
        with contextlib.suppress(FileNotFoundError):  # another writer may have been first
            place.rename(outdated)
        _remove(outdated)


def _sweep(root: Path) -> None:
    """Remove what killed writers left behind."""
    for leftover in (*root.glob("*.part"), *root.glob("*.old")):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > ABANDONED:
                _remove(leftover)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
