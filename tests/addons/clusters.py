"""A real Dask cluster on loopback: a scheduler here, and workers in processes of their own."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

PATIENCE = 120  # seconds, should everything have to be compiled first
IDLE = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
}
"""Dask's processes that have nothing to do would use a tenth of a core."""


class OwnCluster:
    """A scheduler with the workers that tests start; all are killed with it.

    Args:
        folder: for its files.
        apart: whether the scheduler is in a process of its own, which a test can kill.

    Attributes:
        file: the scheduler file, which is what `--cluster` takes.
        workers: by name.
    """

    def __init__(self, folder: Path, *, apart: bool = False) -> None:
        self.folder = folder
        self.apart = apart
        self.file = folder / "scheduler.json"
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> OwnCluster:
        from distributed import Client, LocalCluster  # takes a while to import

        if self.apart:
            where = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self.file))
            self.process = self._start("scheduler", *where)
            wait_until(self.file.exists)
        else:
            cluster = LocalCluster(
                n_workers=0,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # None is a fixed port, which others may use
                silence_logs=logging.ERROR,
            )
            self._stack.enter_context(cluster)
            self.scheduler = cluster.scheduler
            self.file.write_text(json.dumps({"address": cluster.scheduler_address}))
        self.client = self._stack.enter_context(
            Client(scheduler_file=str(self.file), set_as_default=False)
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def add(self, name: str, **environment: str) -> None:
        """Start a worker, with some environment variables changed, and wait until it is known."""
        self.workers[name] = self._start(
            *("worker", "--scheduler-file", str(self.file), "--name", name, "--no-nanny"),
            *("--nthreads", "1", "--local-directory", str(self.folder), "--death-timeout", "60"),
            **environment,
        )
        wait_until(lambda: name in self.names())

    def ensure(self, *names: str) -> None:
        """Have these workers, and no others: tests before may have lost some, or added some."""
        for name in set(self.workers) - set(names):
            self.kill(name)
        for name in names:
            if name not in self.names():
                self.workers.pop(name, None)
                self.add(name)

    def kill(self, name: str) -> None:
        """Kill a worker, as a machine that loses its power does."""
        worker = self.workers.pop(name)
        worker.kill()
        worker.wait()
        wait_until(lambda: name not in self.names())

    def names(self) -> list[str]:
        """Return the names of the workers that the scheduler knows."""
        return [about["name"] for about in self.client.scheduler_info()["workers"].values()]

    def running(self) -> int:
        """Return how many tasks workers are running, called off or not."""
        return sum(self.client.run(count_threads_at_work).values())

    def _start(self, what: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self.folder / f"{what}.log").open("ab"))
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{what}", "--no-dashboard", *arguments],
            env={**os.environ, **IDLE, **environment},
            stdout=log,
            stderr=log,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process


def count_threads_at_work(dask_worker: object) -> int:
    """Return how many tasks a worker's threads are in."""
    return len(dask_worker.active_threads)  # type: ignore[attr-defined]


def import_from(folder: str) -> None:
    """Have the process that runs this find modules in a folder, too."""
    sys.path.append(folder)


@contextmanager
def own_cluster(folder: Path, *workers: str, apart: bool = False) -> Iterator[OwnCluster]:
    """Yield a cluster with some workers."""
    with OwnCluster(folder, apart=apart) as cluster:
        cluster.ensure(*workers)
        yield cluster


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.05)
