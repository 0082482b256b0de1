"""Where the datasets are, which a user may set once for all runs; and files of settings.

An explicit argument (`--data-dir`) overrides the environment (`EBRANK_DATA`).
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from ebrank.environment.paths import expanded
from ebrank.errors import EBRankError


class SettingsError(EBRankError):
    """A configuration file cannot be used: names the file, the key and the remedy."""


class DataDir(NamedTuple):
    """A folder of datasets and where its name came from."""

    path: Path
    origin: str


def data_dir(explicit: str | os.PathLike[str] | None = None) -> DataDir | None:
    """Return the folder of datasets: the argument, else the environment's.

    >>> data_dir("/data").path.as_posix()
    '/data'
    """
    origin = "EBRANK_DATA" if explicit is None else "--data-dir"
    chosen = (os.environ.get(origin) or None) if explicit is None else explicit
    return None if chosen is None else DataDir(expanded(chosen, origin), origin)


def read_toml(path: Path) -> dict[str, Any]:
    """Return the table in a file, which may begin with a byte-order mark.

    Raises:
        FileNotFoundError: if there is none.
        SettingsError: if it cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as problem:
        raise SettingsError(f"{path}: cannot be read: {problem}") from None
    except tomllib.TOMLDecodeError as problem:
        raise SettingsError(f"{path}: not valid TOML: {problem}") from None
