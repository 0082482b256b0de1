"""A real server in a process of its own, which tests can stop, kill and start again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import httpx

PATIENCE = 60.0  # seconds: the machine may be busy


class Running:
    """`ebrank serve` with its store in a folder, on one loopback port for life."""

    def __init__(
        self,
        folder: Path,
        config: str = "",
        *options: str,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._file = folder / "ebrank.toml"
        self._file.write_text(config, encoding="utf-8")
        self._options = options
        self._environment = {**os.environ, **(variables or {}), "PYTHONUNBUFFERED": "1"}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait until it serves."""
        where = ["--port", str(self.port)]
        if "--demo" not in self._options:  # whose store is its own
            where += ["--store", str(self.folder / "store")]
        options = [*where, "--config", str(self._file), *self._options]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ebrank", "serve", *options],
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        deadline = time.monotonic() + PATIENCE
        while not self._ready():
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz").is_success
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        """Ask it to leave, and wait until it has."""
        if self._process is not None:
            self._process.terminate()
            assert self._process.wait(PATIENCE) == 0, self.log()
            self._process = None

    def log(self) -> str:
        """Return what it printed."""
        return (self.folder / "server.log").read_text(encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
