"""A start with nothing compiled: what it waits for, and a second process that compiles too.

Numba compiles one function at a time in a process. Half of what a list needs is its score, which
the server compiles itself; a helper process compiles the rest meanwhile. Both store machine code
in the same cache, where each finds what the other has done, or waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ebrank.kernels.compiled import announced
from ebrank.service.http.readiness import Readiness

COMPILING = "compiling for this machine, some seconds; later starts find the code in the cache"
"""What the log says at once about a start that has to wait for the compiler, and `/readyz` too."""

log = logging.getLogger("ebrank.service")


class Compilation:
    """The compiling that a start may need.

    Args:
        policy: of the server.
        readiness: says what a start waits for.
    """

    def __init__(self, policy: str, readiness: Readiness) -> None:
        self._policy = policy
        self._readiness = readiness
        self._helper: subprocess.Popen[bytes] | None = None

    @contextmanager
    def announced(self) -> Iterator[None]:
        """If the code inside has to compile, say so and start the helper."""
        with announced(self._begin):
            yield

    async def finished(self) -> None:
        """Return when the helper has ended, if there is one."""
        while self._helper is not None and self._helper.poll() is None:
            await asyncio.sleep(0.1)

    def close(self) -> None:
        """End the helper: what it has not compiled, another process will."""
        if self._helper is not None:
            self._helper.kill()
            self._helper.wait()

    def _begin(self) -> None:
        log.warning("%s", COMPILING)
        self._readiness.waits_for = COMPILING
        if len(os.sched_getaffinity(0)) > 1:
            code = f"from ebrank.service.core import models; models.precompile({self._policy!r})"
            with suppress(OSError):  # it only saves time
                self._helper = subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
