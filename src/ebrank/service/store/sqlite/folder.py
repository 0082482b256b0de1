"""The folder of a store: made, owned by one server, and on disk under its name.

Flushing a file does not flush its name: names are on disk when their folder is.

A store knows who searched for what, so its owner alone may read it. SQLite gives the files beside a
database the permissions of the database.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ebrank.environment.files import make_private_file, make_private_folder
from ebrank.service.store.driver import StoreError

NAME, LOCK = "log.db", "lock"

_UNFINISHED = re.compile(
    rf"(\..+\.[0-9a-f]{{8}}\.unfinished|\.{re.escape(NAME)}\.[0-9a-f]{{8}})(-journal|-wal|-shm)?"
)
"""Names of what is being built, now and in earlier versions, and of SQLite's files beside it."""

log = logging.getLogger("ebrank.service")


def database_of(path: Path) -> Path:
    """Return the database of a store that must be there: in its folder, or a backup by its name."""
    database = path / NAME if path.is_dir() else path
    if not database.is_file():
        raise StoreError(
            f"{path}: no store, for there is no {NAME}. Name the folder that was served."
        )
    return database


def made(folder: Path) -> Path:
    """Return the database of a store; its folder is made if there is none."""
    try:
        make_folder(folder)
        foreign = [path.name for path in folder.iterdir() if not path.name.startswith((NAME, LOCK))]
        if foreign and not (folder / NAME).exists():
            raise StoreError(
                f"{folder}: no store, and not empty (it holds {sorted(foreign)[0]}). "
                "Name a new folder, or one that was served."
            )
        return _private(folder)
    except (FileExistsError, NotADirectoryError):
        raise StoreError(f"{folder}: a file, not a folder. Name a folder for the store.") from None
    except OSError as problem:
        raise unusable(folder, problem) from problem


def unusable(folder: Path, problem: OSError) -> StoreError:
    """Return why a folder cannot be made or read, with the remedy."""
    return StoreError(f"{folder}: {problem.strerror}. Name another folder.")


def _private(folder: Path) -> Path:
    """Return the database of a folder, made for its owner alone; warn if others may read it."""
    for name in (NAME, LOCK):
        with suppress(FileExistsError):
            make_private_file(folder / name)
    modes = {path.name: _mode(path) for path in (folder, *folder.iterdir())}
    loose = ", ".join(f"{name} has mode {mode:o}" for name, mode in modes.items() if mode & 0o077)
    if loose:
        log.warning(
            "%s: other users of this machine may have access (%s). Run `chmod -R go= %s`",
            folder,
            loose,
            folder,
        )
    return folder / NAME


def _mode(path: Path) -> int:
    """Return the permissions of a file, none if it has just gone."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return 0


def last_change(path: Path) -> float | None:
    """Return when a store's files were last changed, by the clock of their disk; None if new.

    The lock does not count: each server that starts changes it, even one that is refused.
    """
    files = [path / NAME, path / f"{NAME}-wal"] if path.is_dir() else [path]
    statuses = [file.stat() for file in files if file.exists()]
    return max((status.st_mtime for status in statuses if status.st_size), default=None)


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents, and flush their directory entries to disk."""
    missing = [ancestor for ancestor in (folder, *folder.parents) if not ancestor.exists()]
    make_private_folder(folder)
    for ancestor in reversed(missing):
        flush_folder(ancestor.parent)


def flush_folder(folder: Path) -> None:
    """Flush a folder, so that the names of its files are on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def unfinished(place: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Yield a temporary file or folder beside a path, to be renamed to it; else it is removed.

    A lock marks it as in use until the end, or until the process ends. What others have left there
    without a lock is removed.
    """
    remove_leftovers(place.parent)
    while True:
        path = place.with_name(f".{place.name}.{secrets.token_hex(4)}.unfinished")
        make(path)
        with suppress(FileNotFoundError):
            mark = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(mark, fcntl.LOCK_EX)
            if os.fstat(mark).st_nlink:
                break
            os.close(mark)  # another process has taken it for a leftover
    try:
        yield path
    finally:
        _remove(path)
        os.close(mark)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of killed processes: they may hold data deleted since."""
    entries = list(folder.iterdir()) if os.access(folder, os.R_OK) else []
    for path in entries:
        match = _UNFINISHED.fullmatch(path.name)
        if match is not None:
            with _unused(folder / match[1]) as unused:
                if unused:
                    _remove(path)


@contextmanager
def _unused(path: Path) -> Iterator[bool]:
    """Try to lock a file or folder; yield whether it was unused."""
    with ExitStack() as opened:
        try:
            mark = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, mark)
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            yield True
        except OSError:  # locked, or another user's
            yield False
        else:
            yield True


def _remove(path: Path) -> None:
    """Remove a file or folder, if it is there and can be removed."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


class Lock:
    """Holds `PATH/lock` until closed, or until the process ends; the file names the process.

    What killed processes left in the folder is removed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise StoreError(
                f"{problem.filename}: {problem.strerror}. Make it writable for this user."
            ) from problem
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._file, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise StoreError(
                f"{folder}: another server is using this store (process {owner}). "
                "Stop it, or name another folder."
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        remove_leftovers(folder)

    def close(self) -> None:
        """Let go."""
        os.close(self._file)
