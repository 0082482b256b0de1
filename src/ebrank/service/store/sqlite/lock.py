"""One server per store: a lock that the operating system lets go of when its owner dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from ebrank.service.store.base import StoreError


class Lock:
    """Holds `PATH/lock` until closed; the file names the process that holds it."""

    def __init__(self, folder: Path) -> None:
        try:
            self._file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
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

    def close(self) -> None:
        """Let go."""
        os.close(self._file)
