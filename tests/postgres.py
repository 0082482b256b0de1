"""A PostgreSQL of one's own, for tests and benchmarks: on a socket in a temporary folder.

Its programs come from the wheel `pgserver`, or from the folder that EBRANK_POSTGRES_BIN names, such
as /usr/lib/postgresql/15/bin. They refuse to run as root, so root runs them as `nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

USER = "nobody"
OPTIONS = {
    "listen_addresses": "",
    "shared_buffers": "32MB",
    "max_connections": "100",
    "autovacuum_naptime": "5s",
    "log_min_messages": "warning",
}


def programs() -> Path:
    """Return the folder of PostgreSQL's programs."""
    if "EBRANK_POSTGRES_BIN" in os.environ:
        return Path(os.environ["EBRANK_POSTGRES_BIN"])
    found = importlib.util.find_spec("pgserver")  # not imported: it warns of folders it lacks
    assert found is not None, (
        "pgserver is missing: pip install -e '.[dev]', or, on Python 3.13, name the folder of a "
        "PostgreSQL's programs in EBRANK_POSTGRES_BIN"
    )
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin"


def _may_run(program: Path, user: str) -> bool:
    """Return whether a user can reach a program."""
    try:
        done = subprocess.run([program, "--version"], user=user, cwd="/", capture_output=True)
    except PermissionError:
        return False
    return done.returncode == 0


def _copied(programs: Path, folder: Path) -> Path:
    """Return a copy of a wheel's programs, with the libraries that lie beside its package.

    A clone may be in a folder that nobody else can enter.
    """
    package = programs.parents[1]
    shutil.copytree(programs.parent, folder / package.name / programs.parent.name, symlinks=True)
    libraries = f"{package.name}.libs"
    shutil.copytree(package.parent / libraries, folder / libraries)
    return folder / package.name / programs.parent.name / programs.name


class Postgres:
    """A database server with its data in a folder, which tests may stop, kill and start again."""

    def __init__(self, folder: Path, *, fsync: bool) -> None:
        self._data = folder / "data"
        self._log = folder / "log"
        self._socket = folder
        self._user = USER if os.geteuid() == 0 else None
        self._programs = programs()
        if self._user is not None:
            shutil.chown(folder, self._user)
            if not _may_run(self._programs / "initdb", self._user):
                self._programs = _copied(self._programs, folder / "programs")
        new = ("--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8")
        self._run("initdb", "-D", str(self._data), *new)
        options = {**OPTIONS, "fsync": "on" if fsync else "off", "port": "5432"}
        options["unix_socket_directories"] = str(self._socket)
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in options.items())

    def start(self) -> None:
        """Start it and wait until it serves."""
        self._run("pg_ctl", "-D", str(self._data), "-l", str(self._log), "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `immediate` is what a crash is, what was not flushed may be lost."""
        self._run("pg_ctl", "-D", str(self._data), "-m", mode, "-w", "stop")

    def url(self, schema: str = "ebrank", *, user: str = "postgres") -> str:
        """Return the URL of a store in it, which need not be there yet."""
        return (
            f"postgresql://{user}@/postgres?host={quote(str(self._socket))}&schema={quote(schema)}"
        )

    def log(self) -> str:
        """Return what it has written to its log."""
        return self._log.read_text(encoding="utf-8")

    def processes(self) -> list[int]:
        """Return the ids of its processes: the first, and one for each connection and chore."""
        first = (self._data / "postmaster.pid").read_text(encoding="utf-8").split()[0]
        tasks = Path(f"/proc/{first}/task/{first}/children").read_text(encoding="utf-8")
        return [int(first), *map(int, tasks.split())]

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            user=self._user,
            cwd=self._socket,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"{program} failed: {done.stderr!r}"


@contextmanager
def postgres(*, fsync: bool = True) -> Iterator[Postgres]:
    """Yield a database server that runs; it is stopped and forgotten at the end."""
    with tempfile.TemporaryDirectory(prefix="ebrank-postgres-") as folder:
        server = Postgres(Path(folder), fsync=fsync)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
