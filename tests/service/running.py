"""A real server in a process of its own, which tests can stop, kill and start again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

PATIENCE = 60.0  # seconds: the machine may be busy
ADDRESS = re.compile(r"http://[\d.]+:(\d+)[ /]")  # printed once it serves


class Running:
    """`ebrank serve` with its store in a folder, on one loopback port for life."""

    def __init__(
        self,
        folder: Path,
        config: str = "",
        *options: str,
        variables: Mapping[str, str] | None = None,
        store: str | None = None,
    ) -> None:
        self.folder = folder
        self._store = store or str(folder / "store")
        self.port = 0
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
        """Start it and wait until it serves; where it did before, if it is not the first time."""
        where = ["--port", str(self.port)]
        if "--demo" not in self._options:  # whose store is its own
            where += ["--store", self._store]
        options = [*where, "--config", str(self._file), *self._options]
        with (self.folder / "server.log").open("ab") as log:
            before = len(self.log())
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ebrank", "serve", *options],
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        deadline = time.monotonic() + PATIENCE
        while not (told := ADDRESS.search(self.log(), before)):
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)
        self.port = int(told[1])

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Ask it to leave, and wait until it has."""
        if self._process is not None:
            self._process.terminate()
            assert self._process.wait(PATIENCE) == 0, self.log()
            self._process = None

    def kill(self) -> None:
        """End it at once, in whatever it is doing; one that did not start has ended."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)
        self._process = None

    def log(self) -> str:
        """Return what it printed."""
        return (self.folder / "server.log").read_text(encoding="utf-8")
