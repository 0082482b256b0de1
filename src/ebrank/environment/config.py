"""What a user sets once for all runs: where the datasets are.

An explicit argument (`--data-dir`) overrides the environment (`EBRANK_DATA`), which overrides the
configuration file:

    # config.toml; `EBRANK_CONFIG` names another file
    data_dir = "~/datasets"
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebrank.environment.paths import expanded
from ebrank.errors import EBRankError

KEY = "data_dir"


class SettingsError(EBRankError):
    """A configuration file cannot be used: names the file, the key and the remedy."""


@dataclass(frozen=True)
class DataDir:
    """A folder of datasets and where its name came from."""

    path: Path
    origin: str


def config_path() -> Path:
    """Return the configuration file: `EBRANK_CONFIG` if set, else the platform's usual place."""
    chosen = os.environ.get("EBRANK_CONFIG")
    if chosen:
        return expanded(chosen, "EBRANK_CONFIG")
    import platformdirs

    return Path(platformdirs.user_config_dir("ebrank")) / "config.toml"


def data_dir(explicit: str | os.PathLike[str] | None = None) -> DataDir | None:
    """Return the folder of datasets: the argument, else the environment's, else the file's.

    >>> data_dir("/data").path.as_posix()
    '/data'
    """
    if explicit is not None:
        return DataDir(expanded(explicit, "--data-dir"), "--data-dir")
    from_environment = os.environ.get("EBRANK_DATA")
    if from_environment:
        return DataDir(expanded(from_environment, "EBRANK_DATA"), "EBRANK_DATA")
    path = config_path()
    configured = _read(path)
    if configured is None:
        return None
    # Relative to the file, so that the setting means the same wherever the command runs.
    return DataDir(path.parent / expanded(configured, str(path)), str(path))


def _read(path: Path) -> str | None:
    """Return the folder in a file; None if the usual file is absent, or says nothing."""
    try:
        table = read_toml(path)
    except FileNotFoundError:
        if os.environ.get("EBRANK_CONFIG"):
            raise SettingsError(
                f"{path}: EBRANK_CONFIG names a file that does not exist. Create it or unset it"
            ) from None
        return None
    folder: object = table.pop(KEY, None)
    if table:
        raise SettingsError(f"{path}: unknown key {min(table)!r}. Known keys: {KEY}")
    if folder is None or (isinstance(folder, str) and folder):
        return folder
    raise SettingsError(
        f'{path}: {KEY} must be a text, as in {KEY} = "~/datasets"; it is {folder!r}'
    )


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
