"""Text files, plain or gzip, read once and in chunks of whole lines.

Gzip is recognized by its first bytes, not by the file's name.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ebrank.errors import DataError

CHUNK = 4 << 20
"""Bytes of text parsed at a time: enough to hide the overhead, few enough to keep in memory."""
MAX_LINE = 64 << 20
BLOCK = 1 << 20  # bytes read from the disk at a time
GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"


class TextReader(io.FileIO):
    """An open file of text that counts the bytes read from it.

    Attributes:
        path: where it is.
        size, mtime_ns: as they were when it was opened.
        consumed: bytes read from the disk so far.
        problem: why `chunks` ended before the text did, or "".
    """

    def __init__(self, path: Path) -> None:
        try:
            super().__init__(path)
        except OSError as error:
            raise unreadable(path, error) from None
        status = os.fstat(self.fileno())
        self.path, self.size, self.mtime_ns = path, status.st_size, status.st_mtime_ns
        self.problem, self.consumed = "", 0

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 (a buffer)
        """Fill a buffer; return how many bytes there were."""
        try:
            count = super().readinto(buffer)
        except OSError as error:
            raise unreadable(self.path, error) from None
        self.consumed += count
        return count

    def chunks(self, size: int = CHUNK, max_line: int = MAX_LINE) -> Iterator[bytes]:
        """Yield runs of whole lines of about `size` bytes; only the last may lack its end.

        If the text breaks off (see `problem`), the whole lines before that come first.
        """
        rest = b""
        for text in self._texts(size):
            cut = text.rfind(b"\n") + 1
            if cut:
                yield b"".join((rest, memoryview(text)[:cut]))  # one copy, not two
                rest = text[cut:]
            else:
                rest += text
            if len(rest) > max_line:
                self.problem = f"line is longer than {max_line:,} bytes"
                return
        if rest and not self.problem:
            yield rest

    def _texts(self, size: int) -> Iterator[bytes]:
        """Yield the text without its byte-order mark, in pieces of about `size` bytes."""
        pieces: list[bytes] = []
        wanted = size
        with io.BufferedReader(self, BLOCK) as packed:
            zipped = packed.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
            opened = gzip.GzipFile(fileobj=packed) if zipped else packed
            try:
                pieces.append(opened.read(len(UTF8_BOM)).removeprefix(UTF8_BOM))
                while piece := opened.read1(wanted):  # `read` would lose what comes before damage
                    pieces.append(piece)
                    wanted -= len(piece)
                    if wanted == 0:
                        yield b"".join(pieces)
                        pieces, wanted = [], size
            except EOFError:
                self.problem = "gzip data is truncated"
            except (gzip.BadGzipFile, zlib.error) as error:
                self.problem = f"gzip data is damaged ({error})"
        yield b"".join(pieces)


def unreadable(path: Path, error: OSError) -> DataError:
    """Return the error for a file that the system refuses to read."""
    return DataError(f"cannot be read: {error.strerror or error}", path=path)
