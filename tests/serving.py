"""A real `ebrank serve` in a process of its own, for tests and benchmarks."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ebrank.service.ops.server import COMPILING

PATIENCE_SECONDS = 60.0  # the machine may be busy
ADDRESS = re.compile(r"http://[\d.]+:(\d+)[ /]")  # printed once it serves


class Server:
    """A server with its store in a folder, on one loopback port for life, which may start again.

    What it prints is kept beside the folder, in files of its name.

    Attributes:
        folder: of its store, unless that is elsewhere.
        port: where it listens; 0 before it has started.
        process: that serves, or the last one that did.
    """

    process: subprocess.Popen[bytes]

    def __init__(
        self,
        folder: Path,
        *options: str,
        config: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.port = folder, 0
        file, self._output, self._errors = (
            folder.with_name(f"{folder.name}.{kind}") for kind in ("toml", "out", "err")
        )
        file.write_text(config, encoding="utf-8")
        own = [] if "--demo" in options else ["--store", str(folder)]
        self._options = ["--config", str(file), *own, *options]
        self._environment = {**os.environ, **(variables or {}), "PYTHONUNBUFFERED": "1"}

    def start(self) -> None:
        """Start it and wait until it serves; where it did before, if it is not the first time."""
        words = ["serve", "--port", str(self.port), *self._options]
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ebrank", *words],
                stdout=output,
                stderr=errors,
                env=self._environment,
            )
        self.port = int(self.printed(ADDRESS)[1])

    def printed(self, pattern: str | re.Pattern[str]) -> re.Match[str]:
        """Wait until it has printed something since it was started."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := re.search(pattern, self._output.read_text(encoding="utf-8"))):
            assert self.process.poll() is None, self.errors
            assert time.monotonic() < deadline, self.errors
            time.sleep(0.02)
        return found

    @property
    def errors(self) -> str:
        """What it wrote to stderr since it was started.

        It may also have said that it compiles: the first one on this machine does.
        """
        return self._errors.read_text(encoding="utf-8").replace(f"{COMPILING}\n", "")

    @property
    def address(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    url = address

    def stop(self, sent: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal and return the exit code, and what it wrote to stderr."""
        self.process.send_signal(sent)
        return self.process.wait(PATIENCE_SECONDS), self.errors

    def kill(self) -> None:
        """End it at once, in whatever it is doing, unless it has ended."""
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(
    folder: Path,
    *options: str,
    config: str = "",
    variables: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Yield a server on a free port with its store in a folder; it is ended with the block."""
    server = Server(folder, *options, config=config, variables=variables)
    try:
        server.start()
        yield server
    finally:
        server.kill()
