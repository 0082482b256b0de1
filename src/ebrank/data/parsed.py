"""What the parser returns and the cache keeps: the arrays, and what each file holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ebrank.data.limits import MAX_LABEL
from ebrank.typing import Features, Ints, Labels, Texts

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes read and the total bytes."""


@dataclass
class ParsedFile:
    """One file that was read: what identifies its content, and what is in it.

    Attributes:
        path, size, mtime_ns, content_hash: the file as it was when opened, and its bytes.
        queries, rows: their numbers.
        features: largest feature id.
        label_lines: for each label from 0 on, the first line that has it, or 0.
    """

    path: str
    size: int = 0
    mtime_ns: int = 0
    content_hash: str = ""
    queries: int = 0
    rows: int = 0
    features: int = 0
    label_lines: list[int] = field(default_factory=lambda: [0] * (MAX_LABEL + 1))

    @property
    def max_label(self) -> int:
        """The largest label seen."""
        return max(label for label, line in enumerate(self.label_lines) if line)


@dataclass(frozen=True, eq=False)
class Parsed:
    """All files, parsed: the arrays of a `Dataset` before its columns have a meaning."""

    features: Features
    labels: Labels
    query_pointers: Ints
    query_ids: Texts
    files: tuple[ParsedFile, ...]
