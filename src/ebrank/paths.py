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


def kernel_cache() -> Path:
    """Return the folder of compiled kernels."""
    return cache_root() / "kernels"


def dataset_cache() -> Path:
    """Return the folder of parsed datasets: `EBRANK_DATASET_CACHE` if set, else under the root."""
    chosen = os.environ.get("EBRANK_DATASET_CACHE")
    return Path(chosen).expanduser() if chosen else cache_root() / "datasets"
