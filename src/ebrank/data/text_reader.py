"""Text files, plain or gzip, read once and in chunks of whole lines.

A `TextReader` hashes the bytes as it reads them, so that the cache's content hash needs no second
pass. Gzip is recognized by its first bytes, not by the file's name.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import xxhash

from ebrank.errors import DataError

CHUNK = 4 << 20
"""Bytes of text parsed at a time: enough to hide the overhead, few enough to keep in memory."""
MAX_LINE = 64 << 20
BLOCK = 1 << 20  # bytes read from the disk at a time
GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"


class TextReader:
    """An open file of text.

    Attributes:
        path: where it is.
        size, mtime_ns: as they were when it was opened.
        consumed: bytes read from the disk so far.
        problem: why `chunks` ended before the text did, or "".
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.consumed = 0
        self.problem = ""
        self._hash = xxhash.xxh3_128()
        try:
            self._file: BinaryIO = path.open("rb", buffering=0)
            status = os.fstat(self._file.fileno())
        except OSError as error:
            raise unreadable(path, error) from None
        self.size, self.mtime_ns = status.st_size, status.st_mtime_ns

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._file.close()

    @property
    def content_hash(self) -> str:
        """Hash of the bytes on disk, complete once `chunks` is exhausted."""
        return self._hash.hexdigest()

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
        """Yield the text without its byte-order mark, in pieces of at most `size` bytes."""
        first = self._read(max(size, len(GZIP_MAGIC)))
        if first.startswith(GZIP_MAGIC):
            texts = self._unzipped(first, size)
        else:
            texts = self._blocks(first, size)
        start = b""
        for text in texts:
            start += text
            if len(start) >= len(UTF8_BOM):
                break
        yield start.removeprefix(UTF8_BOM)
        yield from texts

    def _blocks(self, block: bytes, size: int) -> Iterator[bytes]:
        while block:
            yield block
            block = self._read(size)

    def _unzipped(self, block: bytes, size: int) -> Iterator[bytes]:
        """Yield the content of the gzip members in turn; `problem` says if one is damaged."""
        member = zlib.decompressobj(wbits=31)
        while True:
            try:
                text = member.decompress(block, size)
            except zlib.error as error:
                self.problem = f"gzip data is damaged ({error})"
                return
            if text:
                yield text
            if member.eof:
                block = self._next_member(member.unused_data)
                if not block:
                    return
                member = zlib.decompressobj(wbits=31)
            else:
                block = member.unconsumed_tail or self._read(BLOCK)
                if not block:
                    self.problem = "gzip data is truncated"
                    return

    def _next_member(self, block: bytes) -> bytes:
        """Return the bytes from the next gzip member on; zeros may pad the end of one."""
        block = block.lstrip(b"\0")
        while not block and (read := self._read(BLOCK)):
            block = read.lstrip(b"\0")
        return block

    def _read(self, size: int) -> bytes:
        try:
            block = self._file.read(size)
        except OSError as error:
            raise unreadable(self.path, error) from None
        self._hash.update(block)
        self.consumed += len(block)
        return block


def content_hash(path: Path, block: int = 4 * BLOCK) -> str:
    """Return the hash that a `TextReader` of this file would end with.

    Raises:
        OSError: if the file cannot be read.
    """
    digest = xxhash.xxh3_128()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(block):
            digest.update(piece)
    return digest.hexdigest()


def unreadable(path: Path, error: OSError) -> DataError:
    """Return the error for a file that the system refuses to read."""
    return DataError(f"cannot be read: {error.strerror or error}", path=path)
