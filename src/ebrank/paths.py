"""Where ebrank keeps what it can make again: compiled kernels and parsed datasets."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """Return the folder for caches: `EBRANK_CACHE` if set, else the platform's user cache."""
    chosen = os.environ.get("EBRANK_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("ebrank"))
