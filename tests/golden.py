"""Texts that must not change unnoticed, kept in files that a reader can judge.

`EBRANK_GOLDEN=write pytest` writes them anew; the diff shows what changed.
"""

from __future__ import annotations

import os
from pathlib import Path


def check_golden(path: Path, text: str) -> None:
    """Compare a text with the one that is kept."""
    if os.environ.get("EBRANK_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
    assert text == path.read_bytes().decode()
