"""Many short texts in little memory: a Python string has 50 bytes of its own before its text.

>>> names = PackedStrings(["green", "tè nero"])
>>> names[1], len(names), list(names.extended(["white"]))
('tè nero', 2, ['green', 'tè nero', 'white'])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np


def encode(text: str) -> bytes:
    """Return a text as bytes; any text, even half a character that no file would take."""
    return text.encode("utf-8", "surrogatepass")


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")


class PackedStrings(Sequence[str]):
    """A list of texts that cannot be changed, as one text and where each of them ends."""

    __slots__ = ("_ends", "_text")

    def __init__(self, names: Sequence[str] = ()) -> None:
        encoded = [encode(name) for name in names]
        self._text = b"".join(encoded)
        self._ends = np.cumsum([len(name) for name in encoded], dtype=np.uint32)

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        end = self._ends[place]
        begin = self._ends[place - 1] if place % len(self) else 0
        return _decode(self._text[begin:end])

    def __iter__(self) -> Iterator[str]:
        begin = 0
        for end in self._ends.tolist():
            yield _decode(self._text[begin:end])
            begin = end

    def at(self, places: Sequence[int]) -> list[str]:
        """Return the texts at some places, counted from 0: faster than one by one."""
        chosen = np.asarray(places, np.int64)
        ends = self._ends[chosen].tolist()
        begins = np.where(chosen > 0, self._ends[chosen - 1], 0).tolist() if len(chosen) else []
        text = self._text
        return [_decode(text[begin:end]) for begin, end in zip(begins, ends, strict=True)]

    def extended(self, names: Sequence[str]) -> PackedStrings:
        """Return these names followed by others."""
        more, both = PackedStrings(names), PackedStrings()
        both._text = self._text + more._text
        both._ends = np.concatenate([self._ends, more._ends + np.uint32(len(self._text))])
        return both
