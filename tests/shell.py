"""A folder in which the commands of a page are run as a reader would."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ebrank import Client
from tests.serving import free_port

PATIENCE_SECONDS = 60.0


def pasted(script: str, folder: Path | None = None, **variables: str) -> str:
    """Return what a piece of shell prints; it must succeed."""
    done = subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=5 * PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Shell:
    """A folder in which pages are followed; one server runs at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._variables = {"PATH": path, "EBRANK_SERVE_SERVER_PORT": str(self.port)}
        self._server: subprocess.Popen[bytes] | None = None

    def run(self, text: str, **variables: str) -> str:
        """Return what a block prints; it must succeed. A server stays in the background."""
        command = self.local(text).strip()
        given = self._variables | variables
        if not command.endswith("&"):
            printed = pasted(command, self.folder, **given)
            assert '"error"' not in printed
            return printed
        self.stop()
        words = ["sh", "-c", f"exec {command.rstrip('& ')}"]
        environment = {**os.environ, **given}
        self._server = subprocess.Popen(words, cwd=self.folder, env=environment)
        self._wait()
        return ""

    def local(self, text: str) -> str:
        """Return a text with the address of this server in place of the usual one."""
        return text.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}")

    def client(self) -> Client:
        """Return what calls the server."""
        return Client(f"http://127.0.0.1:{self.port}")

    def stop(self) -> None:
        """Stop the server, if there is one."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(PATIENCE_SECONDS)
            self._server = None

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self.client() as client:
            while True:
                try:
                    client.models()
                except Exception:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.1)
                else:
                    return


@contextmanager
def shell(folder: Path) -> Iterator[Shell]:
    """Yield a shell whose server is stopped at the end."""
    opened = Shell(folder)
    try:
        yield opened
    finally:
        opened.stop()
