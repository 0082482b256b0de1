"""A real `ebrank serve` in a process of its own, for tests and benchmarks."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ebrank.service.ops.server import COMPILING

PATIENCE_SECONDS = 60.0


@dataclass
class Server:
    """A server that serves."""

    process: subprocess.Popen[str]
    address: str
    folder: Path

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.address.rpartition(":")[2])

    def stop(self, sent: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal and return the exit code, and what it wrote to stderr.

        It may also have said that it compiles: the first one on this machine does.
        """
        self.process.send_signal(sent)
        _, errors = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, errors.replace(f"{COMPILING}\n", "")


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(folder: Path, *arguments: str, config: str = "") -> Iterator[Server]:
    """Yield a server on a free port with its store in a folder; it is stopped at the end."""
    file = folder.with_name(folder.name + ".toml")
    file.write_text(config, encoding="utf-8")
    options = ("--port", "0", "--store", str(folder), "--config", str(file))
    process = subprocess.Popen(
        [sys.executable, "-m", "ebrank", "serve", *options, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield Server(process, _address(process), folder)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _address(process: subprocess.Popen[str]) -> str:
    """Return the address that the server prints when it is ready."""
    assert process.stdout is not None
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if not select.select([process.stdout], [], [], 0.1)[0]:
            continue
        line = process.stdout.readline()
        if line.startswith("EBRank serves at "):
            return line.split()[3]
        if not line:
            _, errors = process.communicate()
            raise AssertionError(f"no server: {errors}")
    raise AssertionError("the server did not start in time")
