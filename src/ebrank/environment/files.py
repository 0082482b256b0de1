"""Files that appear whole or not at all, and files that only their owner may read."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a new, empty file to write; it becomes `path` when it is complete, else it vanishes.

    Readers see the old file or the new one, even after a crash. Unless private, it has the
    permissions of any new file. It is on disk when this returns.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        make_private_file(temporary) if private else temporary.touch(exist_ok=False)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except BaseException as problem:
        temporary.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            problem.filename = str(path)  # not the temporary file, which nobody knows
        raise


def write_whole(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file as `whole_file` does."""
    with whole_file(path, private=private) as temporary:
        temporary.write_bytes(content)


def make_private_file(path: Path) -> None:
    """Make an empty file that only its owner may read, whatever the umask; it must be new."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(file, 0o600)
    finally:
        os.close(file)


def make_private_folder(path: Path) -> None:
    """Make a folder that only its owner may enter, and its parents; it may already exist."""
    try:
        path.mkdir(0o700, parents=True)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        path.chmod(0o700)
