"""Where ebrank caches compiled kernels and parsed datasets."""

from __future__ import annotations

import os
from pathlib import Path

from ebrank.errors import ParameterError


def expanded(path: str | os.PathLike[str], origin: str = "") -> Path:
    """Return a path with `~` or `~user` replaced by the home folder.

    `origin` names where a wrong path came from, if that is not obvious: a variable, a file.
    """
    note = f" (from {origin})" if origin else ""
    if not isinstance(path, str | os.PathLike) or path == "":
        raise ParameterError(f"{path!r}{note} is not a path")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ParameterError(f"{path}{note}: home folder not found. Write the full path.") from None


def cache_root() -> Path:
    """Return the folder for caches: `EBRANK_CACHE` if set, else the platform's user cache."""
    chosen = os.environ.get("EBRANK_CACHE")
    if chosen:
        return expanded(chosen, "EBRANK_CACHE")
    import platformdirs

    return Path(platformdirs.user_cache_dir("ebrank"))


def kernel_cache() -> Path:
    """Return the folder of compiled kernels."""
    return cache_root() / "kernels"


def dataset_cache() -> Path:
    """Return the folder of parsed datasets: `EBRANK_DATASET_CACHE` if set, else under the root."""
    chosen = os.environ.get("EBRANK_DATASET_CACHE")
    if chosen:
        return expanded(chosen, "EBRANK_DATASET_CACHE")
    return cache_root() / "datasets"
