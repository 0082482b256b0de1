"""Tokens that change while the server runs: the file is read again when it changes, or on SIGHUP.

Only tokens are taken over. An invalid file changes nothing, and the log says why; other settings
that differ take effect at the next start, as the log says.

A file without tokens admits everybody, and is also what an editor, a full disk or a typing error
leaves behind. So it is read at a start only: a server that has tokens keeps them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ebrank.environment.config import SettingsError
from ebrank.errors import EBRankError
from ebrank.service.http.admission import Admission
from ebrank.service.logs import about
from ebrank.service.settings import Settings

LOOK_SECONDS = 1.0

log = logging.getLogger("ebrank.service")


class Reloading:
    """Watches the settings file.

    Args:
        file: the file to watch.
        read: returns the settings as they are now, or raises an `EBRankError`.
    """

    def __init__(self, file: Path, read: Callable[[], Settings]) -> None:
        self._file = file
        self._read = read
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Read the file again, changed or not."""
        self._asked.set()

    async def follow(self, admission: Admission, settings: Settings) -> None:
        """Pass the tokens of the file to a server that started with some settings, until cancelled.

        Changes before this call count too.
        """
        seen, said = None, settings
        while True:
            now = _state(self._file)
            if now != seen or self._asked.is_set():
                seen = now
                self._asked.clear()
                said = self._use(admission, said)
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._asked.wait()
            except TimeoutError:
                continue

    def _use(self, admission: Admission, current: Settings) -> Settings:
        """Take over the tokens, log what changed, and return the settings that were read."""
        try:
            read = self._read()
            if current.tokens and not read.tokens:
                raise SettingsError(
                    f"{self._file}: there are no tokens left, and without any, everybody is "
                    "admitted. If you want that, restart the server"
                )
        except EBRankError as problem:
            log.error("the tokens stay as they are: %s", problem, extra=about("reload"))
            return current
        if read.tokens != current.tokens:
            admission.use(read.tokens)
            names = ", ".join(token.name for token in read.tokens) or "none"
            log.warning("the tokens have changed: %s", names, extra=about("reload"))
        if replace(read, tokens=current.tokens) != current:
            log.warning(
                "other settings than tokens have changed: they take effect at the next start",
                extra=about("reload"),
            )
        return read


def _state(file: Path) -> tuple[int, ...] | None:
    """Return a file's modification time, size and inode, None if there is none."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
